"""Extensions: commands, methods, models and recipes of other installed packages, found by their entry points.

A package announces them in its `pyproject.toml`; nothing of it is imported before it is used:

    [project.entry-points."selfsent.commands"]
    recipes = "selfsent_papers.command:Recipes"              # a subclass of `selfsent.cli.options.Command`

    [project.entry-points."selfsent.methods"]
    skip-thoughts = "selfsent_papers.sdae:SkipThoughts"   # a subclass of `selfsent.methods.MethodOptions`

    [project.entry-points."selfsent.bases"]
    gru = "selfsent_papers.recurrent:make_recurrent"         # from a name such as `gru:2400` to the directory of a base

    [project.entry-points."selfsent.architectures"]
    selfsent-recurrent = "selfsent_papers.recurrent:RecurrentModel"   # a `model_type` that its import registers

    [project.entry-points."selfsent.scorers"]
    dbow = "selfsent_papers.paragraph_vectors:ParagraphVectors"   # of (`dbow`, FILE): a function from texts to vectors

    [project.entry-points."selfsent.translators"]
    apertium = "selfsent_papers.apertium:Apertium"           # of two languages: from texts to texts; `path` is its file

    [project.entry-points."selfsent.recipes"]
    papers = "selfsent_papers:RECIPES"                       # a `Path`: a folder of YAML files

    [project.entry-points."selfsent.published"]              # see `published`
    rows = "selfsent_papers.published:Published"
    records = "selfsent_papers.reproduction:records_of"
    tables = "selfsent_papers.reproduction:tables_of_runs"
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from selfsent.errors import SettingsError, first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PAPERS = "selfsent-papers"
"""The extension in this repository."""


@cache
def announced(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group, such as `methods`, by name; the first package with a name counts."""
    from importlib.metadata import entry_points  # takes 40 ms

    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=f"selfsent.{group}"), key=lambda point: point.name):
        found.setdefault(point.name, point)
    return found


def load(group: str, name: str) -> Any:
    """The object that an entry point names.

    Raises:
        SettingsError: its package cannot be imported.
    """
    point = announced(group)[name]
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        package = point.dist.name if point.dist else point.module
        problem = f"{name} of the package {package} cannot be loaded: {first_line(error)}"
        raise SettingsError(f"{problem}; install it again, or uninstall it") from None


def prefixed(group: str, name: str) -> tuple[str, str] | None:
    """Kind and rest of a name such as `gru:2400`, where an entry point of the group has its kind; else None."""
    kind, _, rest = name.partition(":")
    return (kind, rest) if kind in announced(group) else None


def published(name: str) -> Any:
    """A function or class over published results: `rows`, `records` or `tables`; None without a package that has them.

    `rows(suite)` holds the rows of a suite, to show below results; `records(recipe)` gives the published numbers that
    a recipe repeats, and checks its `published`; `tables(directories)` gives tables of finished runs beside them.
    """
    return load("published", name) if name in announced("published") else None


def hint(comes: str) -> str:
    """The end of an error about a thing that the papers' package has; empty where it is installed.

    Args:
        comes: such as `it comes`.
    """
    return "" if announced("published") else f"; {comes} with the package {PAPERS} (docs/papers.md)"
