"""The pieces of the classifier that have a fast way for few classes and another for many."""

import numpy as np
import pytest

from selfsent.evaluation.stats.logistic import softmax


@pytest.mark.parametrize("classes", [2, 3, 15, 16, 40])
def test_probabilities_over_the_classes(classes):
    logits = np.random.default_rng(classes).normal(scale=9, size=(5, 4, classes)).astype(np.float32)
    logits[0, 0, 0] = 1000.0  # nothing overflows
    before = logits.copy()
    exponent = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    assert softmax(logits) == pytest.approx(exponent / exponent.sum(-1, keepdims=True), abs=1e-6)
    assert np.array_equal(logits, before)
