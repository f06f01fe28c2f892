"""How long a recipe may take, by its steps and the size of its encoder: a rough estimate, not a measurement."""

from __future__ import annotations

import dataclasses

from selfsent.errors import SelfsentError
from selfsent.recipes.needs import place_of
from selfsent.recipes.parts import names_of
from selfsent.recipes.recipe import Recipe
from selfsent.recipes.stage import FOLD, Stage
from selfsent.settings import Settings

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


def hours_of(recipe: Recipe) -> float:
    """Hours on one GPU for training and scoring."""
    folds = 1 if recipe.folds is None else 10 if recipe.folds.by == "10-fold" else 3
    work = next((factor for part, factor in _LARGER.items() if part in recipe.base.lower()), 1.0)
    training = sum(_seconds(stage, work) * (folds if stage.source == FOLD else 1) for stage in recipe.stages)
    tasks = [*names_of(recipe.tasks), *(task for stage in recipe.stages for task in names_of(stage.tasks))]
    return training / 3600 + SCORING * len(tasks)


def _seconds(stage: Stage, work: float) -> float:
    method, told = stage.method, stage.arguments
    settings = _settings(stage)
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


def _settings(stage: Stage) -> Settings:
    """Settings of a stage as far as they can be known without its base: those of its preset, then its own."""
    method, preset = stage.method, stage.arguments.get("preset")
    known = {item.name for item in dataclasses.fields(Settings)}
    settings = method.published if preset else method.defaults
    for changes in (method.preset(preset), stage.arguments):
        settings = settings.but(**{name: value for name, value in changes.items() if name in known})
    return settings
