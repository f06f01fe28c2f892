"""How well a way to score rankings without labels agrees with judged queries, with intervals over queries and sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Scores = NDArray[np.float64]
"""(rankings, queries)."""
FEW, SUBSETS = 5, 1000
"""Rankings that somebody compares, and how many such choices are tried."""
FIGURES = ("rank correlation", "regret", "regret of five", "decided", "agreeing", "contradicted")
_Z = 1.96


@dataclass(frozen=True)
class Side:
    """Scores of rankings on queries, which are chosen by `choose` and compared on `compare`; both may be the same."""

    choose: Scores
    compare: Scores


@dataclass(frozen=True)
class Case:
    """A way to score rankings of one set, and the truth."""

    side: Side
    judged: Scores


def agreement(case: Case, rng: np.random.Generator | None = None) -> dict[str, float]:
    """How well a way agrees with judged queries.

    `regret` is of the best of all by `choose`, `regret of five` the mean over random fives, in points. `decided` are
    the pairs whose paired 95 % interval on `compare` excludes zero, in percent; of these `agreeing` are ordered as by
    judged queries, and of `contradicted` ones these decide the opposite.

    Args:
        case: a way and the truth.
        rng: draws the queries anew (bootstrap); None for those at hand.
    """
    once = case.side.choose is case.side.compare
    mean, decided = _decisions(case.side.compare, rng)
    picked = mean if once else _decisions(case.side.choose, rng)[0]
    truth, known = _decisions(case.judged, rng)
    both = (picked + mean) / 2
    fives = _fives(len(truth))
    found = np.take_along_axis(fives, picked[fives].argmax(1)[:, None], 1)[:, 0]
    one, other = np.triu_indices(len(truth), 1)
    agree = np.sign(mean[one] - mean[other]) == np.sign(truth[one] - truth[other])
    yes = decided[one, other]
    return {
        "rank correlation": float(np.corrcoef(rankdata(both), rankdata(truth))[0, 1]),
        "regret": float(truth.max() - truth[picked.argmax()]),
        "regret of five": float((truth[fives].max(1) - truth[found]).mean()),
        "decided": 100 * float(yes.mean()),
        "agreeing": 100 * float(agree[yes].mean()) if yes.any() else np.nan,
        "contradicted": 100 * float((~agree & known[one, other])[yes].mean()) if yes.any() else np.nan,
    }


def with_intervals(cases: Sequence[Case], samples: int = 500) -> Mapping[str, list[float]]:
    """Means over sets, with 95 % intervals: sets are drawn, and queries within them (hierarchical bootstrap).

    Args:
        cases: a way and the truth, for each set.
        samples: resamples.
    """
    rng = np.random.default_rng(0)
    means = _mean([agreement(case) for case in cases])
    drawn = [
        _mean([agreement(cases[number], rng) for number in rng.integers(len(cases), size=len(cases))])
        for _ in range(samples)
    ]
    ends = {name: np.nanpercentile([each[name] for each in drawn], [2.5, 97.5]) for name in FIGURES}
    return {name: [round(float(value), 3) for value in (means[name], *ends[name])] for name in FIGURES}


def _mean(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.nanmean([each[name] for each in found])) for name in FIGURES}


def _decisions(scores: Scores, rng: np.random.Generator | None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Means (rankings,), and which pairs have an interval without zero; of queries drawn anew where there is an rng."""
    even = np.full(scores.shape[1], 1 / scores.shape[1])
    weights = even if rng is None else rng.multinomial(len(even), even) / len(even)
    means = scores @ weights
    moments = (scores * weights) @ scores.T - np.outer(means, means)
    own = np.diag(moments)
    error = np.sqrt(np.maximum(own[:, None] + own[None] - 2 * moments, 0) / max(1, scores.shape[1] - 1))
    return means, np.abs(means[:, None] - means[None]) > np.maximum(_Z * error, 1e-9)


@cache
def _fives(count: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(0)
    return np.array([rng.choice(count, min(FEW, count), replace=False) for _ in range(SUBSETS)])
