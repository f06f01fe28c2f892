"""The scores of several runs in the rows of the papers: what is averaged over domains, each a run of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from selfsent.errors import RunError
from selfsent.evaluation.datasets.published import Record
from selfsent.files import read_json
from selfsent.recipes.beside import STAND_INS, Beside, beside, over, scored
from selfsent.recipes.document import read_document
from selfsent.recipes.recipe import recipe_of
from selfsent.recipes.seeds import seeds_of
from selfsent.recipes.variants import with_variant


def join_runs(places: Iterable[str | Path]) -> list[Beside]:
    """The published rows of finished runs of recipes, each row with the scores of all the runs that repeat it.

    TSDAE's tables have an average over four domains in each row, and a domain is a run: with all four of them here the
    average is compared, too.

    Args:
        places: run directories of recipes, or of several seeds of one.

    Returns:
        The rows in the order of the runs.

    Raises:
        RunError: a directory holds no finished run of a recipe, or two of them score the same task in one row.

    Example:
        rows = join_runs(["runs/askubuntu", "runs/cqadupstack", "runs/twitterpara", "runs/scidocs"])
    """
    rows: dict[str, tuple[tuple[Record, ...], dict[str, dict[str, Any]]]] = {}
    come_from: dict[tuple[str, str], Path] = {}
    for place in map(Path, places):
        published, base, scores = _read(place)
        if not published:
            raise RunError(f"{place} repeats no row of the papers: its recipe names none under published")
        row = json.dumps([base, published], sort_keys=True)
        for task in scores:
            other = come_from.setdefault((row, task), place)
            if other is not place:
                raise RunError(f"{other} and {place} both score {task} in one row: give one of them")
        rows.setdefault(row, (published, {}))[1].update(scores)
    return [found for published, scores in rows.values() for found in beside(published, scores)]


def _read(place: Path) -> tuple[tuple[Record, ...], str, dict[str, dict[str, Any]]]:
    """What a run repeats, from which base, and the scores of its last model; over seeds their means."""
    seeds = seeds_of(place)
    run = place / "seeds" / str(next(iter(seeds.figures))) if seeds.figures else place
    record = read_json(run / "run.json")
    if read_json(place / "run.json").get("status") != "finished" or not (run / "recipe.yaml").is_file():
        raise RunError(f"{place} holds no finished run of a recipe")
    asked = record.get("asked", {})
    document, variant = with_variant(read_document(run / "recipe.yaml"), asked.get("variant"))
    recipe = recipe_of(document, variant, base=asked.get("base"), planned=False)
    if seeds.figures:
        return recipe.published, recipe.base, over(seeds, recipe.last)
    about = {STAND_INS: record.get(STAND_INS, [])}
    return recipe.published, recipe.base, {task: {**score, **about} for task, score in scored(run, recipe.last).items()}
