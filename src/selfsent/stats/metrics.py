"""The metrics, each as a statistic over weighted items (see `bootstrap`), and the cosine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from selfsent.stats.resampling import Floats, Statistic


def cosines(left: ArrayLike, right: ArrayLike) -> Floats:
    """The cosine of each pair of rows, computed in float64; undefined cosines (a zero vector) are 0, as in SentEval.

    Args:
        left: (n, d).
        right: (n, d).
    """
    a, b = np.asarray(left, np.float64), np.asarray(right, np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine: Floats = np.einsum("nd,nd->n", a, b) / norms
    return np.where(np.isfinite(cosine), cosine, 0.0)


def mean(values: ArrayLike, importance: ArrayLike | None = None) -> Statistic:
    """The mean of values (n,), each of which counts by its importance (n,), if given."""
    data = np.asarray(values, np.float64)
    if importance is None:
        return lambda weights: _ratio(weights @ data, weights.sum(1))
    own = np.asarray(importance, np.float64)
    return lambda weights: _ratio(weights @ (own * data), weights @ own)


def pearson(x: ArrayLike, y: ArrayLike) -> Statistic:
    """Pearson's r of x (n,) and y (n,); 0 where one of them is constant."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    a, b = a - a.mean(), b - b.mean()
    return lambda weights: _correlation(a, b, weights)


def spearman(x: ArrayLike, y: ArrayLike) -> Statistic:
    """Spearman's ρ of x (n,) and y (n,), with mean ranks for ties; ranks are recomputed in every resample."""
    a, b = _ranks(x), _ranks(y)
    return lambda weights: _correlation(a(weights), b(weights), weights)


def average_precision(positive: ArrayLike, scores: ArrayLike) -> Statistic:
    """Average precision of scores (n,) for labels (n,): the sum of precision times gain in recall over thresholds.

    Items of equal score share a threshold, as in scikit-learn's definition.
    """
    values = -np.asarray(scores, np.float64)
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(values[order]) != 0])
    positives = np.asarray(positive, np.float64)[order]

    def statistic(weights: Floats) -> Floats:
        drawn = weights[:, order]
        hits = np.add.reduceat(drawn * positives, starts, axis=1)
        seen = np.add.reduceat(drawn, starts, axis=1).cumsum(1)
        precision = _ratio(hits.cumsum(1), seen)
        return _ratio((hits * precision).sum(1), hits.sum(1))

    return statistic


def f1(positive: ArrayLike, predicted: ArrayLike) -> Statistic:
    """F1 of predictions (n,) for labels (n,), both 0 or 1."""
    truth, guess = np.asarray(positive, np.float64), np.asarray(predicted, np.float64)
    return lambda weights: _ratio(2 * (weights @ (truth * guess)), weights @ (truth + guess))


def average(statistics: Sequence[Statistic], parts: Sequence[NDArray[np.int64]], sized: bool = False) -> Statistic:
    """The mean of one statistic per part of the items.

    Args:
        statistics: one per part, each over the items of its part.
        parts: the item numbers of each part.
        sized: weight parts by their number of items (SentEval's `wmean`) instead of equally (`mean`).
    """
    share = np.array([len(part) if sized else 1 for part in parts], np.float64)

    def statistic(weights: Floats) -> Floats:
        values = np.stack([part(weights[:, rows]) for part, rows in zip(statistics, parts, strict=True)])
        return np.asarray(share @ values / share.sum(), np.float64)

    return statistic


def parts_of(names: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """The item numbers of each name, in order of first appearance."""
    labels = np.asarray(names)
    return {name: np.flatnonzero(labels == name) for name in dict.fromkeys(names)}


def _ranks(values: ArrayLike) -> Statistic:
    """Mean ranks of fixed values under any weights, (b, n), without sorting again."""
    code = np.unique(np.asarray(values, np.float64), return_inverse=True)[1]
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(code[order]) != 0])

    def statistic(weights: Floats) -> Floats:
        counts = np.add.reduceat(weights[:, order], starts, axis=1)
        return np.asarray((counts.cumsum(1) - counts / 2)[:, code])

    return statistic


def _correlation(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Weighted Pearson of x and y, each (n,) or (b, n)."""
    total = np.maximum(weights.sum(1, keepdims=True), 1)  # small parts may be empty in a resample
    x = x - (weights * x).sum(1, keepdims=True) / total
    y = y - (weights * y).sum(1, keepdims=True) / total
    spread = np.sqrt((weights * x * x).sum(1) * (weights * y * y).sum(1))
    # Rounding leaves a small variance in constant values; dividing by it would give a spurious correlation.
    spread[spread <= 1e-12 * total[:, 0]] = 0.0
    return _ratio((weights * x * y).sum(1), spread)


def _ratio(above: Floats, below: Floats) -> Floats:
    """The quotient, 0 where it is undefined."""
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)
