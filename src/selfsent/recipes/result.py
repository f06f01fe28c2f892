"""What came of a recipe: its stages and their scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.display import text_of
from selfsent.evaluation.results import MARK, MEANING
from selfsent.recipes.beside import STAND_INS, Beside, beside, tables
from selfsent.recipes.recipe import Recipe
from selfsent.report.run import Run

if TYPE_CHECKING:
    from rich.table import Table


@dataclass
class StageRun:
    """A stage that is done.

    Args:
        name: of the stage.
        run: its run, None within folds.
        evaluation: what its model scored, as `Result.to_json` gives it; None where nothing was asked or is at hand.
    """

    name: str
    run: Run | None
    evaluation: dict[str, Any] | None = None


@dataclass
class StagesRun:
    """A recipe that has been run.

    Args:
        directory: where it lies; the last stage's model in its `model/`.
        recipe: what was run.
        stages: what came of each stage, and of the cross-validation.
        stand_ins: what took the place of the paper's data, a line each.
    """

    directory: Path
    recipe: Recipe
    stages: list[StageRun] = field(default_factory=list)
    stand_ins: list[str] = field(default_factory=list)

    @property
    def model(self) -> Any:
        """The trained model, an ordinary SentenceTransformer."""
        return Run(self.directory, {}).model

    @property
    def beside(self) -> list[Beside]:
        """The published numbers that the recipe names, each with what the last model scored."""
        scores = (self.stages[-1].evaluation or {}).get("scores", {}) if self.stages else {}
        about = {STAND_INS: self.stand_ins}
        return beside(self.recipe.published, {task: {**score, **about} for task, score in scores.items()})

    def table(self) -> Table:
        """The scores of every stage."""
        from rich.table import Column, Table

        table = Table("stage", "task", Column("score", justify="right"), caption_justify="left")
        for name, value in self.figures.items():
            stage, _, task = name.partition(": ")
            table.add_row(stage, task, f"{value:.2f}{MARK if name in self.leaked else ''}")
        table.caption = MEANING if self.leaked else None
        return table

    def tables(self) -> list[Table]:
        """The scores, and those published beside ours; what is empty is left out."""
        shown = [self.table()] if self.figures else []
        return [*shown, *tables(self.beside)]

    def __str__(self) -> str:
        """What the terminal shows."""
        return "\n".join(text_of(table) for table in self.tables())

    @property
    def figures(self) -> dict[str, float]:
        """Every score, by stage and task."""
        found: dict[str, float] = {}
        for stage in self.stages:
            for task, score in (stage.evaluation or {}).get("scores", {}).items():
                found[f"{stage.name}: {task}"] = float(score["score"])
            if stage.evaluation and stage.evaluation.get("average") is not None:
                found[f"{stage.name}: average"] = float(stage.evaluation["average"])
            if stage.run and stage.run.search:
                found[f"{stage.name}: search"] = float(stage.run.search["with_words"]["score"])
            if stage.run and stage.run.scores:
                found[f"{stage.name}: context"] = float(stage.run.scores["trained"]["score"])
        return found

    @property
    def leaked(self) -> list[str]:
        """Which of the figures are no test, because the model was trained on pairs of theirs."""
        found: list[str] = []
        for stage in self.stages:
            scores = (stage.evaluation or {}).get("scores", {})
            found += [f"{stage.name}: {task}" for task, score in scores.items() if score.get("leaked")]
            found += [f"{stage.name}: average"] if (stage.evaluation or {}).get("average_leaked") else []
        return found
