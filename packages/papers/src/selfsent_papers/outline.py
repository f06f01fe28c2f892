"""Outlines of the shipped recipes, one or more for every table of the papers."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from selfsent.errors import SettingsError, guess
from selfsent.recipes.document import read_document
from selfsent.recipes.needs import needs_of
from selfsent.recipes.recipe import read_recipe, variants_of
from selfsent_papers import RECIPES
from selfsent_papers.reproduction import records_of


def shipped() -> dict[str, Path]:
    """The files of the shipped recipes, by name."""
    return {file.stem: file for file in sorted(RECIPES.glob("*.yaml"))}


def recipe_file(name: str | Path) -> Path:
    """The file of a recipe: a shipped one by name, any other by path.

    Raises:
        SettingsError: neither a shipped name nor the path of a YAML file.
    """
    known = shipped()
    if str(name) in known and not Path(name).is_file():
        return known[str(name)]
    if Path(name).suffix in (".yaml", ".yml"):
        return Path(name)
    raise SettingsError(f"there is no recipe {str(name)!r}; {guess(str(name), known)} (see selfsent recipes)")


def outline(name: str | Path, mirror: str | Path | None = None) -> dict[str, Any]:
    """A recipe and its variants as plain data; bases are not resolved.

    Args:
        name: a shipped one, or a file.
        mirror: of the data sets, searched for its inputs.

    Returns:
        `name` and `title`; `repeats`, the reproduced tables and figures (`IS-BERT 1`, `TSDAE figure 3`); `needs` of all
        variants, each once (see `Need`); and the `variants` by name (empty for a single one), each with its methods,
        its encoder, and the published rows and figures it reproduces.

    Raises:
        SettingsError: no such recipe, or a fault in it, with file and line.
    """
    path = recipe_file(name)
    document = read_document(path)
    repeats, needs, variants = set[str](), dict[str, Any](), dict[str, Any]()
    for variant in variants_of(document) or [None]:
        recipe = read_recipe(document, variant, planned=False)
        records = records_of(recipe)
        repeats |= {*recipe.shows, *(f"{record['paper']} {record['table']}" for record in records)}
        needs |= {need.name: dataclasses.asdict(need) for need in needs_of(recipe, mirror)}
        rows = dict.fromkeys(f"{row['paper']} {row['table']}: {row['method']}" for row in records)
        own = {"methods": [stage.method.name for stage in recipe.stages], "encoder": recipe.encoder}
        variants[variant or ""] = own | {"rows": list(rows), "shows": list(recipe.shows)}
    about = {"name": path.stem, "title": str(document.get("title", "")), "repeats": sorted(repeats)}
    return about | {"needs": list(needs.values()), "variants": variants}
