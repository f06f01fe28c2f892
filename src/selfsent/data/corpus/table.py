"""An Arrow file as a table on disk: cells of any rows, and nothing else in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.batch import as_kind
from selfsent.data.corpus.cleaners import HELD, advice
from selfsent.display import counted
from selfsent.integrity import damaged, is_signed, warn_damaged


class MappedTable:
    """An Arrow file, memory-mapped.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])[:-1]

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self._batches)

    def take(self, column: int, rows: NDArray[np.int64]) -> list[Any]:
        """The cells of one column.

        Args:
            column: its place among the columns.
            rows: (n,) row numbers in any order, repeated or not.
        """
        batch_of = np.searchsorted(self._starts, rows, side="right") - 1
        cells = np.empty(len(rows), dtype=object)
        for batch in np.unique(batch_of).tolist():
            here = np.flatnonzero(batch_of == batch)
            cells[here] = self._batches[batch].column(column).take(rows[here] - self._starts[batch]).to_pylist()
        found: list[Any] = cells.tolist()
        return found


def mapped_array(path: Path) -> NDArray[Any] | None:
    """A `.npy` file, memory-mapped; None where there is none."""
    return np.load(path, mmap_mode="r", allow_pickle=False) if path.exists() else None


def read_column(path: Path, column: int) -> Iterator[Any]:
    """One column of an Arrow file, a record batch at a time, as arrays.

    Not memory-mapped: pages of a map stay with the process, and a pass would leave the whole file there.
    """
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=[column]))
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index).column(0)


PIECES, FIRST, ROWS, CARRIED = "piece.npy", "first.npy", "piece_row.npy", "carried.arrow"
KINDS: dict[str, type] = {kind.__name__: kind for kind in (bool, int, float, str)}
_TOGETHER = 1 << 16

Integers = NDArray[np.int64]


class InputRows:
    """Maps rows of the input to rows of the corpus.

    A *piece* is a text as it was read: a row of the input, or, where texts were split, a sentence of one. The pieces
    are all there, in the order of the input: also empty ones, which are in no row of the corpus, and those that repeat
    another, which share its row.

    Args:
        directory: of the corpus.
        count: rows of the corpus. Where nothing was kept of the input, they stand for its rows.
        kinds: column that was carried along -> `bool`, `int`, `float` or `str`, by name.

    Example:
        >>> from selfsent import read_corpus
        >>> inputs = read_corpus(["it rains", "", "it rains"], carry=(), min_rows=1).input_rows
        >>> inputs.corpus_rows.tolist(), inputs.first.tolist(), inputs.repeats.tolist()
        ([0, -1, 0], [0], [2])
    """

    def __init__(self, directory: Path, count: int, kinds: Mapping[str, str]) -> None:
        corpus_rows, first = mapped_array(directory / PIECES), mapped_array(directory / FIRST)
        self.corpus_rows: Integers = np.arange(count) if corpus_rows is None else corpus_rows
        """(pieces,) the row of the corpus that has the text of each piece; -1 for an empty one, or one left out."""
        self.first: Integers = np.arange(count) if first is None else first
        """(count,) the first piece with the text of each row of the corpus."""
        self._rows: Integers | None = mapped_array(directory / ROWS)
        self._carried = MappedTable(directory / CARRIED) if kinds else None
        self._kinds = {name: KINDS[kind] for name, kind in kinds.items()}

    def __len__(self) -> int:
        return len(self.corpus_rows)

    @property
    def rows(self) -> int:
        """Number of rows of the input."""
        return len(self) if self._rows is None else int(self._rows[-1]) + 1

    @property
    def split(self) -> bool:
        """Whether a row may have several pieces."""
        return self._rows is not None

    @property
    def unit(self) -> str:
        """The name of a piece in messages."""
        return "sentence" if self.split else "row"

    @property
    def columns(self) -> dict[str, type]:
        """Columns of `describe`, with their types."""
        return {"row": int, **({"sentence": int} if self.split else {}), **self._kinds}

    @cached_property
    def repeats(self) -> Integers:
        """(count,) how many pieces have the text of each row of the corpus."""
        counts = np.zeros(len(self.first), dtype=np.int64)
        for start in range(0, len(self), _TOGETHER):
            rows = np.asarray(self.corpus_rows[start : start + _TOGETHER])
            np.add.at(counts, rows[rows >= 0], 1)
        return counts

    def positions(self, pieces: Integers) -> dict[str, Integers]:
        """Positions of pieces (n,) in the input, from 0: `row`, and `sentence` where texts were split, (n,) each."""
        if self._rows is None:
            return {"row": pieces}
        rows = np.asarray(self._rows[pieces])
        return {"row": rows, "sentence": pieces - np.searchsorted(self._rows, rows)}

    def is_first(self, pieces: Integers) -> NDArray[np.bool_]:
        """Which pieces (n,) are the first occurrence of their text."""
        rows = np.asarray(self.corpus_rows[pieces])
        begins = rows >= 0
        begins[begins] = self.first[rows[begins]] == pieces[begins]
        return begins

    def progress_callback(self, advance: Callable[[int], None]) -> Callable[[int], None]:
        """A progress callback in rows of the corpus that calls `advance` in pieces."""
        rows = told = 0

        def more(count: int) -> None:
            nonlocal rows, told
            rows += count
            done = self.done(rows)
            advance(done - told)
            told = done

        return more

    def done(self, rows: int) -> int:
        """Number of leading pieces that are done once the first `rows` rows of the corpus are."""
        return int(self.first[rows]) if rows < len(self.first) else len(self)

    @cached_property
    def dropped(self) -> int:
        """Number of pieces that are in no row of the corpus."""
        return len(self) - int(self.repeats.sum())

    def describe(self, pieces: Integers) -> dict[str, list[Any]]:
        """Positions and carried values of pieces (n,): name -> (n,) values.

        `row` is the number of the row of the input, from 0; `sentence`, where texts were split, the place in its row,
        from 0. The others are the columns that were carried along, None where a cell was empty.
        """
        places = self.positions(pieces)
        found: dict[str, list[Any]] = {name: numbers.tolist() for name, numbers in places.items()}
        for place, (name, kind) in enumerate(self._kinds.items()):
            cells = self._carried.take(place, places["row"]) if self._carried else []
            found[name] = [as_kind(json.loads(cell), kind.__name__) for cell in cells]
        return found


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
    warn_damaged(directory)
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
    def input_rows(self) -> InputRows:
        """The map between rows of the input and of the corpus; stored where `read_corpus` was given `carry`."""
        return InputRows(self.directory, len(self), self._carried)

    @cached_property
    def _mapped(self) -> MappedTable:
        return MappedTable(self.directory / TABLE)

    def _position(self, column: str | None) -> int:
        if column is None:
            return 0
        if column not in self.text_columns:
            raise KeyError(f"no text column {column!r}; there are {', '.join(self.text_columns)}")
        return self.text_columns.index(column)
