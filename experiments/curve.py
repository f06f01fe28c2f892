"""The curve of a training run: all tasks scored every so many steps, kept as it grows, and gone on with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.errors import RunError
from selfsent.models.encoder import Encoder
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory


class PlateauError(Exception):
    """The curve of a run rises no more."""


class Curve:
    """Scores on all tasks along a run.

    Args:
        score: gives the score of an encoder on each task, first of its figures.
        every: steps between two scorings.
        plateau: scorings without a new best mean over the tasks, after which a run ends; inf for never.
        scores: what is known of the curve from a run that was stopped.
        keep: is told what is known of the run, each time it is scored.

    Raises:
        PlateauError: when scored, and a run ends for that.
    """

    def __init__(
        self,
        score: Callable[[Encoder], dict[str, Any]],
        every: int,
        plateau: float,
        scores: list[dict[str, float]],
        keep: Callable[[dict[str, Any]], None],
    ) -> None:
        self.score, self.every, self.plateau, self.scores, self.keep = score, every, plateau, scores, keep

    def begun(self, runs: Path, identity: dict[str, Any]) -> RunDirectory | None:
        """The run that was stopped, where it lies there and all its scores are known; other scores are forgotten.

        Args:
            runs: the run directory.
            identity: what the run was asked for.
        """
        directory = RunDirectory(runs)
        try:
            directory.check(resume=True, overwrite=False)
            directory.match(identity)
        except RunError:  # another row's
            directory.resumed = False
        newest = directory.newest_checkpoint(print) if directory.resumed else None
        done = int(newest.name.removeprefix("step-")) // self.every if newest else 0
        goes_on = 0 < done <= len(self.scores)
        self.scores = self.scores[:done] if goes_on else []
        return directory if goes_on else None

    def __call__(self, encoder: Encoder) -> float:
        """Score once more; the mean over the tasks."""
        self.scores.append({task: round(float(score[0]), 4) for task, score in self.score(encoder).items()})
        self.keep(self.so_far())
        means = [float(np.mean(list(point.values()))) for point in self.scores]
        if len(means) - 1 - int(np.argmax(means)) >= self.plateau:
            raise PlateauError
        return means[-1]

    def so_far(self) -> dict[str, Any]:
        """What is known of the run: its steps, the curve, and the scores at its end."""
        last = {task: [score] for task, score in self.scores[-1].items()}
        return {"steps": len(self.scores) * self.every, "curve": self.scores, "scores": last}

    def along(self) -> RunConfig:
        """The run that this curve is drawn of."""
        return RunConfig(checkpoint_every=self.every, scorer=self, dev_every=self.every)
