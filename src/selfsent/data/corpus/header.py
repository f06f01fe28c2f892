"""The columns that a table has, held against those that are wanted."""

from __future__ import annotations

from selfsent.data.corpus.batch import Columns
from selfsent.data.corpus.streams import fail

_SHOWN_COLUMNS = 20


def check_header(header: list[str], name: str, columns: Columns) -> None:
    """Refuse a table that lacks a wanted column, or has it twice.

    Raises:
        CorpusError: it does.
    """
    for wanted in columns.wanted:
        if wanted not in header:
            fail(name, missing_column(wanted, header, "column"))
        if header.count(wanted) > 1:
            fail(name, f"{header.count(wanted)} columns are called {wanted!r}: rename all but one")


def missing_column(wanted: str, found: list[str], kind: str) -> str:
    """What to say when a column (or field) is not among those found."""
    shown = ", ".join(repr(column[:40]) for column in found[:_SHOWN_COLUMNS])
    more = f" and {len(found) - _SHOWN_COLUMNS} more" if len(found) > _SHOWN_COLUMNS else ""
    flags = "--text-column, --text-columns, --document-column and the like"
    several = set(wanted.split(",")) - {wanted} <= set(found) and "," in wanted
    advice = "to join columns, give --text-column once for each" if several else f"name the right one ({flags})"
    return f"no {kind} {wanted!r}; it has {shown or 'none'}{more}: {advice}"
