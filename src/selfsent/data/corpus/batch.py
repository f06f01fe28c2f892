"""Batches of rows from readers, and the validation of their values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.failure import fail

_T = TypeVar("_T")
BATCH_ROWS, BATCH_CHARACTERS = 8192, 1 << 23
KINDS: dict[str, type] = {kind.__name__: kind for kind in (bool, int, float, str)}
"""Types of cells that rows carry, by their names."""
PARTS = ("sentence", "passage")
"""Names of what texts are split into, and of the column with its place in the row."""
POSITIONS = ("row", *PARTS)
"""Columns with positions in the input."""
_SHOWN_COLUMNS = 20
TITLES = ("title", "headline", "heading", "subject", "summary", "topic", "short_description")
QUESTIONS = ("question", "query")
_NATURAL = (
    (TITLES, ("text", "body", "content", "abstract", "description", "message", "details", "comment", "article")),
    (QUESTIONS, ("answer", "response", "reply", "text", "body")),
)
"""Names of columns that go with each other: a text of the first kind asks for one of the second."""
WIDE = "wide"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""An integer as a program writes it: 0042 stays text."""


@dataclass(frozen=True)
class Columns:
    """Columns of a source to read."""

    texts: tuple[str, ...] = ("text",)
    document: str | None = None
    label: str | None = None
    score: str | None = None
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Columns that decide which rows are read, and the values they must have."""
    stacked: bool = False
    """Whether the texts of a row become rows of their own."""
    merged: bool = False
    """Whether the texts of a row become one."""
    metadata: tuple[str, ...] | None = None
    """Columns whose values accompany each row; None if none were asked for."""
    together: tuple[str, ...] = ()
    """Text columns whose texts share a document; empty if there is one."""
    numbered: bool = True
    """Whether rows of the source can be counted: none is left out or stacked."""
    named: tuple[str, ...] = ()
    """Text columns as the sources call them, where `texts` are their names once joined."""
    header: list[str] = field(default_factory=list, compare=False)
    """All columns of the table, once it has been read."""

    @property
    def natural(self) -> tuple[str, ...]:
        """The one text column and one beside it that goes with it, as title and text do, in order; empty if none."""
        for sides in _NATURAL:
            named = ([name for name in self.header if name.lower() in side] for side in sides)
            for pair in product(*named):
                if self.texts in ((pair[0],), (pair[1],)):
                    return pair
        return ()

    @property
    def wanted(self) -> list[str]:
        """Names of all columns read, each once."""
        extra = (self.document, self.label, self.score, *(name for name, _ in self.where), *(self.metadata or ()))
        return list(dict.fromkeys([*self.texts, *(name for name in extra if name is not None)]))

    @property
    def condition(self) -> str:
        """The `where` filter as a suffix for messages; empty without a filter."""
        return "".join(f", where {name} is {' or '.join(values)}" for name, values in self.where)

    @property
    def kept(self) -> tuple[str, ...]:
        """Text columns of the resulting table."""
        return ("text",) if self.stacked or self.merged else self.texts


def batched(items: Iterable[_T], size: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Items some thousand at a time, and of about 8 million characters at most; `size` says how many one has."""
    waiting: list[_T] = []
    total = 0
    for item in items:
        waiting.append(item)
        total += size(item)
        if len(waiting) == BATCH_ROWS or total > BATCH_CHARACTERS:
            yield waiting
            waiting, total = [], 0
    if waiting:
        yield waiting


def batch_rows(rows: int, size: int) -> int:
    """How many rows of a table, which has so many rows and bytes, make a batch."""
    return max(1, min(BATCH_ROWS, BATCH_CHARACTERS * rows // max(1, size)))


@dataclass
class Batch:
    """Consecutive rows of one source, as read: not cleaned, at most about 8 million characters."""

    texts: list[list[str]]
    """One list of (rows,) for each text column."""
    documents: list[str] | None = None
    """The value of the document column in each row."""
    blocks: NDArray[np.int64] | None = None
    """In plain text: the number of blank lines before each row, from the beginning of the file."""
    separated: bool = False
    """In plain text: a blank line has separated two texts of the file so far."""
    labels: list[str] | None = None
    scores: list[float] | None = None
    metadata: list[list[Any]] | None = None
    """One list of (rows,) for each metadata column."""
    files: int = 0
    """Number of files that begin with this batch."""

    def __len__(self) -> int:
        return len(self.texts[0])


def make_batch(
    values: Mapping[str, Sequence[Any]],
    name: str,
    columns: Columns,
    numbers: Sequence[int],
    unit: Literal["line", "row"] = "row",
    typed: bool = True,
) -> Batch:
    """Validate columns of a table and make a batch of them.

    Args:
        values: (rows,) for each wanted column.
        name: of the source, for errors.
        columns: their roles.
        numbers: (rows,) position of each row in the source, for errors.
        unit: of these positions.
        typed: whether the source distinguishes numbers from text.

    Raises:
        CorpusError: a text that is no string; a document, label or score that is missing or cannot be used.
    """
    if columns.where:
        rows = list(range(len(numbers)))
        for wanted, allowed in columns.where:
            rows = [row for row in rows if _as_name(values[wanted][row]) in allowed]
        values = {wanted: [column[row] for row in rows] for wanted, column in values.items()}
        numbers = [numbers[row] for row in rows]

    def column(wanted: str, convert: Callable[[Any], Any], kind: str) -> list[Any]:
        converted = list(map(convert, values[wanted]))
        if None in converted:
            row = converted.index(None)
            found = values[wanted][row]
            if kind == "text" and isinstance(found, int | float):
                kind = "text, not numbers"
            found = "no value" if found is None or found == "" else f"{type(found).__name__} {str(found)[:40]!r}"
            fail(name, f"{found} in column {wanted!r}, which must hold {kind}", **{unit: numbers[row]})
        return converted

    def by_text(wanted: str | None, convert: Callable[[Any], Any], kind: str) -> list[Any] | None:
        found = None if wanted is None else column(wanted, convert, kind)
        return found if found is None or not columns.stacked else [value for value in found for _ in columns.texts]

    texts = [column(text, _as_text, "text") for text in columns.texts]
    if columns.merged:
        texts = [list(map("\n\n".join, zip(*texts, strict=True)))]
    elif columns.stacked:
        texts = [[text for row in zip(*texts, strict=True) for text in row]]
    return Batch(
        texts,
        by_text(columns.document, _as_name, "a value"),
        labels=by_text(columns.label, _as_name, "a value"),
        scores=by_text(columns.score, _as_number, "a finite number"),
        metadata=[[_as_metadata(value, typed) for value in values[name]] for name in columns.metadata or ()],
    )


def is_missing(value: Any) -> bool:
    """Whether a Python value means "missing": None, NaN, or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _as_text(value: Any) -> str | None:
    return value if isinstance(value, str) else "" if is_missing(value) else None


def _as_name(value: Any) -> str | None:
    if is_missing(value) or isinstance(value, list | dict | bytes):
        return None
    return _encodable(str(value).strip()) or None


def _as_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _as_metadata(value: Any, typed: bool) -> bool | int | float | str | None:
    """A metadata value as results store it; in formats without types, text that is an integer becomes an int."""
    value = value.item() if isinstance(value, np.generic) else value
    if is_missing(value):
        return None
    if isinstance(value, bool) or (isinstance(value, float) and not math.isinf(value)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else str(value)
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    text = _encodable(json.dumps(value, default=str) if isinstance(value, list | dict) else str(value))
    return text if typed else int(text) if _INTEGER.fullmatch(text) else text or None


def _encodable(text: str) -> str:
    """A text without lone surrogates."""
    return text.encode(errors="ignore").decode()


def kind_of(value: Any) -> str:
    """The kind of a metadata value, as for `common_kind`."""
    return WIDE if isinstance(value, int) and int(float(value)) != value else type(value).__name__


def common_kind(kinds: Collection[str]) -> str:
    """The kind of column, of `bool`, `int`, `float` and `str`, that holds values of all these kinds.

    `wide` are integers that no float holds, such as ids of 19 digits.
    """
    if WIDE in kinds:
        kinds = {*kinds} - {WIDE} | ({"str"} if "float" in kinds else {"int"})
    return next(iter(kinds)) if len(kinds) == 1 else "float" if set(kinds) == {"int", "float"} else "str"


def as_kind(value: Any, kind: type) -> Any:
    """A metadata value as a column of that kind holds it; in one of texts other values are JSON."""
    if value is None or isinstance(value, kind):
        return value
    return json.dumps(value) if kind is str else kind(value)


def check_header(header: list[str], name: str, columns: Columns, kind: str = "column", line: int | None = None) -> None:
    """Reject a table that lacks a wanted column (or field), or has it twice.

    Raises:
        CorpusError: a column is missing or repeated.
    """
    columns.header[:] = header
    for wanted in columns.wanted:
        if header.count(wanted) > 1:
            fail(name, f"{header.count(wanted)} columns are called {wanted!r}: rename all but one")
        if wanted not in header:
            shown = ", ".join(repr(column[:40]) for column in header[:_SHOWN_COLUMNS]) or "none"
            shown += f" and {len(header) - _SHOWN_COLUMNS} more" if len(header) > _SHOWN_COLUMNS else ""
            several = "," in wanted and {*wanted.split(",")} <= {*header}
            names = "text_column, text_columns, document_column and the like"
            advice = "to join columns, give each as a text_column" if several else f"name the right one ({names})"
            fail(name, f"no {kind} {wanted!r}; it has {shown}: {advice}", line)
