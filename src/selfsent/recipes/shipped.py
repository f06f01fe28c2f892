"""The recipes that ship: one or more for every table of the papers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from selfsent.errors import SettingsError, guess
from selfsent.recipes.document import Section, read_document
from selfsent.recipes.recipe import Recipe, recipe_of
from selfsent.recipes.variants import RECIPE, variants_of, with_variant

SUFFIXES = (".yaml", ".yml")


def shipped() -> dict[str, Path]:
    """The files of the recipes that ship, by name."""
    folder = Path(str(resources.files("selfsent.recipes"))) / "tables"
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


@dataclass(frozen=True)
class Outline:
    """A recipe with all its variants, read without looking for bases and data.

    Args:
        name: of the recipe.
        path: its file.
        title: what it is for.
        variants: every variant, by name; one without a name where there are none.
    """

    name: str
    path: Path
    title: str
    variants: dict[str | None, Recipe]

    @property
    def repeats(self) -> list[str]:
        """The tables that its variants have rows of, and the figures they show: `IS-BERT 1`, `TSDAE figure 3`."""
        found = [
            place
            for recipe in self.variants.values()
            for place in (*(f"{row['paper']} {row['table']}" for row in recipe.published), *recipe.shows)
        ]
        return sorted(set(found))


def outline(name: str | Path) -> Outline:
    """A recipe and its variants.

    Raises:
        SettingsError: there is no such recipe, or it is not right; with file and line.
    """
    path = recipe_file(name)
    document = read_document(path)
    document.only(RECIPE, "a recipe")
    return Outline(path.stem, path, str(document.get("title", "")), dict(_variants(document)))


def _variants(document: Section) -> Iterator[tuple[str | None, Recipe]]:
    for variant in variants_of(document) or [None]:
        yield variant, recipe_of(*with_variant(document, variant), planned=False)
