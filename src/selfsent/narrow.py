"""Tables in a terminal that is narrower than they are: names and numbers are broken where they may be, or shortened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

_END = re.compile(r"(?<=[\w)\]][+/:=,_.\-])(?=[^\W\d])")
"""Ends of the parts of a name: behind a sign that stands before a letter."""
_LONGEST, _LEAST = 20, 4
"""Width up to which a part of a name gets its room, and width that every column has."""
_BORDERS = 3
"""Width of a column beside its cells: two spaces and a line."""


class Fitted:
    """A table as wide as the terminal at most.

    Where there is no room, columns of numbers keep theirs on one line as long as they can; names are broken behind a
    `/`, `+`, `:` and the like, texts between words. A part that is longer than its column loses its middle.

    Args:
        table: of `Text` cells, without title and caption.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, as rich asks for it."""
        yield self._of(options.max_width)

    def _of(self, width: int) -> Table:
        from rich.text import Text

        table = self._table
        cells = [[str(column.header), *map(str, column.cells)] for column in table.columns]
        texts = [column.justify != "right" for column in table.columns]
        room = width - _BORDERS * len(cells) - 1
        widths = fitting_widths(cells, texts, room)
        if widths is None:
            return table
        sized = zip(cells, widths, texts, strict=True)
        broken = [[broken_at(cell, most, text) for cell in column] for column, most, text in sized]
        found = copy(table)
        found.columns, found.rows = [column.copy() for column in table.columns], []
        for column, most, (heading, *_) in zip(found.columns, widths, broken, strict=True):
            column.header, column.width, column.no_wrap, column.overflow = Text(heading), most, False, "fold"
        for row, number in zip(table.rows, range(1, len(broken[0]) if broken else 1), strict=True):
            parts = (Text(column[number]) for column in broken)
            found.add_row(*parts, style=row.style, end_section=row.end_section)
        return found


def fitting_widths(cells: Sequence[Sequence[str]], texts: Sequence[bool], room: int) -> list[int] | None:
    """The width of each column in so much room for all; None where they fit as they are.

    Args:
        cells: of each column.
        texts: whether a column is one of texts; the others hold numbers.
        room: without borders.

    Examples:
        >>> fitting_widths([["bundled+words", "bm25"], ["52.10", "4.00 to 5.00"]], [True, False], 20)
        [8, 12]
    """
    whole = [max(map(_width, column), default=0) for column in cells]
    if sum(whole) <= room:
        return None
    least = [max((_width(part) for cell in column for part in _parts(cell)), default=0) for column in cells]
    widths = [min(each, _LONGEST) for each in least]
    while sum(widths) > room:
        # Names lose their middles before a number is broken.
        narrowed = [place for place, width in enumerate(widths) if texts[place] and width > _LEAST]
        narrowed = narrowed or [place for place, width in enumerate(widths) if width > 1]
        if not narrowed:
            break
        widths[max(narrowed, key=widths.__getitem__)] -= 1
    spare = room - sum(widths)
    for place in (place for place, text in enumerate(texts) if not text):
        more = whole[place] - widths[place]
        if more <= spare:  # a number on half a line is no better than one on two
            widths[place], spare = whole[place], spare - more
    while spare > 0:
        wanting = [place for place, width in enumerate(widths) if width < whole[place] and texts[place]]
        if not wanting:
            break
        widths[max(wanting, key=lambda place: whole[place] / max(1, widths[place]))] += 1
        spare -= 1
    return widths


def broken_at(text: str, width: int, shorten: bool = True) -> str:
    r"""A text in lines of at most so much width; a part without a place to break loses its middle.

    Parts in wide signs, such as Chinese ones, are left to be folded anywhere; with `shorten` off all are.

    Examples:
        >>> broken_at("bundled+words+passages:120", 16)
        'bundled+words+\npassages:120'
        >>> broken_at("incomprehensibilities", 12)
        'incomp…ities'
    """
    lines, line = list[str](), ""
    for part in _parts(text):
        if shorten and len(part.strip()) == _width(part) > width:
            kept = max(1, width - 1)
            part = f"{part[: kept - kept // 2]}…{part[len(part) - kept // 2 :]}"
        if line and _width((line + part).rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += part
    return "\n".join([*lines, line.rstrip()])


def _parts(text: str) -> list[str]:
    """The parts of a text that are never broken, with the spaces behind them."""
    return [part for word in re.findall(r"\s*\S+\s?|\s+", text) for part in _END.split(word)]


def _width(text: Any) -> int:
    """Columns of the terminal that a text takes, its last space left out."""
    from rich.cells import cell_len

    return cell_len(text.strip())
