"""`selfsent recipes`: the tables of the papers that can be run, and what each needs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from selfsent.display import counted, table_of
from selfsent.errors import SettingsError

if TYPE_CHECKING:
    from rich.table import Table


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "recipes",
        help="list the recipes of the papers' tables, what they need, and what of it is here",
        description="List the recipes that ship: which tables of the papers they repeat, what they need,"
        " and what of it is here. With the name of one: its variants, and where to get what is missing.",
        epilog="Print one as YAML, to change it: selfsent recipes show NAME > mine.yaml. Run one: selfsent train NAME"
        " --output DIR. Put several runs beside the papers' rows, averages over their tasks included: selfsent recipes"
        " beside DIR ...",
    )
    parser.add_argument(
        "name", nargs="*", metavar="NAME", help="one recipe, or a file of your own; or show NAME; or beside DIR ..."
    )
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA)")
    parser.add_argument("--json", action="store_true", help="everything, as JSON on standard output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print all recipes, or one."""
    from selfsent.cli.console import show
    from selfsent.papers import outline, reproduction

    names = list(options.name)
    if names[:1] == ["show"] and len(names) > 1:
        for name in names[1:]:
            sys.stdout.write(outline.recipe_file(name).read_text(encoding="utf-8"))
        return
    if names[:1] == ["beside"]:
        if len(names) < 2:
            raise SettingsError("beside needs the directories of runs: selfsent recipes beside DIR ...")
        if options.data:
            raise SettingsError("beside reads runs and no data sets: leave --data out")
        rows = reproduction.join_runs(names[1:])
        if options.json:
            _write([row.to_json() for row in rows])
        for table in reproduction.tables(rows) if not options.json else ():
            show(table)
        return
    mirror = options.data or os.environ.get("SELFSENT_DATA")
    outlines = [outline.outline(name, mirror) for name in names or outline.shipped()]
    if options.json:
        _write(outlines)
        return
    for each in outlines:
        show(f"{each['name']}: {each['title']}")
        if names:
            show(_variants(each["variants"]))
        show("\n".join(_where(each["needs"]) if names else _summary(each)))
    if not names:
        show("selfsent recipes NAME says more of one, selfsent train NAME --output DIR runs it.")


def _write(plain: Any) -> None:
    sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=1) + "\n")


def _summary(outline: dict[str, Any]) -> list[str]:
    """A recipe in a few lines."""
    from selfsent.evaluation.suites import SUITES

    lines = [f"  repeats: {', '.join(outline['repeats']) or 'no table'}"]
    lines += [f"  {counted(len(outline['variants']), 'variant')}"]
    parts: dict[str, list[str]] = {"here": [], "on the hub": [], "missing": []}
    for need in outline["needs"]:
        parts["here" if need["here"] else "on the hub" if need["hub"] else "missing"].append(need["name"])
    for kind, names in parts.items():
        for suite, about in SUITES.items():  # all tasks of a suite as the suite
            if about.tasks and set(about.tasks) <= set(names):
                names = [suite if name == about.tasks[0] else name for name in names if name not in about.tasks[1:]]
        lines += [f"  {kind}: {', '.join(names)}"] if names else []
    return [*lines, ""]


def _variants(variants: dict[str, Any]) -> Table:
    from rich.box import SIMPLE

    cells = []
    for name, about in variants.items():
        how, rows = about["encoder"] or ", then ".join(about["methods"]), "\n".join([*about["rows"], *about["shows"]])
        cells.append([name, how, rows])
    headings = ["variant", "how", "published rows"]
    return table_of(headings, cells, left=(0, 1, 2), box=SIMPLE, pad_edge=False)


def _where(needs: list[dict[str, Any]]) -> list[str]:
    here = [need["name"] for need in needs if need["here"]]
    absent = [
        f"Not here: {need['name']}: {need['where'] or 'no file of this name'}" for need in needs if not need["here"]
    ]
    lines = [f"Here: {', '.join(here)}"] if here else []
    return [*lines, *(absent or [f"All of it is here ({counted(len(needs), 'name')})"])]
