import pytest
import torch

import tiny
from naive import comparisons
from selfsent.errors import SettingsError


@pytest.mark.parametrize("name", ["bert", "mpnet"])
@pytest.mark.parametrize("mlp", [True, False])
def test_learner_equals_loops_over_single_sentences(name, mlp, learner_of, damaged_and_whole):
    learner = learner_of("simcse", name, delete_words=0.3, mlp=mlp)
    damaged, whole = damaged_and_whole(learner.model.tokenizer)
    loss = learner([tiny.pack(damaged), tiny.pack(whole)])
    first, second = ([_vector(learner, ids) for ids in sentences] for sentences in (damaged, whole))
    torch.testing.assert_close(loss.total, comparisons.ranking(first, second, 20.0), rtol=1e-4, atol=1e-4)


def _vector(learner, ids):
    state = learner.model.transformer(input_ids=torch.tensor([ids])).last_hidden_state[0, 0]
    if not learner.options.mlp:
        return state
    layer = learner.mlp[0]
    return torch.tanh(layer.weight @ state + layer.bias)


def test_the_mlp_is_trained_but_not_saved(learner_of, tmp_path):
    learner = learner_of("simcse", dropout=0.1)
    learner.model.save(tmp_path / "model")
    assert not [path for path in tmp_path.rglob("*") if "Dense" in path.name]
    assert all(parameter.requires_grad for parameter in learner.mlp.parameters())


@pytest.mark.parametrize(("method", "name"), [("simcse", "bert"), ("simcse", "t5"), ("bootstrap", "bert")])
def test_identical_views_are_refused(method, name, learner_of):
    with pytest.raises(SettingsError, match=r"would be identical.*dropout=0.1"):
        learner_of(method, name, dropout=0.0)
    for given in ({"delete_words": 0.3}, {"columns": True}):
        assert learner_of(method, name, dropout=0.0, **given)
