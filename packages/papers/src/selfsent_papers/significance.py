"""Whether a difference of methods could be chance: Welch's interval over seeds, Holm's correction over claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from selfsent.errors import SettingsError


@dataclass(frozen=True)
class Difference:
    """The difference of two means, with its interval and two-sided p-value.

    Args:
        difference: the first mean less the second.
        low: lower end of the interval.
        high: its upper end.
        p: probability of a difference as large, if there is none.
        degrees: of freedom, by Welch and Satterthwaite.
    """

    difference: float
    low: float
    high: float
    p: float
    degrees: float


def welch(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> Difference:
    """The difference of two means of independent scores, with unequal variances.

    Welch, 1947. doi:10.2307/2332510.

    Args:
        first: (n₁,) scores, one for each seed.
        second: (n₂,) scores of the other method.
        level: of the interval.

    Raises:
        SettingsError: fewer than two scores on a side: one seed decides nothing.

    Examples:
        >>> welch([2.0, 4.0], [1.0, 1.0]).difference
        2.0
    """
    return contrast((first, second), (1, -1), level)


def contrast(sides: Sequence[Sequence[float]], weights: Sequence[float], level: float = 0.95) -> Difference:
    """A weighted sum of means of independent scores, with unequal variances: of four, a difference of differences.

    Σ wᵢ x̄ᵢ ± t(ν) √Σ vᵢ, vᵢ = wᵢ² sᵢ² / nᵢ, ν = (Σ vᵢ)² / Σ vᵢ² / (nᵢ − 1), by Welch and Satterthwaite.

    Scores without any variance, such as an untrained encoder's, count as known: if all are, the interval is a
    point, and p is 0, or 1 where the sum is 0.

    Args:
        sides: of each method, (nᵢ,) scores, one for each seed.
        weights: of each method.
        level: of the interval.

    Raises:
        SettingsError: fewer than two scores on a side: one seed decides nothing.
    """
    arrays = [np.asarray(side, np.float64) for side in sides]
    if min(map(len, arrays)) < 2:
        counts = " and ".join(str(len(each)) for each in arrays)
        raise SettingsError(f"{counts} scores: at least two seeds of each are needed")
    difference = float(sum(weight * each.mean() for weight, each in zip(weights, arrays, strict=True)))
    parts = np.array([w**2 * each.var(ddof=1) / len(each) for w, each in zip(weights, arrays, strict=True)])
    # Rounding in the mean of equal numbers is no variance.
    parts[[np.ptp(each) == 0 for each in arrays]] = 0.0
    if not parts.any():
        return Difference(difference, difference, difference, float(difference == 0), float("inf"))
    degrees = float(parts.sum() ** 2 / (parts**2 / [len(each) - 1 for each in arrays]).sum())
    error = float(np.sqrt(parts.sum()))
    half = error * float(t.ppf((1 + level) / 2, degrees))
    p = float(2 * t.sf(abs(difference) / error, degrees))
    return Difference(difference, difference - half, difference + half, p, degrees)


def holm(values: Sequence[float]) -> list[float]:
    """Adjusted p-values of several tests, so that one of them below 0.05 is chance in one family of twenty at most.

    The smallest is multiplied by m, the next by m − 1 ..., and none is below the one before it.

    Holm, 1979. jstor.org/stable/4615733.

    Args:
        values: (m,) p-values of all tests of a family; 1 for one that was not run.

    Raises:
        SettingsError: a value that is no probability.

    Examples:
        >>> holm([0.01, 0.5, 0.02])
        [0.03, 0.5, 0.04]
    """
    if bad := [value for value in values if not 0 <= value <= 1]:
        raise SettingsError(f"{bad[0]} is no p-value: it must be from 0 to 1")
    adjusted, highest = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = highest
    return adjusted
