"""Batches so large that they are compared in blocks have the losses and gradients of the whole matrix."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import tiny
from selfsent.data.packed import Packed
from selfsent.methods.contrast import LARGE, in_batch_cross_entropy, no_negatives, ranking_loss, similarity_loss

ROWS, HALF = 2100, 1050
assert ROWS**2 > LARGE


def one_token_each(offset=0):
    """Texts of one token; the second half repeats the first."""
    return Packed(np.arange(ROWS) % HALF + offset, np.ones(ROWS, np.int64))


@pytest.fixture
def vectors():
    """Three batches of vectors."""
    torch.manual_seed(0)
    return [F.normalize(torch.randn(ROWS, 3), dim=1).requires_grad_() for _ in range(3)]


def assert_same(found, expected, vectors):
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    tiny.assert_equal_gradients(found, expected, vectors, rtol=1e-3, atol=1e-5)


def test_ranking_with_hard_negatives(vectors):
    anchors, *others = vectors
    query, texts = one_token_each(), [one_token_each(5000), one_token_each(10_000)]
    found = ranking_loss(anchors, others, query, texts, 20, hard=1)
    scores, excluded = 20 * anchors @ torch.cat(others).T, no_negatives(query, texts, hard=1)(slice(0, ROWS))
    assert excluded.any()
    assert_same(found, in_batch_cross_entropy(scores, excluded), vectors)


def test_similarity(vectors):
    mine, targets = vectors[0], vectors[1].detach()
    apart = torch.eye(ROWS, dtype=torch.bool)
    p, q = ((20 * each @ each.T).masked_fill(apart, -1e4).log_softmax(1) for each in (mine, targets))
    expected = (q.exp() * (q - p)).sum()
    assert_same(similarity_loss(mine, targets, 20), expected, [mine])
