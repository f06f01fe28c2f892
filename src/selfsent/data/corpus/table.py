"""`Corpus`: a memory-mapped table, one row a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.cleaners import HELD, advice
from selfsent.data.corpus.mapped import MappedTable, mapped_array, read_column
from selfsent.data.corpus.origins import Origins
from selfsent.display import counted
from selfsent.integrity import damaged, is_signed, tell_damaged

TABLE = "table.arrow"
DESCRIPTION = "corpus.json"


@dataclass(frozen=True)
class CorpusReport:
    """Counts of rows read, dropped and kept."""

    files: int = 0
    skipped_files: int = 0
    rows_read: int = 0
    empty: int = 0
    too_long: int = 0
    control_characters: int = 0
    duplicates: int = 0
    near_duplicates: int = 0
    """Rows left out because an earlier one is nearly the same, where that was asked for."""
    kept: int = 0
    documents: int = 0
    excluded: int = 0
    split: int = 0
    """Texts that were split into their sentences."""
    unit: str = "sentence"
    """What a row is called: a sentence where texts were split or stood one on a line, a row of several, else a text."""
    rid_of: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """For each cleaner how many texts it changed, and how many of these were empty then."""
    holds: Mapping[str, float] = field(default_factory=dict)
    """For each cleaner the share of the texts, 0 to 1, that it would still change, by a look at some of them."""
    together: Sequence[str] = ()
    """Columns of the source whose texts stand in one document, such as question and answer, where there are several."""

    def counted(self, number: int) -> str:
        """A count with the unit of the rows: `1 sentence`, `2 texts`."""
        return counted(number, self.unit)

    def advice(self, flag: str = "--clean ") -> str | None:
        """One line that recommends cleaners, with the flag; None if none is needed."""
        return advice(self.holds, flag)

    def summary(self, between: str = "\n") -> str:
        """One line for the user, and a second one (after `between`) where texts were changed or files skipped."""
        dropped = [f"{self.empty:,} empty"] if self.empty else []
        dropped += [counted(self.duplicates, "duplicate")] if self.duplicates else []
        dropped += [counted(self.near_duplicates, "near-duplicate")] if self.near_duplicates else []
        dropped += [f"{self.excluded:,} to be left out"] if self.excluded else []
        line = self.counted(self.kept) + (f" in {counted(self.documents, 'document')}" if self.documents else "")
        line += f", by splitting {counted(self.split, 'text')}" if self.split else ""
        line += f" ({', '.join(dropped)} dropped)" if dropped else ""
        return line + (between + self.changes if self.changes else "")

    @property
    def changes(self) -> str:
        """One line on texts that were changed and files that were skipped; empty if none were."""
        changed = [
            f"{counted(count, thing)} {what}"
            for count, thing, what in (
                (self.control_characters, "row", "rid of control characters"),
                (self.too_long, "text", "cut short"),
                (self.skipped_files, "file", "skipped"),
            )
            if count
        ]
        changed += [
            f"{counted(count, 'text')} rid of {HELD[name]}" + (f" ({empty:,} of them empty then)" if empty else "")
            for name, (count, empty) in self.rid_of.items()
        ]
        return ", ".join(changed)


def is_whole(directory: Path) -> bool:
    """Whether a folder holds an intact corpus; warns about a damaged one."""
    if not directory.is_dir():
        return False
    try:
        description = json.loads((directory / DESCRIPTION).read_text(encoding="utf-8"))
        if is_signed(description) and damaged(directory, description.get("sums", {})) is None:
            Corpus(directory)
            return True
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    tell_damaged(directory)
    return False


class Corpus:
    """Clean, distinct sentences in a folder; texts are read on demand.

    Args:
        directory: the folder that `read_corpus` wrote.

    Raises:
        OSError, ValueError, KeyError, pyarrow.ArrowInvalid: the folder is not a whole corpus.
    """

    def __init__(self, directory: Path) -> None:
        description: dict[str, Any] = json.loads((directory / DESCRIPTION).read_text(encoding="utf-8"))
        self.directory = directory
        self.text_columns: tuple[str, ...] = tuple(description["text_columns"])
        self.view_columns: tuple[str, ...] = tuple(description.get("view_columns", self.text_columns))
        """The text columns that methods read; all of them unless views were made."""
        self.fingerprint: str = description["fingerprint"]
        self.report = CorpusReport(**description["report"])
        self.source: str = description["source"]
        self.label_names: tuple[str, ...] | None = tuple(description["label_names"] or ()) or None
        self.documents: NDArray[np.int64] | None = mapped_array(directory / "document.npy")
        """Number of the document of each row (rows,), 0, 1, 2, ... by first appearance; None without documents."""
        self.labels: NDArray[np.int64] | None = mapped_array(directory / "label.npy")
        self.scores: NDArray[np.float64] | None = mapped_array(directory / "score.npy")
        self._carried: dict[str, str] = description.get("carried", {})

    def __len__(self) -> int:
        return self.report.kept

    def __repr__(self) -> str:
        return f"Corpus({self.source!r}: {self.report.summary().splitlines()[0]})"

    def texts(self, rows: NDArray[np.integer[Any] | np.bool_] | None = None, column: str | None = None) -> list[str]:
        """Texts of one column.

        Args:
            rows: (n,) row numbers in any order, repeated or not, or (rows,) of bool; all rows when None.
            column: one of `text_columns`; the first when None.

        Raises:
            IndexError: a row number is negative or beyond the last row, or no whole number.
            KeyError: there is no such column.
        """
        if rows is None:
            return [text for batch in self.batches(column) for text in batch]
        given = np.asarray(rows)
        if given.dtype == bool and given.shape == (len(self),):
            given = np.flatnonzero(given)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise IndexError("rows must be a list of row numbers, or of true and false for each row")
        if given.size and not 0 <= given.min() <= given.max() < len(self):
            raise IndexError(f"rows must lie between 0 and {len(self) - 1}")
        return self._mapped.take(self._position(column), given.astype(np.int64))

    def batches(self, column: str | None = None, size: int = 8192) -> Iterator[list[str]]:
        """All texts of one column in order, `size` at a time, read from the file as they are asked for."""
        waiting: list[str] = []
        for array in read_column(self.directory / TABLE, self._position(column)):
            waiting += array.to_pylist()
            whole = len(waiting) - len(waiting) % size
            yield from (waiting[at : at + size] for at in range(0, whole, size))
            del waiting[:whole]
        if waiting:
            yield waiting

    @cached_property
    def origins(self) -> Origins:
        """The map between rows of the input and of the corpus; stored where `read_corpus` was given `carry`."""
        return Origins(self.directory, len(self), self._carried)

    @cached_property
    def _mapped(self) -> MappedTable:
        return MappedTable(self.directory / TABLE)

    def _position(self, column: str | None) -> int:
        if column is None:
            return 0
        if column not in self.text_columns:
            raise KeyError(f"no text column {column!r}; there are {', '.join(self.text_columns)}")
        return self.text_columns.index(column)
