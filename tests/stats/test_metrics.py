import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st
from sklearn.metrics import average_precision_score, f1_score

from naive.metrics import average_precision as naive_average_precision, cosine
from selfsent.stats.metrics import average, average_precision, cosines, f1, mean, parts_of, pearson, spearman
from selfsent.stats.resampling import bootstrap, point

RNG = np.random.default_rng(0)


def drawn(weights):
    """The items of one resample, each as often as it was drawn."""
    return np.repeat(np.arange(len(weights)), weights.astype(int))


def weights_of(n, resamples=25):
    collected = []
    bootstrap(lambda w: collected.append(w) or w.sum(1), n, resamples=resamples)
    return np.concatenate(collected)


def test_cosines_match_the_loop_and_undefined_ones_are_zero():
    a, b = RNG.normal(size=(2, 6, 5)).astype(np.float32)
    a[2], b[4] = 0, np.nan
    result = cosines(a, b)
    for row in (0, 1, 3, 5):
        assert result[row] == pytest.approx(cosine(a[row].astype(float), b[row].astype(float)), abs=1e-12)
    assert result[2] == result[4] == 0


@pytest.mark.parametrize("ties", [False, True])
def test_spearman_and_pearson_match_scipy_in_every_resample(ties):
    x, y = RNG.normal(size=(2, 80))
    y = y + x
    if ties:
        x, y = x.round(), y.round()
    weights = weights_of(80)
    ranked, linear = spearman(x, y)(weights), pearson(x, y)(weights)
    for row, sample in enumerate(weights):
        items = drawn(sample)
        assert ranked[row] == pytest.approx(scipy.stats.spearmanr(x[items], y[items])[0], abs=1e-10)
        assert linear[row] == pytest.approx(scipy.stats.pearsonr(x[items], y[items])[0], abs=1e-10)


def test_correlation_with_a_constant_is_zero():
    constant = np.full(50, 0.1 + 0.2)
    for statistic in (spearman, pearson):
        assert point(statistic(constant, RNG.normal(size=50)), 50) == 0.0


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=30))
@settings(max_examples=60, deadline=None)
def test_average_precision_matches_the_loop_with_ties(items):
    labels, scores = [int(label) for label, _ in items], [float(score) for _, score in items]
    expected = naive_average_precision(labels, scores) if any(labels) else 0.0
    assert point(average_precision(labels, scores), len(items)) == pytest.approx(expected, abs=1e-12)


def test_average_precision_and_f1_match_scikit_learn_in_every_resample():
    labels = RNG.integers(0, 2, 60)
    scores = (labels + RNG.normal(size=60)).round(1)
    weights = weights_of(60)
    precision, f = average_precision(labels, scores)(weights), f1(labels, scores > 0.5)(weights)
    for row, sample in enumerate(weights):
        items = drawn(sample)
        assert precision[row] == pytest.approx(average_precision_score(labels[items], scores[items]))
        assert f[row] == pytest.approx(f1_score(labels[items], scores[items] > 0.5))


def test_sized_average_weighs_parts_by_their_items():
    values = np.r_[np.ones(10), np.zeros(30)]
    parts = list(parts_of(["a"] * 10 + ["b"] * 30).values())
    each = [mean(values[part]) for part in parts]
    assert point(average(each, parts), 40) == 0.5
    assert point(average(each, parts, sized=True), 40) == 0.25
