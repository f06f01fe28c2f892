"""Display of tables on a terminal, as text in Python, and as Markdown, by the leading process."""

from __future__ import annotations

import io
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
_KEPT = "\n\u200c\u200d"
"""Line ends, and joiners needed by some scripts."""


def leads() -> bool:
    """Whether this process prints: the only one, or the first under `torchrun`.

    Works without importing torch.
    """
    return os.environ.get("RANK", "0") == "0" or os.environ.get("WORLD_SIZE", "1") == "1"


def visible(text: str) -> str:
    """A text with control and bidirectional characters escaped, except line ends."""
    if text.isprintable():
        return text
    return "".join(c if unicodedata.category(c) not in _HIDDEN or c in _KEPT else ascii(c)[1:-1] for c in text)


def counted(number: int, thing: str, things: str | None = None) -> str:
    """A number with its noun, in the singular or plural.

    Examples:
        >>> counted(1, "text"), counted(2500, "query", "queries")
        ('1 text', '2,500 queries')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    Examples:
        >>> listed(["a"]), listed(["a", "b", "c"])
        ('a', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def shortened(text: str, most: int = 500) -> str:
    """A text of at most so many characters; an ellipsis stands for the rest. A letter keeps its marks."""
    if len(text) <= most:
        return text
    end = most - 1
    while end and unicodedata.category(text[end]).startswith("M"):
        end -= 1
    return f"{text[: end or most - 1]}…"


def with_wide_title(table: Table) -> Group:
    """A table as wide as the terminal at most, with title and caption of any width."""
    from rich.console import Group
    from rich.text import Text

    from selfsent.narrow import Fitted

    bare, around = copy(table), []
    for text, style in ((table.title, "table.title"), (table.caption, "table.caption")):
        around.append([Text(visible(str(text)), style=style)] if text else [])
    bare.title = bare.caption = None
    return Group(*around[0], Fitted(bare), *around[1])


def span(low: float, high: float) -> str:
    """An interval as printed: `70.11 to 72.30`."""
    return f"{low:.2f} to {high:.2f}"


def change(difference: float, low: float, high: float) -> str:
    """A difference with its interval, as printed: `+1.20 [+0.30, +2.10]`."""
    return f"{difference:+z.2f} [{low:+z.2f}, {high:+z.2f}]"


def table_of(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Collection[int] = (0,),
    title: str = "",
    caption: str = "",
    styles: Mapping[str, str] | None = None,
    sections: Collection[int] = (),
    **options: Any,
) -> Table:
    """A terminal table with literal cells, without markup or control characters.

    Args:
        headings: one per column.
        rows: the cells of each row, as many or fewer.
        left: left-justified columns, for texts; others are right-justified.
        title: above the table, left.
        caption: below it, left.
        styles: of rows, by their first cell.
        sections: numbers of the rows that end a section.
        **options: of rich's `Table`.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), caption=caption, title_justify="left", caption_justify="left", **options)
    for number, heading in enumerate(headings):
        text = number in left
        table.add_column(Text(visible(heading)), justify="left" if text else "right", no_wrap=not text, overflow="fold")
    for number, cells in enumerate(rows):
        style = (styles or {}).get(cells[0], "")
        table.add_row(*map(Text, map(visible, cells)), style=style, end_section=number in sections)
    return table


def text_of(table: Table, lines: Iterable[str] = ()) -> str:
    """A table and lines below it as text, as wide as the terminal, for `print`."""
    from rich.console import Console

    # Otherwise notebooks and variables such as FORCE_COLOR would change the output.
    plain: dict[str, Any] = {"force_jupyter": False, "force_terminal": False, "color_system": None}
    console = Console(file=io.StringIO(), markup=False, emoji=False, highlight=False, **plain)
    console.print(with_wide_title(table))
    for line in lines:
        console.print(line, soft_wrap=True)
    return str(console.file.getvalue()).rstrip("\n")  # type: ignore[attr-defined]  # the file above


def cells_of(table: Table) -> dict[str, Any]:
    """A terminal table as plain text: `title`, `head`, `rows`, `caption`, the `right` columns and the `best` rows."""
    rows = zip(*(list(column.cells) for column in table.columns), strict=True)
    return {
        "title": str(table.title or ""),
        "head": [str(column.header) for column in table.columns],
        "right": [column.justify == "right" for column in table.columns],
        "rows": [[str(cell) for cell in row] for row in rows],
        "best": [row.style == "bold" for row in table.rows],
        "caption": str(table.caption or ""),
    }


def markdown(table: Table) -> str:
    """A terminal table as a Markdown table, its caption below."""

    def row(cells: Iterable[str]) -> str:
        return "| " + " | ".join(map(literal, cells)) + " |"

    plain = cells_of(table)
    rule = "|" + "|".join("---:" if right else "---" for right in plain["right"]) + "|"
    lines = [row(plain["head"]), rule, *map(row, plain["rows"])]
    below = plain["caption"]
    caption = ["", *(f"{line}  " for line in literal(below, "\n").split("\n"))] if below else []
    return "\n".join(lines + caption) + "\n"


def literal(text: str, newline: str = " ") -> str:
    """Text escaped for Markdown: a name may contain anything, including HTML."""
    return re.sub(r"([\\`*\[\]<|])", r"\\\1", text).replace("\n", newline)
