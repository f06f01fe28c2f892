import math

import pytest
import torch

import tiny
from naive import comparisons
from selfsent.errors import SettingsError
from selfsent.methods.ct import CT
from selfsent.models.packing import pack
from selfsent.settings import Settings

SENTENCES = tiny.make_sentences(40, seed=5)


def batch_of(learner, size=16, **options):
    made = tiny.make_batches(learner, CT(**options).views(), Settings(batch_size=size), SENTENCES)
    return made.views_of(made.rows_at(0), 0)


def part_ways(learner):
    with torch.no_grad():
        for parameter in learner.first.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    return learner


@pytest.mark.parametrize("name", ["bert", "mpnet"])
def test_loss_and_gradients_equal_loops_over_pairs(name, learner_of):
    learner = part_ways(learner_of("ct", name, negatives=3))
    given = left, right = batch_of(learner, 8, negatives=3)
    first = [learner.first(left.take([i]))[0] / 4 for i in range(8)]
    # Products of raw vectors saturate the logistic function; the loop would take the log of zero.
    learner.first.register_forward_hook(lambda module, given, out: out / 4)
    second = [learner.model(right.take([i]))[0] for i in range(8)]
    loss = learner(given)
    slow = comparisons.tension(first, second, [i % 4 == 0 for i in range(8)])
    torch.testing.assert_close(loss.total / loss.count, slow, rtol=1e-3, atol=1e-4)
    wanted = [encoder.transformer.get_input_embeddings().weight for encoder in (learner.first, learner.model)]
    tiny.assert_equal_gradients(loss.total / loss.count, slow, wanted, rtol=1e-2, atol=1e-3)


def test_dropout_is_off_by_default(learner_of):
    given = batch_of(learner_of("ct"))
    for dropout_in in ("none", "kept", "both"):
        learner = learner_of("ct", dropout=0.3, dropout_in=dropout_in)
        once, again = (learner.encode(given[0], given[1]) for _ in range(2))
        moves = [not torch.equal(*pair) for pair in zip(once, again, strict=True)]
        assert moves == {"none": [False, False], "kept": [False, True], "both": [True, True]}[dropout_in]
        assert learner.model.training


def test_products_are_of_vectors_of_any_length(learner_of):
    """Products of unit vectors, at most 1, are least wrong where all are -1: a base that ends so would collapse."""
    from sentence_transformers.sentence_transformer.modules import Normalize

    plain, unit = (learner_of("ct") for _ in range(2))
    for encoder in (unit.first, unit.model):
        encoder.sentence_transformer.append(Normalize())
    given = batch_of(plain)
    torch.testing.assert_close(unit(given).total, plain(given).total)
    assert (plain.model.ends_normalized, unit.model.ends_normalized) == (False, True)
    assert unit.model(given[0]).norm(dim=-1).tolist() == pytest.approx([1] * len(given[0]))


def test_each_process_has_whole_groups(learner_of, monkeypatch):
    monkeypatch.setattr("selfsent.methods.ct.world_size", lambda: 4)
    learner = learner_of("ct")
    packed = pack(learner.model, ["ba", "de", "fi", "go"])
    with pytest.raises(SettingsError, match="batch_size must be a multiple of 32 with 4 processes"):
        learner([packed, packed])


def test_in_batch_loss_equals_loops_over_pairs(learner_of, damaged_and_whole):
    learner = part_ways(learner_of("ct-inbatch", scale=3.0))
    assert learner.log_scale.item() == pytest.approx(math.log(3))
    _, whole = damaged_and_whole(learner.model.tokenizer)
    first, second = ([encoder(tiny.pack([ids]))[0] for ids in whole] for encoder in (learner.first, learner.model))
    loss = learner([tiny.pack(whole)])
    scale = learner.log_scale.exp()
    both = ((first, second), (second, first))
    slow = sum(comparisons.ranking(*pair, scale) for pair in both) / (2 * len(first))
    torch.testing.assert_close(loss.total / loss.count, slow, rtol=1e-3, atol=1e-4)
    wanted = [learner.log_scale, learner.first.transformer.get_input_embeddings().weight]
    tiny.assert_equal_gradients(loss.total / loss.count, slow, wanted, rtol=1e-2, atol=1e-4)
