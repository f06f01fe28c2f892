"""An encoder that was trained for a comparison, once or with several seeds, and how it was judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from selfsent.comparison.bases import UNTRAINED
from selfsent.evaluation.results import Score
from selfsent.evaluation.side_by_side import mean_score
from selfsent.evaluation.stats.resampling import Difference
from selfsent.report.run import Run
from selfsent.training.budget import FEW


@dataclass(frozen=True)
class Candidate:
    """An encoder that was trained, and judged on the development documents.

    Args:
        name: what it is called.
        runs: its runs, which differ in their seeds.
        scores: of each run on the development documents.
        base: the score of its base, untrained, on them.
        start: what that is called.
    """

    name: str
    runs: tuple[Run, ...]
    scores: tuple[Score, ...]
    base: Score
    start: str = UNTRAINED

    @property
    def run(self) -> Run:
        """The run with the best score, the earliest of them."""
        return self.runs[max(range(len(self.runs)), key=lambda number: self.scores[number].score)]

    @cached_property
    def score(self) -> Score:
        """The score of the run, or the mean over its seeds."""
        return mean_score(self.scores) if len(self.scores) > 1 else self.scores[0]

    @cached_property
    def gain(self) -> Difference:
        """That score minus the untrained base's, paired."""
        return self.score.minus(self.base)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the scores over seeds (n − 1); None for a single one."""
        return float(np.std([score.score for score in self.scores], ddof=1)) if len(self.scores) > 1 else None

    @property
    def takes_steps(self) -> bool:
        """Whether it is trained; what is fitted is the same with every seed, and done once."""
        return any(run.record.get("steps") for run in self.runs)

    @property
    def hurried(self) -> int | None:
        """The steps of the shortest of its runs, if it was a budget's clock that left so few; else None."""
        by_clock = [run for run in self.runs if run.record.get("asked", {}).get("settings", {}).get("budget")]
        steps = [int(run.record["steps"]) for run in by_clock if run.record.get("steps")]
        return min(steps) if steps and min(steps) < FEW else None

    @property
    def shown(self) -> str:
        """The score as it is printed: `37.65`, or over seeds `37.65 ± 0.31`."""
        return f"{self.score.score:.2f}" + ("" if self.deviation is None else f" ± {self.deviation:.2f}")


def seed_of(run: Run) -> int:
    """The seed that a run was asked for."""
    return int(run.record["asked"]["settings"]["seed"])
