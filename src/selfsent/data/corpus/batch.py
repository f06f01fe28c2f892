"""Rows on their way from a source to the table, and the look at every value they hold."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.streams import fail

BATCH_ROWS = 8192
BATCH_CHARACTERS = 1 << 23
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""A whole number that is written as a program would: 0042 stays text."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a file to read."""

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
    carried: tuple[str, ...] | None = None
    """Columns whose values go with each row; None where nobody asks for the rows of the input."""
    together: tuple[str, ...] = ()
    """Text columns whose texts come to stand in one document; none where that is one column."""

    @property
    def wanted(self) -> list[str]:
        """All their names, each once."""
        extra = (self.document, self.label, self.score, *(name for name, _ in self.where), *(self.carried or ()))
        return list(dict.fromkeys([*self.texts, *(name for name in extra if name is not None)]))

    @property
    def condition(self) -> str:
        """What rows must have, in words, behind what is said of them; empty where all are read."""
        return "".join(f", where {name} is {' or '.join(values)}" for name, values in self.where)

    @property
    def kept(self) -> tuple[str, ...]:
        """The text columns of the table that comes of it."""
        return ("text",) if self.stacked or self.merged else self.texts


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
    """In plain text: a blank line lies between two texts of the file, here or before."""
    labels: list[str] | None = None
    scores: list[float] | None = None
    carried: list[list[Any]] | None = None
    """One list of (rows,) for each carried column."""
    files: int = 0
    """Files that begin with this batch."""
    skipped_files: int = 0

    @classmethod
    def start(cls, columns: Columns) -> Batch:
        """The beginning of a file, no rows yet."""
        return cls([[] for _ in columns.kept], files=1)

    def __len__(self) -> int:
        return len(self.texts[0])

    def stacked(self) -> Batch:
        """The same texts in one column, those of a row one behind the other."""

        def repeated(column: list[Any] | None) -> list[Any] | None:
            return None if column is None else [value for value in column for _ in self.texts]

        return replace(
            self,
            texts=[[text for row in zip(*self.texts, strict=True) for text in row]],
            documents=repeated(self.documents),
            labels=repeated(self.labels),
            scores=repeated(self.scores),
        )

    def merged(self) -> Batch:
        """The same with one text a row: those of its columns, a blank line between them."""
        return replace(self, texts=[list(map("\n\n".join, zip(*self.texts, strict=True)))])


Place = Callable[[int], dict[str, int]]
"""From a row of a batch to its `line=` or `row=` in the file, for errors."""


def at_lines(numbers: list[int]) -> Place:
    """The place of each row, from its line number."""
    return lambda row: {"line": numbers[row]}


def at_rows(start: int) -> Place:
    """The place of each row, from the number of the first."""
    return lambda row: {"row": start + row}


def make_batch(
    values: Mapping[str, Sequence[Any]], name: str, columns: Columns, place: Place, typed: bool = True
) -> Batch:
    """A batch from whole columns of a table, after a look at every value.

    Args:
        values: (rows,) for each wanted column.
        name: what errors call the source.
        columns: which is which.
        place: from a row (0 to rows - 1) to its `line=` or `row=`.
        typed: whether the source tells numbers from text.

    Raises:
        CorpusError: a text that is no string; a document, label or score that is missing or cannot be used.
    """
    rows = _rows_where(values, columns)
    if len(rows) < len(values[columns.texts[0]]):
        values = {wanted: [column[row] for row in rows] for wanted, column in values.items()}

    def column(wanted: str | None, convert: Callable[[Any], Any], kind: str) -> list[Any] | None:
        if wanted is None:
            return None
        converted = [convert(value) for value in values[wanted]]
        if None in converted:
            row = converted.index(None)
            found = values[wanted][row]
            found = "no value" if found is None or found == "" else f"{type(found).__name__} {str(found)[:40]!r}"
            fail(name, f"{found} in column {wanted!r}, which must hold {kind}", **place(rows[row]))
        return converted

    batch = Batch(
        texts=[column(text, _as_text, "text") or [] for text in columns.texts],
        documents=column(columns.document, _as_name, "a value"),
        labels=column(columns.label, _as_name, "a value"),
        scores=column(columns.score, _as_number, "a finite number"),
        carried=[[_as_carried(value, typed) for value in values[carried]] for carried in columns.carried or ()],
    )
    return batch.stacked() if columns.stacked else batch.merged() if columns.merged else batch


def _rows_where(values: Mapping[str, Sequence[Any]], columns: Columns) -> Sequence[int]:
    """The rows that are to be read."""
    rows: Sequence[int] = range(len(values[columns.texts[0]]))
    for name, allowed in columns.where:
        rows = [row for row in rows if _as_name(values[name][row]) in allowed]
    return rows


def is_missing(value: Any) -> bool:
    """Whether a value from Python stands for none: None, NaN, or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _as_text(value: Any) -> str | None:
    return value if isinstance(value, str) else "" if value is None else None


def _as_name(value: Any) -> str | None:
    if value is None or isinstance(value, list | dict | bytes) or (isinstance(value, float) and math.isnan(value)):
        return None
    return str(value).strip().encode(errors="ignore").decode() or None


def _as_carried(value: Any, typed: bool) -> bool | int | float | str | None:
    """A value as tables of results hold it: text that is a whole number becomes one where numbers come as text."""
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else str(value)
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    text = json.dumps(value, default=str) if isinstance(value, list | dict) else str(value)
    text = text.encode(errors="ignore").decode()
    if typed:
        return text
    return int(text) if _WHOLE.fullmatch(text) else text or None


def as_text(value: Any) -> str | None:
    """What a column of text holds of such a value: what is no text, as JSON writes it."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _as_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
