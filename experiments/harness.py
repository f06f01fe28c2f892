"""The frame of grid.py and proof.py: a table of runs, several processes may fill it, and no run is done twice."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from sides import keep, kept

Row = dict[str, Any]


def parser_of(about: str | None, runs: Path) -> argparse.ArgumentParser:
    """A parser of the options that both have.

    Args:
        about: the docstring of the script.
        runs: default folder of the run directories.
    """
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=runs)
    parser.add_argument("--data", help="mirror of the evaluation data sets (default: SELFSENT_DATA)")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="of N parts of the rows, run the I-th")
    parser.add_argument("--table", action="store_true", help="print what the output holds as Markdown, and run nothing")
    return parser


def fill(
    options: argparse.Namespace,
    runs_in: Callable[[Path], Iterable[tuple[str, Callable[[], Row]]]],
    figures: Callable[[Row], dict[str, float]],
    table: Callable[[dict[str, Row]], str],
) -> None:
    """Run what is missing of a recipe's rows and keep each at once, or print the table.

    Args:
        options: of `parser_of`.
        runs_in: from the folder for run directories to the key of every row, and what makes it.
        figures: the scores of a row, which are printed.
        table: the rows as Markdown.
    """
    if options.table:
        print(table(kept(options.output)))
        return
    warnings.simplefilter("ignore")
    part, parts = map(int, options.part.split("/"))
    for place, (key, run) in enumerate(runs_in(options.runs / options.recipe.stem / str(part))):
        if place % parts == part - 1 and key not in kept(options.output):
            keep(options.output, options.recipe.name, key, row := run())
            said = "  ".join(f"{name} {score:.2f}" for name, score in figures(row).items())
            print(f"{key}: {row.get('failed', said)}", flush=True)
