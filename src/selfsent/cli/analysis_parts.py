"""What the analyses of `selfsent analyse` have in common: options, and where the result goes."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_fast_options
from selfsent.cli.outputs import check_outputs, write_outputs

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table


def add_common(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], None]) -> None:
    """Add what every analysis of models takes."""
    parser.add_argument("--plot", action="append", default=[], metavar="FILE", help=".png or .svg; may be repeated")
    parser.add_argument("--json", metavar="FILE", help="everything, as one object; - for standard output alone")
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA, then the hub)")
    add_fast_options(parser)
    parser.set_defaults(run=run)


def check_files(options: argparse.Namespace) -> None:
    """Refuse, before any work, a file that cannot be written or that is read."""
    from selfsent.report.plots import check_plots

    given = [getattr(options, name, None) for name in ("pairs", "labelled")]
    given += [*getattr(options, "corpus", ()), *(getattr(options, "without", None) or ())]
    check_outputs({"--json": options.json, **{f"--plot {path}": path for path in options.plot}}, given)
    check_plots(options.plot)


def plain_of(found: Any) -> Any:
    """A result as plain data: dataclasses as dictionaries, at any depth."""
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        return dataclasses.asdict(found)
    if isinstance(found, dict):
        return {name: plain_of(one) for name, one in found.items()}
    return [plain_of(one) for one in found]


def table_of(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table, the first column to the left and the numbers to the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(caption_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(Text(heading), justify="right" if number else "left")
    for cells in rows:
        table.add_row(*map(Text, cells))
    return table


def finish(options: argparse.Namespace, table: Table, plain: Any, plot: Callable[[], Figure] | None) -> None:
    """Draw the plots that were asked for, and write the result as JSON, or show it as a table."""
    from selfsent.cli.console import notice, show
    from selfsent.report.plots import save

    if plot and options.plot:
        figure = plot()
        for path in options.plot:
            save(figure, path)
            notice(f"the plot is in {path}")
    if not write_outputs({options.json: lambda: json.dumps(plain, ensure_ascii=False) + "\n"}):
        show(table)
