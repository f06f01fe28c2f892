import math

import pytest
import torch

import tiny
from naive import comparisons
from selfsent.data.packed import concatenate
from selfsent.data.views.view import NegativeSampler, View
from selfsent.errors import SettingsError
from selfsent.methods.two_encoders import CT
from selfsent.models.encoding import pack
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


def sentence(packed, number):
    return packed.take([number])


@pytest.mark.parametrize("name", ["bert", "mpnet"])
@pytest.mark.parametrize("anchored", [False, True])
def test_loss_and_gradients_equal_loops_over_pairs(name, anchored, learner_of):
    learner = part_ways(learner_of("ct", name, negatives=3, anchored=anchored))
    given = batch_of(learner, 8, negatives=3, anchored=anchored)
    right = given[-1]
    left = [given[0].take([i - i % 4 if anchored else i]) for i in range(8)]
    first = [learner.first(one)[0] / 4 for one in left]
    # Products of raw vectors saturate the logistic function; the loop would take the log of zero.
    learner.first.register_forward_hook(lambda module, given, out: out / 4)
    second = [learner.model(sentence(right, i))[0] for i in range(8)]
    loss = learner(given)
    slow = comparisons.tension(first, second, [i % 4 == 0 for i in range(8)])
    torch.testing.assert_close(loss.total / loss.count, slow, rtol=1e-3, atol=1e-4)
    wanted = [encoder.transformer.get_input_embeddings().weight for encoder in (learner.first, learner.model)]
    ours, theirs = (torch.autograd.grad(x, wanted) for x in (loss.total / loss.count, slow))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)


def test_an_eighth_of_a_batch_is_positive(learner_of):
    learner = learner_of("ct")
    first, second = batch_of(learner)
    same = [sentence(first, i).given_ids.tolist() == sentence(second, i).given_ids.tolist() for i in range(16)]
    assert same == [i % 8 == 0 for i in range(16)]


@pytest.mark.parametrize(("anchored", "expected"), [(False, [16, 16]), (True, [2, 16])])
def test_nothing_is_encoded_twice(anchored, expected, learner_of):
    learner = learner_of("ct", anchored=anchored)
    seen = []
    for encoder in (learner.first, learner.model):
        encoder.register_forward_pre_hook(lambda module, given: seen.append(len(given[0])))
    learner(batch_of(learner, anchored=anchored))
    assert seen == expected


def test_the_encoders_part_after_one_step(learner_of):
    learner = learner_of("ct")
    pairs = list(zip(learner.first.parameters(), learner.model.sentence_transformer.parameters(), strict=True))
    assert all(torch.equal(a, b) and a is not b for a, b in pairs)
    loss = learner(batch_of(learner))
    (loss.total / loss.count).backward()
    torch.optim.SGD([p for p in learner.parameters() if p.requires_grad], lr=0.1).step()
    assert not all(torch.equal(a, b) for a, b in pairs)


def test_vectors_of_zero_cost_log_two(learner_of):
    learner = learner_of("ct")
    learner.first.register_forward_hook(lambda module, given, out: out * 0)
    loss = learner(batch_of(learner))
    assert loss.total.item() / loss.count == pytest.approx(math.log(2))


def test_dropout_is_off_unless_asked_for(learner_of):
    given = batch_of(learner_of("ct"))
    for dropout_in in ("none", "kept", "both"):
        learner = learner_of("ct", dropout=0.3, dropout_in=dropout_in)
        once, again = (learner.encode(given[0], given[1]) for _ in range(2))
        moves = [not torch.equal(*pair) for pair in zip(once, again, strict=True)]
        assert moves == {"none": [False, False], "kept": [False, True], "both": [True, True]}[dropout_in]
        assert learner.model.training


def test_a_sum_is_a_sum(learner_of):
    mean, total = (learner_of("ct", reduction=kind) for kind in ("mean", "sum"))
    given = batch_of(mean)
    first, second = mean(given), total(given)
    torch.testing.assert_close(second.total / second.count, 16 * first.total / first.count)


@pytest.mark.parametrize(("name", "options"), [("ct", {}), ("ct-inbatch", {"similarity": "dot"})])
def test_products_are_of_vectors_of_any_length(name, options, learner_of):
    """Products of unit vectors, at most 1, are least wrong where all are -1: a base that ends so would collapse."""
    from sentence_transformers.sentence_transformer.modules import Normalize

    plain, unit = (learner_of(name, **options) for _ in range(2))
    for encoder in (unit.first, unit.model):
        encoder.sentence_transformer.append(Normalize())
    given = batch_of(plain)[: 1 + (name == "ct")]
    torch.testing.assert_close(unit(given).total, plain(given).total)
    assert unit.model.ends_normalized
    assert not plain.model.ends_normalized
    assert unit.model(given[0]).norm(dim=-1).tolist() == pytest.approx([1] * len(given[0]))


def test_views_follow_the_options():
    assert CT().views() == (View(), View(sampler=NegativeSampler(7)))
    assert CT(anchored=True).views() == (View(),)


def test_taking_sentences_keeps_their_tokens_and_targets():
    packed = tiny.pack([[1, 2, 3], [4], [5, 6]])
    packed.given_targets = packed.given_ids * 10
    taken = packed.take([2, 0])
    assert taken.given_ids.tolist() == [5, 6, 1, 2, 3]
    assert taken.given_lengths.tolist() == [2, 3]
    assert taken.given_targets.tolist() == [50, 60, 10, 20, 30]
    assert len(concatenate([packed.take([1]), taken])) == 3


def test_each_process_has_whole_groups(learner_of, monkeypatch):
    monkeypatch.setattr("selfsent.methods.two_encoders.world_size", lambda: 4)
    learner = learner_of("ct")
    packed = pack(learner.model, ["ba", "de", "fi", "go"])
    with pytest.raises(SettingsError, match="--batch-size must be a multiple of 32 with 4 processes"):
        learner([packed, packed])


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_in_batch_loss_equals_loops_over_pairs(similarity, learner_of, damaged_and_whole):
    learner = learner_of("ct-inbatch", similarity=similarity, scale=3.0 if similarity == "cosine" else 0.1)
    part_ways(learner)
    _, whole = damaged_and_whole(learner.model.tokenizer)
    first, second = ([encoder(tiny.pack([ids]))[0] for ids in whole] for encoder in (learner.first, learner.model))
    measure = comparisons.cosine if similarity == "cosine" else comparisons.product
    loss = learner([tiny.pack(whole)])
    scale = learner.log_scale.exp()
    both = ((first, second), (second, first))
    slow = sum(comparisons.ranking(*pair, scale, measure) for pair in both) / (2 * len(first))
    torch.testing.assert_close(loss.total / loss.count, slow, rtol=1e-3, atol=1e-4)
    wanted = [learner.log_scale, learner.first.transformer.get_input_embeddings().weight]
    ours, theirs = (torch.autograd.grad(x, wanted) for x in (loss.total / loss.count, slow))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-4)


def test_the_scale_starts_where_it_is_told_and_can_be_held(learner_of):
    free, held = (learner_of("ct-inbatch", learn_scale=learned) for learned in (True, False))
    assert free.log_scale.item() == pytest.approx(math.log(20))
    assert (free.log_scale.requires_grad, held.log_scale.requires_grad) == (True, False)


def test_identical_sentences_are_not_held_against_each_other(learner_of):
    learner = learner_of("ct-inbatch")
    assert learner([tiny.pack([[2, 7, 3]] * 6)]).total.item() == pytest.approx(0, abs=1e-6)


def test_dropout_is_on_unless_told_otherwise(learner_of, damaged_and_whole):
    for options in ({}, {"dropout_in": "none"}):
        learner = learner_of("ct-inbatch", dropout=0.3, **options)
        packed = tiny.pack(damaged_and_whole(learner.model.tokenizer)[1])
        assert (learner([packed]).total == learner([packed]).total) == bool(options)
