"""`Corpus`: a memory-mapped table of distinct texts, and the rows of the input that they come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from selfsent.data.corpus.batch import KINDS, as_kind
from selfsent.data.corpus.cleaners import HELD, advice
from selfsent.display import counted
from selfsent.integrity import damaged, is_signed, warn_damaged
from selfsent.renamed import warn_renamed

TABLE, DESCRIPTION = "table.arrow", "corpus.json"
CORPUS_ROWS, FIRST, SOURCE_ROWS, METADATA = "piece.npy", "first.npy", "piece_row.npy", "carried.arrow"
_NUMBERS = 0.9
"""Share of numbers from which on a column of text is doubted."""

Integers = NDArray[np.int64]


class MappedTable:
    """A memory-mapped Arrow file; cells are read on demand."""

    def __init__(self, path: Path) -> None:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])

    def take(self, column: int, rows: Integers) -> list[Any]:
        """Cells of one column, by its position, in `rows`: (n,) row numbers in any order, repeated or not."""
        batch_of = np.searchsorted(self._starts, rows, side="right") - 1
        cells = np.empty(len(rows), dtype=object)
        for batch in {*batch_of.tolist()}:
            here = np.flatnonzero(batch_of == batch)
            found = self._batches[batch].column(column)
            # Arrow's own take would import pyarrow.compute, which takes longer than a search.
            cells[here] = [found[place].as_py() for place in (rows[here] - self._starts[batch]).tolist()]
        return list(cells)


def read_column(path: Path, column: int) -> Iterator[Any]:
    """One column of an Arrow file, a record batch at a time, as arrays.

    Not memory-mapped: mapped pages count as memory of the process, and a full pass would leave the whole file there.
    """
    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=[column]))
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index).column(0)


class InputRows:
    """Maps rows of the input to rows of the corpus, and back.

    An *input* is a text as it was read: a row of the source or, where texts were split, one of its sentences. Inputs
    keep their order. Empty and excluded ones have no row in the corpus; repeated ones share a row.

    Args:
        directory: of the corpus.
        count: rows of the corpus. If the inputs were not recorded, each row counts as one.
        kinds: metadata column -> name of its type: bool, int, float or str.
        part: name of what texts were split into, if they were: `sentence` or `passage`.

    Examples:
        >>> from selfsent import read_corpus
        >>> inputs = read_corpus(["it rains", "", "it rains"], metadata_columns=(), min_rows=1).input_rows
        >>> inputs.corpus_rows.tolist(), inputs.first.tolist(), inputs.repeats.tolist()
        ([0, -1, 0], [0], [2])
    """

    def __init__(self, directory: Path, count: int, kinds: Mapping[str, str], part: str = "sentence") -> None:
        known = (directory / CORPUS_ROWS).exists()
        self.corpus_rows: Integers = _load(directory / CORPUS_ROWS) if known else np.arange(count)
        """(inputs,) corpus row of each input; -1 for an empty or excluded one."""
        self.first: Integers = _load(directory / FIRST) if known else np.arange(count)
        """(count,) first input of each corpus row."""
        self._source_rows: Integers | None = _load(directory / SOURCE_ROWS)
        self.split = self._source_rows is not None
        """Whether a row of the source may have several inputs."""
        self.unit = part if self.split else "row"
        """Name of an input in messages."""
        self.rows = len(self) if self._source_rows is None else int(self._source_rows[-1]) + 1
        """Number of rows of the source."""
        self._metadata = MappedTable(directory / METADATA) if kinds else None
        self._kinds = {name: KINDS[kind] for name, kind in kinds.items()}
        self.columns: dict[str, type] = {"row": int, **({part: int} if self.split else {}), **self._kinds}
        """Columns of `describe`, with their types."""

    def __len__(self) -> int:
        return len(self.corpus_rows)

    @cached_property
    def repeats(self) -> Integers:
        """(count,) inputs of each corpus row."""
        return np.bincount(self.corpus_rows + 1, minlength=len(self.first) + 1)[1:]

    @property
    def dropped(self) -> int:
        """Number of inputs without a row in the corpus."""
        return len(self) - int(self.repeats.sum())

    def is_first(self, inputs: Integers) -> NDArray[np.bool_]:
        """Whether each of `inputs`, (n,), is the first occurrence of its text."""
        rows = np.asarray(self.corpus_rows[inputs])
        return np.asarray((rows >= 0) & (self.first[rows] == inputs))

    def positions(self, inputs: Integers) -> dict[str, Integers]:
        """Positions in the source of `inputs`, (n,), from 0: `row` and, if texts were split, the part of it."""
        if self._source_rows is None:
            return {"row": inputs}
        rows = np.asarray(self._source_rows[inputs])
        return {"row": rows, self.unit: inputs - np.searchsorted(self._source_rows, rows)}

    def numbers(self, rows: Sequence[int], sentences: Sequence[int]) -> Integers:
        """The inputs at these positions, (n,) each, the inverse of `positions`."""
        places = np.array(rows, np.int64)
        if self._source_rows is None:
            return places
        return np.asarray(np.searchsorted(self._source_rows, places) + np.array(sentences, np.int64))

    def describe(self, inputs: Integers) -> dict[str, list[Any]]:
        """`positions` of `inputs`, (n,), and the values of the metadata columns, None where a cell was empty."""
        positions = self.positions(inputs)
        found: dict[str, list[Any]] = {name: numbers.tolist() for name, numbers in positions.items()}
        for index, (name, kind) in enumerate(self._kinds.items()):
            cells = self._metadata.take(index, positions["row"]) if self._metadata else []
            found[name] = [as_kind(json.loads(cell), kind) for cell in cells]
        return found


@dataclass(frozen=True)
class CorpusReport:
    """Counts of rows read, dropped and kept."""

    files: int = 0
    rows_read: int = 0
    empty: int = 0
    too_long: int = 0
    control_characters: int = 0
    duplicates: int = 0
    kept: int = 0
    documents: int = 0
    excluded: int = 0
    split: int = 0
    """Texts that were split into sentences or passages."""
    unit: str = "sentence"
    """Name of a row: a sentence where texts were split or read line by line, a passage, a row of texts, or a text."""
    rid_of: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Cleaner -> number of texts it changed, and how many of these it left empty."""
    holds: Mapping[str, float] = field(default_factory=dict)
    """Cleaner -> share of the texts, 0 to 1, that it would change, estimated from a sample."""
    numbers: float = 0.0
    """Share of the texts, 0 to 1, that are numbers, estimated from the same sample."""
    together: Sequence[str] = ()
    """Columns of the source whose texts share a document, such as question and answer; empty if there is one."""
    natural: Sequence[str] = ()
    """The text column and one that was not read but goes with it, in order, such as title and text; or empty."""
    others: Sequence[str] = ()
    """Columns of the source that are no text column."""

    def counted(self, number: int) -> str:
        """A count with the unit of the rows: `1 sentence`, `2 texts`."""
        return counted(number, self.unit)

    def advice(self, flag: str = "clean=") -> str | None:
        """One line that doubts the column or recommends cleaners, with the flag; None if there is no need."""
        if self.numbers >= _NUMBERS:
            return (
                f"{self.numbers:.0%} of the texts are numbers, whose meaning no encoder knows: is it the right column?"
            )
        return advice(self.holds, flag)

    def summary(self, between: str = "\n") -> str:
        """One line on the corpus, then `between` and a second one if texts were changed."""
        dropped = [f"{self.empty:,} empty"] if self.empty else []
        dropped += [counted(self.duplicates, "duplicate")] if self.duplicates else []
        dropped += [f"{self.excluded:,} to be left out"] if self.excluded else []
        line = self.counted(self.kept) + (f" in {counted(self.documents, 'document')}" if self.documents else "")
        line += f", by splitting {counted(self.split, 'text')}" if self.split else ""
        line += f" ({', '.join(dropped)} dropped)" if dropped else ""
        return line + (between + self.changes if self.changes else "")

    @property
    def changes(self) -> str:
        """One line on changed texts; empty if there are none."""
        counts = (self.control_characters, "row", "rid of control characters"), (self.too_long, "text", "cut short")
        changed = [f"{counted(count, unit)} {what}" for count, unit, what in counts if count]
        for name, (count, empty) in self.rid_of.items():
            changed.append(f"{counted(count, 'text')} rid of {HELD[name]}")
            changed[-1] += f" ({empty:,} of them empty then)" if empty else ""
        return ", ".join(changed)


class Corpus:
    """Clean, distinct texts in a directory, read on demand.

    Args:
        directory: written by `read_corpus`.

    Raises:
        OSError, ValueError, KeyError, pyarrow.ArrowInvalid: it holds no complete corpus.
    """

    def __init__(self, directory: Path) -> None:
        description: dict[str, Any] = json.loads((directory / DESCRIPTION).read_text(encoding="utf-8"))
        self.directory = directory
        self.text_columns: tuple[str, ...] = tuple(description["text_columns"])
        # `view_columns` in tables of earlier versions.
        inputs = description.get("input_columns", description.get("view_columns", self.text_columns))
        self.input_columns: tuple[str, ...] = tuple(inputs)
        """Text columns that methods read: all of them, or the augmented ones."""
        self.read_columns: tuple[str, ...] = tuple(description.get("read_columns", self.text_columns))
        """Text columns of the source, as they were given."""
        self.cleaners: tuple[str, ...] = tuple(description.get("cleaners", ()))
        self.fingerprint: str = description["fingerprint"]
        counts, known = description["report"], {field.name for field in fields(CorpusReport)}
        self.report = CorpusReport(**{name: value for name, value in counts.items() if name in known})
        self.source: str = description["source"]
        self.label_names: tuple[str, ...] | None = tuple(description["label_names"] or ()) or None
        self.documents: Integers | None = _load(directory / "document.npy")
        """(rows,) document number of each row, 0, 1, 2, ... by first appearance; None without documents."""
        self.labels: Integers | None = _load(directory / "label.npy")
        self.scores: NDArray[np.float64] | None = _load(directory / "score.npy")
        # `carried` in tables of earlier versions.
        self._metadata: dict[str, str] = description.get("metadata_columns", description.get("carried", {}))
        self.reading: dict[str, Any] = description.get("reading", {})
        """The options of `read_corpus` that say which columns were read, and how."""
        first = next(iter(self.report.natural), None)
        self.title: str | None = first if first in self._metadata and first != self.read_columns[0] else None
        """A metadata column with titles, by which texts without documents are searched in scores."""

    @property
    def view_columns(self) -> tuple[str, ...]:
        """Deprecated: `input_columns`."""
        warn_renamed("Corpus.view_columns", "Corpus.input_columns")
        return self.input_columns

    def __len__(self) -> int:
        return self.report.kept

    def __repr__(self) -> str:
        return f"Corpus({self.source!r}: {self.report.summary().splitlines()[0]})"

    def texts(self, rows: NDArray[np.integer[Any] | np.bool_] | None = None, column: str | None = None) -> list[str]:
        """Texts of one column.

        Args:
            rows: (n,) row numbers in any order, repeated or not, or (rows,) of bool; all rows if None.
            column: one of `text_columns`; the first if None.

        Raises:
            IndexError: not row numbers of this corpus.
            KeyError: no such column.
        """
        if rows is None:
            return [text for batch in self.batches(column) for text in batch]
        chosen = np.asarray(rows)
        if chosen.dtype == bool and chosen.shape == (len(self),):
            chosen = np.flatnonzero(chosen)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise IndexError("rows must be a list of row numbers, or of true and false for each row")
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < len(self):
            raise IndexError(f"rows must be between 0 and {len(self) - 1}")
        return self._mapped.take(self._position(column), chosen.astype(np.int64))

    def batches(self, column: str | None = None, size: int = 8192) -> Iterator[list[str]]:
        """All texts of one column in order, `size` at a time, streamed from disk."""
        waiting: list[str] = []
        for array in read_column(self.directory / TABLE, self._position(column)):
            waiting += array.to_pylist()
            full = len(waiting) - len(waiting) % size
            yield from (waiting[at : at + size] for at in range(0, full, size))
            del waiting[:full]
        if waiting:
            yield waiting

    def titles(self) -> list[str]:
        """The title of each row, as far as it has one."""
        inputs = self.input_rows
        return [] if self.title is None else [str(each or "") for each in inputs.describe(inputs.first)[self.title]]

    @cached_property
    def input_rows(self) -> InputRows:
        """The map between rows of the input and of the corpus; not recorded if some were left out or stacked."""
        part = "passage" if "passages" in self.reading else "sentence"
        return InputRows(self.directory, len(self), self._metadata, part)

    @cached_property
    def _mapped(self) -> MappedTable:
        return MappedTable(self.directory / TABLE)

    def _position(self, column: str | None) -> int:
        if column is not None and column not in self.text_columns:
            raise KeyError(f"no text column {column!r}; there are {', '.join(self.text_columns)}")
        return 0 if column is None else self.text_columns.index(column)


def open_corpus(directory: Path) -> Corpus | None:
    """The corpus in a directory; None if there is none, or if it is damaged, with a warning."""
    if not directory.is_dir():
        return None
    try:
        description = json.loads((directory / DESCRIPTION).read_text(encoding="utf-8"))
        if is_signed(description) and damaged(directory, description.get("sums", {})) is None:
            return Corpus(directory)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    warn_damaged(directory)
    return None


def _load(path: Path) -> NDArray[Any] | Any:
    """A memory-mapped `.npy` file; None if there is none."""
    return np.load(path, mmap_mode="r", allow_pickle=False) if path.exists() else None


def rows_digest(rows: np.ndarray) -> str:
    """Short digest of a choice of corpus rows, (n,)."""
    return hashlib.blake2b(np.ascontiguousarray(rows, dtype=np.int64).tobytes(), digest_size=8).hexdigest()
