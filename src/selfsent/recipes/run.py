"""Run a recipe: every stage from the model of the one before, each in a directory of its own."""

from __future__ import annotations

from pathlib import Path

from selfsent.distributed import join, rank, wait
from selfsent.errors import SettingsError
from selfsent.files import write_json, write_text
from selfsent.models.bases import resolve
from selfsent.progress import Progress, shown
from selfsent.recipes.beside import STAND_INS
from selfsent.recipes.recipe import Recipe, read_recipe
from selfsent.recipes.result import StagesRun
from selfsent.recipes.runner import Runner, StageStoppedError
from selfsent.training.run_directory import RunDirectory
from selfsent.training.save import take_over

BESIDE = "beside.json"


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
    if isinstance(recipe, Recipe):
        _check_read(recipe, variant, base, seed)
    else:
        recipe = read_recipe(recipe, variant, None if base is None else str(base), seed)
    with shown(progress, quiet) as told:
        return _train_stages(recipe, output, seed, resume, overwrite, data, told)


def _train_stages(
    recipe: Recipe,
    output: str | Path,
    seed: int | None,
    resume: bool,
    overwrite: bool,
    data: str | Path | None,
    progress: Progress,
) -> StagesRun:
    join()
    directory = RunDirectory(Path(output))
    directory.check(resume, overwrite, [recipe.path, *([] if recipe.encoder else [resolve(recipe.base)])])
    runner = Runner(recipe, data, progress)
    runner.check()
    for line in runner.stood_in:
        progress.notice(line)
    asked = recipe.to_json() | ({"read": runner.read} if runner.read else {})
    directory.match({**asked, "settings": {"seed": seed}}, free=_free(recipe, directory))
    for line in (recipe.note, *recipe.warnings()):
        if line:
            progress.notice(" ".join(line.split()))
    directory.begin(steps=False)
    if rank() == 0:
        write_text(directory.path / "recipe.yaml", Path(recipe.path).read_text(encoding="utf-8"))
    try:
        stages = list(runner.run(directory.path))
        done = StagesRun(directory.path, recipe, stages, runner.stand_ins)
    except StageStoppedError as stop:
        directory.update(stopped=stop.reason, stopped_in=stop.stage)
        raise
    if rank() == 0:
        write_json(directory.path / BESIDE, [row.to_json() for row in done.beside])
        if recipe.folds is None and recipe.encoder is None:
            take_over(directory.path / "stages" / recipe.stages[-1].name, directory.path)
        about = {"figures": done.figures, "leaked": done.leaked, STAND_INS: done.stand_ins}
        directory.update(status="finished", **about, stopped=None, stopped_in=None)
    wait()
    return done


def _free(recipe: Recipe, directory: RunDirectory) -> list[str]:
    """What may be other than it was when a run was begun: stages of which nothing has come yet."""
    place, folds = directory.path / "stages", (directory.path / "folds").exists()
    begun = {stage.name for stage in recipe.stages if folds or (place / stage.name).exists()}
    # Runs of before it was kept say nothing of what they read.
    unknown = [] if "read" in directory.record.get("asked", {}) else ["read"]
    return [f"stages {stage.name}" for stage in recipe.stages if stage.name not in begun] + unknown


def _check_read(recipe: Recipe, variant: str | None, base: str | Path | None, seed: int | None) -> None:
    """Refuse what a recipe was not read with: it would be written down and not be so."""
    given = {"variant": variant, "base": None if base is None else str(base), "seed": seed}
    if seed is not None and recipe.encoder:
        raise SettingsError(f"{recipe.path} scores an encoder as it is: nothing is trained, so give no seed")
    seeds = {stage.arguments.get("seed") for stage in recipe.stages}
    read = {"variant": recipe.variant, "base": recipe.base, "seed": seeds.pop() if len(seeds) == 1 else None}
    for name, value in given.items():
        if value is not None and value != read[name]:
            raise SettingsError(f"{recipe.path} was not read with {name} {value}: give the {name} to read_recipe")


def check_data(recipe: Recipe, data: str | Path | None = None) -> None:
    """Find out what is wrong with the data of any stage, before anything runs.

    Raises:
        CorpusError: of a corpus.
        DataError: of the data set of a cross-validation, or of one scored along the way.
    """
    Runner(recipe, data, Progress()).check()
