"""The classifiers: many problems at once reach what one scikit-learn fit, or one run of torch, reaches alone."""

import numpy as np
import pytest

from naive import logistic as naive
from selfsent.stats import senteval
from selfsent.stats.logistic import fit_predict, softmax


def cloud(n, size, classes, seed, noise=1.0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    features = rng.normal(size=(classes, size))[labels] * np.linspace(1, 0.01, size) + rng.normal(0, noise, (n, size))
    return features.astype(np.float32), labels


def assert_minima(features, labels, masks, penalty, classes):
    found = fit_predict(features, labels, masks, np.full(len(masks), penalty), classes)
    for mask, guess in zip(masks, found, strict=True):
        expected = naive.fit(features[mask], labels[mask], penalty).predict(naive.extended(features))
        assert np.mean(guess == expected) > 0.995


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("penalty", [1e-5, 1e-2])
def test_fits_agree_with_scikit_learn(classes, penalty):
    features, labels = cloud(600, 20, classes, 1)
    assert_minima(features, labels, np.random.default_rng(2).random((3, 600)) < 0.7, penalty, classes)


@pytest.mark.parametrize("scale", [1e-2, 20])
@pytest.mark.parametrize("penalty", [1e-5, 1e-2])
def test_vectors_of_any_length_reach_the_minimum(scale, penalty):
    features, labels = cloud(400, 30, 2, 5, noise=0.3)
    folds = np.arange(400) // 40 != np.arange(4)[:, None]  # nine tenths each, as in cross-validation
    assert_minima(features * np.float32(scale), labels, folds, penalty, 2)


def test_blocks_change_nothing_and_problems_are_apart():
    features, labels = cloud(200, 20, 2, 6)
    masks, penalty = np.random.default_rng(7).random((12, 200)) < 0.6, np.repeat([1e-5, 1e-4, 1e-3, 1e-2], 3)
    found = fit_predict(features, labels, masks, penalty, 2)
    alone = [fit_predict(features, labels, m[None], penalty[k : k + 1], 2)[0] for k, m in enumerate(masks)]
    assert np.mean(found == np.array(alone)) > 0.99
    assert np.mean(fit_predict(features, labels, masks, penalty, 2, block=2000) == found) > 0.999


@pytest.mark.parametrize("penalty", [1e-3, 1.0])
@pytest.mark.parametrize("classes", [2, 4])
def test_early_stopping_of_one_problem_is_that_of_torch(classes, penalty):
    features, labels = cloud(300, 8, classes, 8)
    train, valid = np.arange(300) < 200, np.arange(300) >= 200
    found = senteval.fit_predict(features, labels, train[None], np.array([penalty]), classes, valid[None], seed=5)
    expected = naive.stopped_early(features[train], labels[train], features[valid], labels[valid], penalty, seed=5)
    assert np.mean(found[0] == expected(features)) > 0.99


def test_problems_that_share_batches_score_as_if_each_had_its_own():
    features, labels = cloud(1000, 16, 2, 9, noise=2.0)
    valid, test = (np.arange(1000) // 250 == part for part in (0, 1))
    masks = (np.random.default_rng(3).random((4, 1000)) < 0.7) & ~valid & ~test
    penalties = np.tile([1e-5, 1e-2], 2)
    found = senteval.fit_predict(features, labels, masks, penalties, 2, np.tile(valid, (4, 1)), seed=1)
    alone = [
        naive.stopped_early(features[mask], labels[mask], features[valid], labels[valid], penalty, seed)(features)
        for seed, (mask, penalty) in enumerate(zip(masks, penalties, strict=True))
    ]
    together, apart = ((np.array(guess)[:, test] == labels[test]).mean() for guess in (found, alone))
    assert together == pytest.approx(apart, abs=0.02)  # 4 x 250 rows
    assert 0.6 < together < 0.98


def test_early_stopping_holds_rows_back_where_none_are_given():
    features, labels = cloud(600, 8, 2, 10, noise=0.3)
    train = np.ones((2, 600), np.bool_)
    found, again = (senteval.fit_predict(features, labels, train, np.full(2, 1e-4), 2, None, seed=0) for _ in range(2))
    assert train.all()
    assert (found == labels).mean() > 0.8
    assert np.array_equal(found, again)


@pytest.mark.parametrize("classes", [2, 15, 16])
def test_probabilities_over_few_and_many_classes(classes):
    logits = np.random.default_rng(classes).normal(scale=9, size=(5, 4, classes)).astype(np.float32)
    logits[0, 0, 0] = 1000.0  # nothing overflows
    before = logits.copy()
    exponent = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    assert softmax(logits) == pytest.approx(exponent / exponent.sum(-1, keepdims=True), abs=1e-6)
    assert np.array_equal(logits, before)
