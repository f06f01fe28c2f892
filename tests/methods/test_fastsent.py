import numpy as np
import pytest
import torch

import tiny
from naive import predictions
from selfsent.methods import get_method
from selfsent.models.loading import load_encoder

METHOD = get_method("fastsent")


@pytest.fixture
def learner(base_of):
    torch.manual_seed(0)
    return lambda **options: METHOD.learner(load_encoder(base_of(tiny.STATIC)), METHOD.options(**options))


@pytest.mark.parametrize("own_words", [False, True])
def test_the_loss_equals_loops_over_words(learner, own_words):
    made = learner(own_words=own_words)
    torch.nn.init.normal_(made.output.weight)
    sentences, beside = [[20, 21, 22, 20], [23], [24, 25]], [[30, 31], [20, 20, 32], [33]]
    loss = made([tiny.pack(sentences), tiny.pack(beside)])
    table, output = made.model.table.weight.tolist(), made.output.weight.tolist()
    total, count = predictions.fastsent(sentences, beside, table, output, own_words)
    assert loss.count == count
    assert loss.total.item() == pytest.approx(total, rel=1e-4)


def test_special_tokens_are_not_predicted(base_of, encoder_of):
    made = METHOD.learner(encoder_of("bert"), METHOD.options())
    first = made.model.tokenizer.all_special_ids[0]
    batch = [tiny.pack([[first, 20, 21]]), tiny.pack([[first, 22, first]])]
    assert made(batch).count == 1


def test_any_encoder_predicts_by_its_vector(encoder_of):
    made = METHOD.learner(encoder_of("bert"), METHOD.options())
    batch = [tiny.pack([[20, 21]]), tiny.pack([[22, 23, 24]])]
    scores = made.model(batch[0]) @ made.output.weight.T
    expected = torch.nn.functional.cross_entropy(scores.expand(3, -1), torch.tensor([22, 23, 24]), reduction="sum")
    torch.testing.assert_close(made(batch).total, expected, rtol=1e-4, atol=1e-4)


def test_what_is_saved_is_the_table_alone(learner, tmp_path):
    from sentence_transformers import SentenceTransformer

    made = learner()
    made.save(tmp_path / "model")
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_array_equal(loaded[0].embedding.weight.detach().numpy(), made.model.table.weight.detach().numpy())
