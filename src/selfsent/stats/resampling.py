"""Uncertainty of scores: 95 % percentile bootstrap intervals, and paired differences between two systems.

A resample is represented by weights: the count of each item. Every metric is then a few array operations over many
resamples at once. Two systems on the same items with the same seed share their resamples, so the difference of their
samples is the paired bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from selfsent.display import change

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Weights (b, n) -> values (b,). Row sums are the sizes of resamples; ones give the sample itself."""

RESAMPLES = 1000
LEVEL = 0.95
BLOCK = 1 << 20  # weights held at once: 8 MiB of float64


@dataclass(frozen=True)
class Difference:
    """System a minus system b, with interval and two-sided p-value of the paired bootstrap."""

    difference: float
    low: float
    high: float
    p: float

    @property
    def shown(self) -> str:
        """As printed: `+1.20 [+0.30, +2.10]`."""
        return change(self.difference, self.low, self.high)


def point(statistic: Statistic, n: int) -> float:
    """The statistic of the sample itself.

    Args:
        statistic: weights (b, n) -> values (b,).
        n: number of items.
    """
    return float(statistic(np.ones((1, n)))[0])


def bootstrap(
    statistic: Statistic,
    n: int,
    *,
    groups: NDArray[np.int64] | None = None,
    strata: Sequence[NDArray[np.int64]] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Floats:
    """The statistic on resamples drawn with replacement (Efron, 1979).

    Args:
        statistic: weights (b, n) -> values (b,).
        n: number of items.
        groups: (n,) group of each item. Whole groups are drawn, as items within one are dependent.
        strata: partition of the items into parts of fixed size, for a mean over parts. Excludes groups.
        resamples: their number.
        seed: the same seed, n, groups and strata give the same resamples for any statistic.

    Returns:
        (resamples,) values.
    """
    if n == 0:
        return np.zeros(resamples)
    rng, rows = np.random.default_rng(seed), max(1, BLOCK // n)
    names, member = (None, None) if groups is None else np.unique(groups, return_inverse=True)
    found = []
    for size in (min(rows, resamples - start) for start in range(0, resamples, rows)):
        if names is not None:
            weights = _drawn(rng, size, len(names))[:, member]
        else:
            weights = np.zeros((size, n))
            for part in [np.arange(n)] if strata is None else strata:
                weights[:, part] = _drawn(rng, size, len(part))
        found.append(statistic(weights))
    return np.concatenate(found)


def _drawn(rng: np.random.Generator, size: int, units: int) -> Floats:
    """Counts of each unit in each of so many resamples, (size, units)."""
    drawn = rng.integers(0, units, (size, units)) + units * np.arange(size)[:, None]
    return np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units).astype(np.float64)


def interval(samples: Floats, looks: int = 1) -> tuple[float, float]:
    """The percentile interval of bootstrap samples: (low, high).

    Args:
        samples: (resamples,) values.
        looks: how often the data are looked at while they grow. Each interval then leaves out 1/looks of the 5 %, so
            that all of them hold together in 95 % of cases (Bonferroni): one may stop at any look.
    """
    outside = (1 - LEVEL) / looks
    low, high = np.percentile(samples, [50 * outside, 100 - 50 * outside])
    return float(low), float(high)


def paired(a: float, b: float, samples_a: Floats, samples_b: Floats, looks: int = 1) -> Difference:
    """The difference of systems a and b, from samples over the same resamples.

    Args:
        a: score of system a.
        b: score of system b.
        samples_a: (resamples,) of system a.
        samples_b: (resamples,) of system b, from the same seed, items and groups.
        looks: see `interval`; p is corrected for them, too.

    Raises:
        ValueError: samples of different lengths.
    """
    if samples_a.shape != samples_b.shape:
        raise ValueError(f"{samples_a.size} and {samples_b.size} samples are not paired")
    differences = samples_a - samples_b
    low, high = interval(differences, looks)
    # Add one to both counts: a finite number of resamples cannot give a p-value of zero.
    against = 1 + min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    return Difference(a - b, low, high, min(1.0, float(2 * looks * against / (differences.size + 1))))


def paired_best(scores: Floats, other: float, samples: Floats, other_samples: Floats) -> Difference:
    """The difference of the best of several systems to another one, on the items used to pick it.

    Lower end and p-value correct for the selection: each resample is reduced by the maximum it adds to any system
    (single-step max-statistic of Romano and Wolf, 2005).

    Args:
        scores: (k,) of the systems.
        other: score of the other one.
        samples: (k, resamples) of the systems.
        other_samples: (resamples,) of the other one, from the same seed, items and groups.

    Examples:
        >>> shift = np.linspace(-1, 1, 1000)
        >>> found = paired_best(np.array([3.0, 2.0]), 1.0, np.array([3 + shift, 2 - shift]), np.ones(1000))
        >>> round(found.low, 2)
        1.02
    """
    best = int(np.argmax(scores))
    alone = paired(float(scores[best]), other, samples[best], other_samples)
    luck = (samples - other_samples - (scores - other)[:, None]).max(axis=0)
    low = alone.difference - float(np.percentile(luck, 100 * (1 + LEVEL) / 2))
    against = 1 + int(np.count_nonzero(luck >= alone.difference))
    return Difference(alone.difference, low, alone.high, min(1.0, 2 * against / (luck.size + 1)))
