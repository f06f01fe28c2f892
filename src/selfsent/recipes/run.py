"""Run a recipe: every stage from the model of the one before, each in a directory of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.display import table_of, text_of
from selfsent.distributed import join, rank, wait
from selfsent.errors import SettingsError
from selfsent.evaluation.results import MARK, MEANING
from selfsent.files import write_text
from selfsent.models.bases import resolve
from selfsent.progress import Progress, shown
from selfsent.recipes.recipe import Recipe, read_recipe
from selfsent.recipes.runner import Runner, StageRun, StageStoppedError
from selfsent.report.run import Run
from selfsent.training.run_directory import RunDirectory
from selfsent.training.save import take_over

if TYPE_CHECKING:
    from rich.table import Table

STAND_INS = "stand_ins"
"""Under which a run keeps what took the place of the data that its recipe names."""


@dataclass
class StagesRun:
    """A recipe that has been run.

    Args:
        directory: where it lies; the last stage's model in its `model/`.
        recipe: what was run.
        stages: what came of each stage, and of the cross-validation.
        stand_ins: what took the place of the data that the recipe names, a line each.
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
    def figures(self) -> dict[str, float]:
        """Every score, by stage and task."""
        return {f"{stage.name}: {name}": value for stage in self.stages for name, value in stage.figures.items()}

    @property
    def leaked(self) -> list[str]:
        """Which of the figures are no test, because the model was trained on pairs of theirs."""
        return [f"{stage.name}: {name}" for stage in self.stages for name in stage.leaked]

    def table(self) -> Table:
        """The scores of every stage."""
        rows = (
            [stage.name, name, f"{value:.2f}{MARK if name in stage.leaked else ''}"]
            for stage in self.stages
            for name, value in stage.figures.items()
        )
        return table_of(["stage", "task", "score"], rows, left=(0, 1), caption=MEANING if self.leaked else "")

    def __str__(self) -> str:
        """What the terminal shows."""
        return text_of(self.table()) if self.figures else ""


def train_stages(
    recipe: Recipe | str | Path,
    output: str | Path = "run",
    *,
    variant: str | None = None,
    base: str | Path | None = None,
    seed: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    data: str | Path | None = None,
    progress: Progress | None = None,
    quiet: bool = False,
) -> StagesRun:
    """Train in several stages, each from the model of the one before: its pooling, head and language-model head stay.

    Args:
        recipe: a recipe, or its file.
        output: the run directory: `stages/NAME/` is an ordinary run directory for each stage, `model/` the last model.
        variant: which variant of the recipe, where it is a file; a recipe has been read with one.
        base: the encoder to start from instead of the recipe's, likewise.
        seed: of every stage instead of the recipe's, likewise.
        resume: go on with the run in `output`, in the middle of whichever stage it was.
        overwrite: throw away the run in `output`.
        data: a mirror of the data sets; without it SELFSENT_DATA.
        progress: hears all stages; by default they are shown.
        quiet: nothing is shown.

    Raises:
        SelfsentError: what is wrong with the recipe, with file and line, or with the data, before anything is written.
    """
    if not isinstance(recipe, Recipe):
        recipe = read_recipe(recipe, variant, None if base is None else str(base), seed)
    elif seed is not None and recipe.encoder:
        raise SettingsError(f"{recipe.path} scores an encoder as it is: nothing is trained, so give no seed")
    for name, value in (("variant", variant), ("base", base), ("seed", seed)):
        if value is not None and str(value) != str(getattr(recipe, name)):
            raise SettingsError(f"{recipe.path} was not read with {name} {value}: give the {name} to read_recipe")
    join()
    directory = RunDirectory(Path(output))
    directory.check(resume, overwrite, read_by(recipe))
    with shown(progress, quiet) as told:
        runner = Runner(recipe, data, told)
        runner.check()
        asked = recipe.to_json() | ({"read": runner.read} if runner.read else {})
        directory.match({**asked, "settings": {"seed": seed}}, free=_free(recipe, directory))
        for line in (*runner.stood_in, recipe.note, *recipe.warnings()):
            if line:
                told.notice(" ".join(line.split()))
        directory.begin(steps=False)
        if rank() == 0:
            write_text(directory.path / "recipe.yaml", Path(recipe.path).read_text(encoding="utf-8"))
        try:
            done = StagesRun(directory.path, recipe, list(runner.run(directory.path)), runner.stand_ins)
        except StageStoppedError as stop:
            directory.update(stopped=stop.reason, stopped_in=stop.stage)
            raise
    if rank() == 0:
        if recipe.folds is None and recipe.encoder is None:
            take_over(directory.path / "stages" / recipe.stages[-1].name, directory.path)
        about = {"figures": done.figures, "leaked": done.leaked, STAND_INS: done.stand_ins}
        directory.update(status="finished", **about, stopped=None, stopped_in=None)
    wait()
    return done


def read_by(recipe: Recipe) -> list[str | Path]:
    """What a recipe reads that an old run which is thrown away must not hold."""
    return [recipe.path, *([] if recipe.encoder else [resolve(recipe.base)])]


def _free(recipe: Recipe, directory: RunDirectory) -> list[str]:
    """What may be other than it was when a run was begun: stages of which nothing has come yet."""
    place, folds = directory.path / "stages", (directory.path / "folds").exists()
    begun = {stage.name for stage in recipe.stages if folds or (place / stage.name).exists()}
    # Runs of before it was kept say nothing of what they read.
    unknown = [] if "read" in directory.record.get("asked", {}) else ["read"]
    return [f"stages {stage.name}" for stage in recipe.stages if stage.name not in begun] + unknown


def check_data(recipe: Recipe, data: str | Path | None = None) -> None:
    """Find out what is wrong with the data of any stage, before anything runs.

    Raises:
        CorpusError: of a corpus.
        DataError: of the data set of a cross-validation, or of one scored along the way.
    """
    Runner(recipe, data, Progress()).check()
