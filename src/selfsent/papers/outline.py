"""The recipes that ship, one or more for every table of the papers, and a rough estimate of how long they take."""

from __future__ import annotations

import dataclasses
from importlib import resources
from pathlib import Path
from typing import Any

from selfsent.errors import SelfsentError, SettingsError, guess
from selfsent.papers.reproduction import records_of
from selfsent.recipes.document import read_document
from selfsent.recipes.needs import needs_of, place_of
from selfsent.recipes.parts import names_of
from selfsent.recipes.recipe import Recipe, read_recipe, variants_of
from selfsent.recipes.stage import FOLD, Stage
from selfsent.settings import Settings

SUFFIXES = (".yaml", ".yml")
STEP = 0.04
"""Seconds that a step takes at least on a GPU, however small it is."""
RATE = 150_000
"""Tokens that a GPU of the A100's kind trains a base encoder on in a second, in half precision."""
TOKENS = 20
"""Tokens of a sentence, in the papers' data."""
SCORING = 0.02
"""Hours that a task takes to score."""
_UNKNOWN = 100_000
"""Rows of a corpus of which nothing is known."""
_LARGER = {"large": 3.5, "distil": 0.5, "bundled": 0.05, "gru:": 0.5, "lstm:": 0.5, "table": 0.05}
"""Work for a token, by a part of an encoder's name, as a multiple of a base encoder's."""


def shipped() -> dict[str, Path]:
    """The files of the recipes that ship, by name."""
    folder = Path(str(resources.files("selfsent.papers"))) / "tables"
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def recipe_file(name: str | Path) -> Path:
    """The file of a recipe: one that ships by its name, any other by its path.

    Raises:
        SettingsError: none that ships has this name, and it is no path of a recipe.
    """
    known = shipped()
    if str(name) in known and not Path(name).is_file():
        return known[str(name)]
    if Path(name).suffix in SUFFIXES:
        return Path(name)
    raise SettingsError(f"there is no recipe {str(name)!r}; {guess(str(name), known)} (see selfsent recipes)")


def outline(name: str | Path, mirror: str | Path | None = None) -> dict[str, Any]:
    """A recipe and its variants, read without looking for bases, as plain data.

    Args:
        name: one that ships, or a file.
        mirror: of the data sets, in which what it needs is looked for.

    Returns:
        `name` and `title`; what it `repeats`: tables that its variants have rows of, and figures (`IS-BERT 1`, `TSDAE
        figure 3`); what any variant `needs`, each once (see `Need`); and the `variants` by name (empty where there is
        one alone), each with its methods, the published rows it repeats, and the hours it may take on one GPU.

    Raises:
        SettingsError: there is no such recipe, or it is not right; with file and line.
    """
    path = recipe_file(name)
    document = read_document(path)
    repeats, needs, variants = set[str](), dict[str, Any](), dict[str, Any]()
    for variant in variants_of(document) or [None]:
        recipe = read_recipe(document, variant, planned=False)
        records = records_of(recipe)
        repeats |= {*recipe.shows, *(f"{record['paper']} {record['table']}" for record in records)}
        needs |= {need.name: dataclasses.asdict(need) for need in needs_of(recipe, mirror)}
        variants[variant or ""] = {
            "hours": hours_of(recipe),
            "methods": [stage.method.name for stage in recipe.stages],
            "encoder": recipe.encoder,
            "rows": list(dict.fromkeys(f"{row['paper']} {row['table']}: {row['method']}" for row in records)),
            "shows": list(recipe.shows),
        }
    about = {"name": path.stem, "title": str(document.get("title", "")), "repeats": sorted(repeats)}
    return about | {"needs": list(needs.values()), "variants": variants}


def hours_of(recipe: Recipe) -> float:
    """Hours on one GPU for training and scoring."""
    folds = 1 if recipe.folds is None else 10 if recipe.folds.by == "10-fold" else 3
    work = next((factor for part, factor in _LARGER.items() if part in recipe.base.lower()), 1.0)
    training = sum(_seconds(stage, work) * (folds if stage.source == FOLD else 1) for stage in recipe.stages)
    tasks = [*names_of(recipe.tasks), *(task for stage in recipe.stages for task in names_of(stage.tasks))]
    return training / 3600 + SCORING * len(tasks)


def _seconds(stage: Stage, work: float) -> float:
    method, told, preset = stage.method, stage.arguments, stage.arguments.get("preset")
    # Settings as far as they can be known without the base: those of the preset, then the stage's own.
    settings = method.published if preset else method.defaults
    for changes in (method.preset(preset), told):
        known = {item.name for item in dataclasses.fields(Settings)}
        settings = settings.but(**{name: value for name, value in changes.items() if name in known})
    batch = settings.batch_size
    rows = sum(int(place_of(name).get("rows", _UNKNOWN)) for name in stage.sources if name != FOLD) or 3000
    rows *= 2 if stage.reading.get("stack") else 1
    rows = min(rows, int(told.get("sentences") or rows))
    if budget := told.get("budget"):
        return float(budget)
    if method.closed_form:
        return rows * TOKENS / (3 * RATE) * work
    steps = settings.steps or rows * float(settings.epochs or 1) / batch
    try:
        views = len(method.options().views())
    except SelfsentError:  # an option that must be given
        views = 2
    tokens = batch * max(views, 1) * TOKENS
    return float(steps) * max(STEP * max(work, 0.25), tokens / RATE * work)
