import numpy as np
import pytest
import torch

import tiny
from naive import comparisons
from selfsent.data.packed import IGNORED
from selfsent.data.views.noise import DeleteWords, MaskTokens, RepeatWords
from selfsent.data.views.view import View
from selfsent.errors import SettingsError
from selfsent.methods.simcse import SimCSE


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


def test_dropout_alone_makes_the_two_views_differ(learner_of, damaged_and_whole):
    learner = learner_of("simcse", dropout=0.1)
    _, whole = damaged_and_whole(learner.model.tokenizer)
    batch = tiny.pack(whole)
    assert abs(learner([batch, batch]).total - learner.eval()([batch, batch]).total) > 1e-3


def test_the_auxiliary_loss_is_added_at_its_weight(learner_of, damaged_and_whole):
    masked = damaged_and_whole
    plain, both = (learner_of("simcse", delete_words=0.3, mlm_weight=weight) for weight in (0.0, 0.1))
    damaged, whole = masked(plain.model.tokenizer)
    first, second = tiny.pack(damaged), tiny.pack(whole)
    goals = tiny.pack(whole)
    goals.given_targets = goals.given_ids.copy()  # every token, to be predicted where it stands
    contrast, sum_ = plain([first, second]), both([first, second, goals])
    head = both.model.language_model_head
    scores = head.output(head(both.model.states(goals)))
    words = torch.nn.functional.cross_entropy(scores, goals.targets)
    assert sum_.count == contrast.count == len(first)
    torch.testing.assert_close(sum_.total / sum_.count, contrast.total / contrast.count + 0.1 * words)


def test_a_batch_whose_targets_were_all_cut_off_leaves_the_contrast(learner_of, damaged_and_whole):
    learner = learner_of("simcse", delete_words=0.3, mlm_weight=0.1)
    damaged, whole = damaged_and_whole(learner.model.tokenizer)
    views = [tiny.pack(damaged), tiny.pack(whole), tiny.pack(whole)]
    views[2].given_targets = np.full_like(views[2].given_ids, IGNORED)
    contrast = learner_of("simcse", delete_words=0.3)(views[:2])
    torch.testing.assert_close(learner(views).total, contrast.total)


def test_the_mlp_is_trained_but_not_saved(learner_of, tmp_path):
    learner = learner_of("simcse", dropout=0.1)
    learner.model.save(tmp_path / "model")
    assert not [path for path in tmp_path.rglob("*") if "Dense" in path.name]
    assert all(parameter.requires_grad for parameter in learner.mlp.parameters())


@pytest.mark.parametrize("name", list(tiny.ARCHITECTURES))
def test_identical_views_are_refused(name, learner_of):
    with pytest.raises(SettingsError, match=r"would be identical.*--dropout 0.1"):
        learner_of("simcse", name, dropout=0.0)
    assert learner_of("simcse", name, dropout=0.0, repeat_words=0.3)


def test_views_follow_the_options():
    assert SimCSE().views() == (View(), View())
    assert SimCSE(delete_words=0.2).views() == (View(noise=DeleteWords(0.2)),) * 2
    assert SimCSE(repeat_words=0.3).views() == (View(), View(noise=RepeatWords(0.3)))
    assert SimCSE(mlm_weight=0.1).views()[2] == View(noise=MaskTokens())


def test_a_kept_mlp_is_part_of_the_saved_model(learner_of, damaged_and_whole, tmp_path):
    from selfsent.models.loading import load_encoder

    learner = learner_of("simcse", delete_words=0.3, keep_mlp=True).eval()
    batch = tiny.pack(damaged_and_whole(learner.model.tokenizer)[1])
    learner.model.save(tmp_path / "model")
    again = load_encoder(tmp_path / "model").eval()
    vectors = again(batch)
    torch.testing.assert_close(vectors, learner.model(batch))
    layer = learner.model.sentence_transformer[-1].linear
    torch.testing.assert_close(vectors, torch.tanh(layer(learner.model.states(batch)[batch.first])))
