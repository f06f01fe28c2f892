import math

import pytest
import torch

import tiny
from naive import comparisons


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_loss_equals_loops_over_pairs(similarity, learner_of, damaged_and_whole):
    learner = learner_of("ct-inbatch", similarity=similarity, scale=3.0 if similarity == "cosine" else 0.1)
    with torch.no_grad():
        for parameter in learner.first.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    _, whole = damaged_and_whole(learner.model.tokenizer)
    first, second = ([encoder(tiny.pack([ids]))[0] for ids in whole] for encoder in (learner.first, learner.model))
    measure = comparisons.cosine if similarity == "cosine" else lambda a, b: (a * b).sum()
    loss = learner([tiny.pack(whole)])
    slow = comparisons.tension_in_batch(first, second, measure, learner.log_scale.exp())
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
