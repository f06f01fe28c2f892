"""Finished runs of recipes: their scores by stage."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from rich.table import Table

from selfsent.display import table_of, text_of
from selfsent.evaluation.results import AVERAGE, MARK, MEANING
from selfsent.recipes.recipe import Recipe
from selfsent.report.run import Run


@dataclasses.dataclass
class StageRun:
    """A finished stage.

    Args:
        name: of the stage.
        run: its run; None within folds.
        evaluation: scores of its model, from `Result.to_json`; None without any.
    """

    name: str
    run: Run | None
    evaluation: dict[str, Any] | None = None

    @property
    def figures(self) -> dict[str, float]:
        """Scores by task, their average, and the scores of the run."""
        scored = self.evaluation or {}
        found = {task: float(score["score"]) for task, score in scored.get("scores", {}).items()}
        found |= {AVERAGE: float(scored[AVERAGE])} if scored.get(AVERAGE) is not None else {}
        if self.run and self.run.search_scores:
            found["search"] = float(self.run.search_scores["with_words"]["score"])
        return found | ({"context": float(self.run.scores["trained"]["score"])} if self.run and self.run.scores else {})

    @property
    def leaked(self) -> list[str]:
        """Names of contaminated scores: the model was trained on their pairs."""
        scored = self.evaluation or {}
        found = [task for task, score in scored.get("scores", {}).items() if score.get("leaked")]
        return found + ([AVERAGE] if scored.get("average_leaked") else [])


@dataclasses.dataclass
class StagesRun:
    """A finished run of a recipe.

    Args:
        directory: of the run, with the last stage's model in `model/`.
        recipe: of the run.
        stages: of the run, including the cross-validation.
        stand_ins: replacements of the recipe's data, a line each.
    """

    directory: Path
    recipe: Recipe
    stages: list[StageRun]
    stand_ins: list[str]

    @property
    def model(self) -> Any:
        """The trained model, an ordinary SentenceTransformer."""
        return Run(self.directory, {}).model

    @property
    def figures(self) -> dict[str, float]:
        """Every score, by stage and task."""
        return {f"{stage.name}: {name}": value for stage in self.stages for name, value in stage.figures.items()}

    @property
    def leaked(self) -> list[str]:
        """Names of contaminated scores: the model was trained on their pairs."""
        return [f"{stage.name}: {name}" for stage in self.stages for name in stage.leaked]

    def table(self) -> Table:
        """The scores of every stage."""
        scores = ((stage, name, value) for stage in self.stages for name, value in stage.figures.items())
        rows = ([stage.name, name, f"{value:.2f}{MARK * (name in stage.leaked)}"] for stage, name, value in scores)
        return table_of(["stage", "task", "score"], rows, left=(0, 1), caption=MEANING if self.leaked else "")

    def __str__(self) -> str:
        """The table as text."""
        return text_of(self.table()) if self.figures else ""
