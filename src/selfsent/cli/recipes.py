"""`selfsent recipes`: the tables of the papers that can be run, and what each needs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from selfsent.display import counted
from selfsent.errors import SettingsError

if TYPE_CHECKING:
    from rich.table import Table

    from selfsent.recipes.needs import Need
    from selfsent.recipes.shipped import Outline


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "recipes",
        help="list the recipes of the papers' tables, what they need, and what of it is here",
        description="List the recipes that ship: which tables of the papers they repeat, how long they take, what they"
        " need, and what of it is here. With the name of one: its variants, and where to get what is missing.",
        epilog="Print one as YAML, to change it: selfsent recipes show NAME > mine.yaml. Run one: selfsent train NAME"
        " --output DIR. Put several runs beside the papers' rows, averages over their tasks included: selfsent recipes"
        " beside DIR ... Hours are estimated, for training and scoring on one GPU of the A100's kind.",
    )
    parser.add_argument(
        "name", nargs="*", metavar="NAME", help="one recipe, or a file of your own; or show NAME; or beside DIR ..."
    )
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA)")
    parser.add_argument("--json", action="store_true", help="everything, as JSON on standard output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print all recipes, or one."""
    from selfsent import recipes
    from selfsent.cli.console import show

    names = list(options.name)
    if names[:1] == ["show"] and len(names) > 1:
        for name in names[1:]:
            sys.stdout.write(recipes.recipe_file(name).read_text(encoding="utf-8"))
        return
    if names == ["beside"]:
        raise SettingsError("beside needs the directories of runs: selfsent recipes beside DIR ...")
    if names[:1] == ["beside"]:
        if options.data:
            raise SettingsError("beside reads runs and no data sets: leave --data out")
        _show_beside(names[1:], options.json)
        return
    mirror = options.data or os.environ.get("SELFSENT_DATA")
    outlines = [recipes.outline(name) for name in names or recipes.shipped()]
    if options.json:
        plain = [describe(outline, mirror) for outline in outlines]
        sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=1) + "\n")
        return
    for outline in outlines:
        show(f"{outline.name}: {outline.title}")
        if names:
            show(_variants(outline))
            for line in _where(outline, mirror):
                show(line)
        else:
            show("\n".join(_summary(outline, mirror)))
    if not names:
        show("selfsent recipes NAME says more of one, selfsent train NAME --output DIR runs it.")


def _show_beside(runs: list[str], as_json: bool) -> None:
    """Print the published rows that runs repeat, with the scores of all of them."""
    from selfsent import recipes
    from selfsent.cli.console import show
    from selfsent.recipes.beside import tables

    rows = recipes.join_runs(runs)
    if as_json:
        sys.stdout.write(json.dumps([row.to_json() for row in rows], ensure_ascii=False, indent=1) + "\n")
        return
    for table in tables(rows):
        show(table)


def describe(outline: Outline, mirror: str | None) -> dict[str, Any]:
    """A recipe as plain data."""
    import dataclasses

    from selfsent.recipes.cost import hours_of

    return {
        "name": outline.name,
        "title": outline.title,
        "repeats": outline.repeats,
        "needs": [dataclasses.asdict(need) for need in _needs(outline, mirror)],
        "variants": {str(name or ""): {"hours": hours_of(recipe)} for name, recipe in outline.variants.items()},
    }


def _needs(outline: Outline, mirror: str | None) -> list[Need]:
    """What any variant needs, each once."""
    from selfsent.recipes.needs import needs_of

    found = [need for recipe in outline.variants.values() for need in needs_of(recipe, mirror)]
    return list({need.name: need for need in found}.values())


def _hours(outline: Outline) -> str:
    from selfsent.recipes.cost import hours_of

    ends = sorted(hours_of(recipe) for recipe in outline.variants.values())
    low, high = (f"{hours:.1f}" if hours < 10 else f"{hours:.0f}" for hours in (ends[0], ends[-1]))
    return low if low == high else f"{low} to {high}"


def _summary(outline: Outline, mirror: str | None) -> list[str]:
    """A recipe in a few lines."""
    needs = _needs(outline, mirror)
    parts = {
        "here": [need.name for need in needs if need.here],
        "on the hub": [need.name for need in needs if need.hub and not need.here],
        "missing": [need.name for need in needs if not need.hub and not need.here],
    }
    lines = [f"  repeats: {', '.join(outline.repeats) or 'no table'}"]
    lines += [f"  {counted(len(outline.variants), 'variant')} of {_hours(outline)} hours"]
    return lines + [f"  {kind}: {', '.join(_in_suites(names))}" for kind, names in parts.items() if names] + [""]


def _in_suites(names: list[str]) -> list[str]:
    """Names of tasks, all those of a suite as the suite."""
    from selfsent.evaluation.suites import SUITES

    for suite, about in SUITES.items():
        if about.tasks and set(about.tasks) <= set(names):
            names = [suite if name == about.tasks[0] else name for name in names if name not in about.tasks[1:]]
    return names


def _variants(outline: Outline) -> Table:
    from rich.box import SIMPLE
    from rich.table import Column, Table

    from selfsent.recipes.cost import hours_of

    table = Table("variant", "how", "published rows", Column("hours", justify="right"), box=SIMPLE, pad_edge=False)
    for name, recipe in outline.variants.items():
        how = recipe.encoder or ", then ".join(stage.method.name for stage in recipe.stages)
        rows = dict.fromkeys(f"{row['paper']} {row['table']}: {row['method']}" for row in recipe.published)
        shown = "\n".join([*rows, *recipe.shows])
        table.add_row(str(name or ""), how, shown, f"{hours_of(recipe):.1f}")
    return table


def _where(outline: Outline, mirror: str | None) -> list[str]:
    needs = _needs(outline, mirror)
    here = [need.name for need in needs if need.here]
    lines = [f"Here: {', '.join(here)}"] if here else []
    absent = [need for need in needs if not need.here]
    lines += [f"Not here: {need.name}: {need.where or 'no file of this name'}" for need in absent]
    return lines + ([] if absent else [f"All of it is here ({counted(len(needs), 'name')})"])
