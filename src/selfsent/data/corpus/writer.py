"""Writing the table: record batches and growing arrays on disk, and the fingerprint of what they hold."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.batch import common_kind
from selfsent.data.corpus.streams import fail
from selfsent.data.corpus.table import CARRIED, DESCRIPTION, FIRST, PIECES, ROWS, TABLE, read_column
from selfsent.integrity import checksums, signed

MOST_LABELS = 1 << 16


class ArrayFile:
    """A one-dimensional `.npy` file that grows as values are appended; `opened` closes it if all else fails."""

    def __init__(self, path: Path, dtype: type[np.generic], opened: ExitStack) -> None:
        self.path = path
        self._dtype = np.dtype(dtype)
        self._file = opened.enter_context(path.open("wb"))
        self._count = 0
        self._write_header()

    def append(self, values: NDArray[Any]) -> None:
        """Append values (n,)."""
        self._file.write(np.ascontiguousarray(values, dtype=self._dtype).tobytes())
        self._count += len(values)

    def close(self) -> None:
        """Write the final header and flush the file to disk."""
        self._file.seek(0)
        self._write_header()
        close_safely(self._file)

    def _write_header(self) -> None:
        # numpy leaves room in the header for the first dimension to grow.
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._count,)}
        np.lib.format.write_array_header_1_0(self._file, header)


class TableFile:
    """The Arrow file of the texts; raw labels are a last column until their type is known."""

    def __init__(self, path: Path, text_columns: tuple[str, ...], labelled: bool, opened: ExitStack) -> None:
        import pyarrow as pa

        names = [*text_columns, *(["label name"] if labelled else [])]
        self._schema = pa.schema([pa.field(name, pa.string()) for name in names])
        self._file = opened.enter_context(path.open("wb"))
        self._writer = pa.ipc.new_file(self._file, self._schema)
        self._hashes = [(hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)) for _ in text_columns]

    def append(self, columns: list[list[str]]) -> None:
        """Append rows: one list of (rows,) for each text column, then the label names if there are any."""
        import pyarrow as pa

        arrays = [pa.array(column, type=pa.string()) for column in columns]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
        for array, (lengths, contents) in zip(arrays, self._hashes, strict=False):
            _, offsets, values = array.buffers()
            lengths.update(np.diff(np.frombuffer(offsets, dtype=np.int32, count=len(array) + 1)).tobytes())
            contents.update(memoryview(values)[: len(values)] if values is not None else b"")

    def close(self) -> list[bytes]:
        """Flush the file to disk; returns digests of the texts, independent of batch borders."""
        self._writer.close()
        close_safely(self._file)
        return [part.digest() for pair in self._hashes for part in pair]


class OriginsFile:
    """The files of `InputRows`.

    Args:
        directory: of the corpus.
        carried: the columns that go with each row of the input.
        split: whether a row may become several pieces.
        opened: closes the files if all else fails.
    """

    def __init__(self, directory: Path, carried: tuple[str, ...], split: bool, opened: ExitStack) -> None:
        self._pieces = ArrayFile(directory / PIECES, np.int64, opened)
        self._first = ArrayFile(directory / FIRST, np.int64, opened)
        self._rows = ArrayFile(directory / ROWS, np.int64, opened) if split else None
        self._carried = TableFile(directory / CARRIED, carried, False, opened) if carried else None
        self._found: dict[str, set[str]] = {name: set() for name in carried}
        self._count = 0

    def append(self, corpus_rows: NDArray[np.int64], new: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Append pieces.

        Args:
            corpus_rows: (n,) the row of the table that has the text of each piece; -1 where none has.
            new: those of them, by their places here, with which a row of the table begins.
            rows: (n,) the row of the input of each piece.
        """
        self._pieces.append(corpus_rows)
        self._first.append(self._count + new)
        if self._rows is not None:
            self._rows.append(rows)
        self._count += len(corpus_rows)

    def carry(self, columns: list[list[Any]]) -> None:
        """Append the carried values of rows of the input."""
        if self._carried is None or not columns[0]:
            return
        for found, values in zip(self._found.values(), columns, strict=True):
            found.update(type(value).__name__ for value in values if value is not None)
        self._carried.append([list(map(json.dumps, values)) for values in columns])

    def close(self) -> list[bytes]:
        """Flush the files to disk; returns digests of their contents."""
        arrays = [file for file in (self._pieces, self._first, self._rows) if file is not None]
        for file in arrays:
            file.close()
        digests = [digest_file(file.path) for file in arrays] + [name.encode() for name in self._found]
        return digests + (self._carried.close() if self._carried else [])

    @property
    def kinds(self) -> dict[str, str]:
        """The type of each carried column, by name."""
        return {name: common_kind(found) for name, found in self._found.items()}


def describe(directory: Path, description: Mapping[str, Any]) -> None:
    """Write the description of a corpus with the checksums of its files; it is written last."""
    names = sorted(path.name for path in directory.iterdir() if path.suffix in (".arrow", ".npy"))
    plain = json.loads(json.dumps({**description, "sums": checksums(directory, names)}))
    file = (directory / DESCRIPTION).open("w", encoding="utf-8")
    json.dump(signed(plain), file, indent=1)
    close_safely(file)


def close_safely(file: IO[Any]) -> None:
    """Flush a file to disk and close it."""
    with file:
        file.flush()
        os.fsync(file.fileno())


def write_labels(directory: Path, position: int, name: str) -> tuple[str, ...] | None:
    """Turn the raw label column into `label.npy` (whole numbers, or codes of names) or `score.npy` (other numbers).

    Args:
        directory: holds the finished table.
        position: of the raw labels among its columns.
        name: what errors call the column.

    Returns:
        The names behind the codes, sorted; None where labels are numbers.

    Raises:
        CorpusError: there are more names than any labelling has.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for kind, dtype, file_name in ((pa.int64(), np.int64, "label.npy"), (pa.float64(), np.float64, "score.npy")):
        if all(_is_number(labels, kind) for labels in read_column(directory / TABLE, position)):
            if (directory / file_name).exists():
                fail(name, "these labels are scores (not all are whole numbers), and a score column is given too")
            _write(directory / file_name, dtype, (pc.cast(x, kind) for x in read_column(directory / TABLE, position)))
            return None
    names: set[str] = set()
    for labels in read_column(directory / TABLE, position):
        names.update(pc.unique(labels).to_pylist())
        if len(names) > MOST_LABELS:
            fail(name, f"more than {MOST_LABELS:,} different labels: is this the label column?")
    ordered = pa.array(sorted(names), type=pa.string())
    codes = (pc.index_in(labels, value_set=ordered) for labels in read_column(directory / TABLE, position))
    _write(directory / "label.npy", np.int64, codes)
    return tuple(sorted(names))


def digest_file(path: Path) -> bytes:
    """A hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def _is_number(labels: Any, kind: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(labels, kind)
    except pa.ArrowInvalid:
        return False
    return bool(kind == pa.int64() or pc.all(pc.is_finite(numbers)).as_py())


def _write(path: Path, dtype: type[np.generic], arrays: Iterator[Any]) -> None:
    with ExitStack() as opened:
        file = ArrayFile(path, dtype, opened)
        for array in arrays:
            file.append(array.to_numpy(zero_copy_only=False))
        file.close()
