"""Writing the table: record batches and growing arrays on disk, and digests of their contents."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from selfsent.data.corpus.arrow import texts_array
from selfsent.data.corpus.batch import common_kind, kind_of
from selfsent.data.corpus.failure import fail
from selfsent.data.corpus.table import CORPUS_ROWS, DESCRIPTION, FIRST, METADATA, SOURCE_ROWS, TABLE, read_column
from selfsent.integrity import checksums, signed

MOST_LABELS = 1 << 16


class ArrayFile:
    """A one-dimensional `.npy` file that grows as values are appended; `opened` closes it if all else fails."""

    def __init__(self, path: Path, dtype: type[np.generic], opened: ExitStack) -> None:
        self.path, self._dtype, self._count = path, np.dtype(dtype), 0
        self._file = opened.enter_context(path.open("wb"))
        self._write_header()

    def append(self, values: NDArray[Any]) -> None:
        """Append values (n,)."""
        self._file.write(np.ascontiguousarray(values, dtype=self._dtype).tobytes())
        self._count += len(values)

    def close(self) -> None:
        """Write the final header and flush the file to disk."""
        self._file.seek(0)
        self._write_header()
        _close(self._file)

    def _write_header(self) -> None:
        # numpy leaves room in the header for the first dimension to grow.
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._count,)}
        np.lib.format.write_array_header_1_0(self._file, header)


class TableFile:
    """The Arrow file of the texts; raw labels are a last column until their type is known."""

    def __init__(self, path: Path, text_columns: tuple[str, ...], labelled: bool, opened: ExitStack) -> None:
        names = [*text_columns, *(["label name"] if labelled else [])]
        self._schema = pa.schema([pa.field(name, pa.string()) for name in names])
        self._file = opened.enter_context(path.open("wb"))
        self._writer = pa.ipc.new_file(self._file, self._schema)
        self._hashes = [(hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)) for _ in text_columns]

    def append(self, columns: list[list[str]]) -> None:
        """Append rows: one list of (rows,) for each text column, then the label names if there are any."""
        arrays = [texts_array(column) for column in columns]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
        for array, (lengths, contents) in zip(arrays, self._hashes, strict=False):
            _, offsets, values = array.buffers()
            lengths.update(np.diff(np.frombuffer(offsets, dtype=np.int32, count=len(array) + 1)).tobytes())
            contents.update(memoryview(values)[: len(values)] if values is not None else b"")

    def close(self) -> list[bytes]:
        """Flush the file to disk; returns digests of the texts, independent of batch borders."""
        self._writer.close()
        _close(self._file)
        return [part.digest() for pair in self._hashes for part in pair]


class InputRowsFile:
    """The files of `InputRows`.

    Args:
        directory: of the corpus.
        metadata: columns that accompany each row of the source.
        split: whether a row may become several inputs.
        opened: closes the files if all else fails.
    """

    def __init__(self, directory: Path, metadata: tuple[str, ...], split: bool, opened: ExitStack) -> None:
        names = (CORPUS_ROWS, FIRST, SOURCE_ROWS)[: 3 if split else 2]
        self._arrays = [ArrayFile(directory / name, np.int64, opened) for name in names]
        self._metadata = TableFile(directory / METADATA, metadata, False, opened) if metadata else None
        self._found: dict[str, set[str]] = {name: set() for name in metadata}
        self._count = 0

    def append(
        self, kept: NDArray[np.bool_], numbers: NDArray[np.int64], first: NDArray[np.bool_], rows: NDArray[np.int64]
    ) -> None:
        """Append inputs.

        Args:
            kept: (n,) whether an input has a row in the corpus.
            numbers: (kept,) those rows.
            first: (kept,) whether the row begins with this input.
            rows: (n,) row of the source of each input.
        """
        corpus_rows = np.full(len(kept), -1)
        corpus_rows[kept] = numbers
        values = corpus_rows, self._count + np.flatnonzero(kept)[first], rows
        for file, new in zip(self._arrays, values, strict=False):
            file.append(new)
        self._count += len(kept)

    def append_metadata(self, columns: list[list[Any]]) -> None:
        """Append the metadata of rows of the source."""
        if self._metadata is None or not columns[0]:
            return
        for found, values in zip(self._found.values(), columns, strict=True):
            found.update(kind_of(value) for value in values if value is not None)
        self._metadata.append([list(map(json.dumps, values)) for values in columns])

    def close(self) -> list[bytes]:
        """Flush the files to disk; returns digests of their contents."""
        for file in self._arrays:
            file.close()
        digests = [digest_file(file.path) for file in self._arrays] + [name.encode() for name in self._found]
        return digests + (self._metadata.close() if self._metadata else [])

    @property
    def kinds(self) -> dict[str, str]:
        """Name of the type of each metadata column."""
        return {name: common_kind(found) for name, found in self._found.items()}


def describe(directory: Path, description: Mapping[str, Any]) -> None:
    """Write the description of a corpus, with the checksums of its files; it is written last."""
    names = sorted(path.name for path in directory.iterdir() if path.suffix in (".arrow", ".npy"))
    plain = json.loads(json.dumps({**description, "sums": checksums(directory, names)}))
    file = (directory / DESCRIPTION).open("w", encoding="utf-8")
    json.dump(signed(plain), file, indent=1)
    _close(file)


def write_labels(directory: Path, position: int, name: str) -> tuple[str, ...] | None:
    """Turn the raw label column into `label.npy` (whole numbers, or codes of names) or `score.npy` (other numbers).

    Args:
        directory: holds the finished table.
        position: of the raw labels among its columns.
        name: of the column, for errors.

    Returns:
        The names of the codes, sorted; None if labels are numbers.

    Raises:
        CorpusError: more names than any labelling has.
    """
    import pyarrow.compute as pc

    def labels() -> Iterator[Any]:
        return read_column(directory / TABLE, position)

    for kind, dtype, file_name in ((pa.int64(), np.int64, "label.npy"), (pa.float64(), np.float64, "score.npy")):
        if all(_numbers(batch, kind) is not None for batch in labels()):
            if (directory / file_name).exists():
                fail(name, "these labels are scores (not all are whole numbers), and a score column is given too")
            _write(directory / file_name, dtype, (_numbers(batch, kind) for batch in labels()))
            return None
    names: set[str] = set()
    for batch in labels():
        names.update(pc.unique(batch).to_pylist())
        if len(names) > MOST_LABELS:
            fail(name, f"more than {MOST_LABELS:,} different labels: is this the label column?")
    ordered = texts_array(sorted(names))
    _write(directory / "label.npy", np.int64, (pc.index_in(batch, value_set=ordered) for batch in labels()))
    return tuple(sorted(names))


def digest_file(path: Path) -> bytes:
    """A hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def _close(file: IO[Any]) -> None:
    with file:
        file.flush()
        os.fsync(file.fileno())


def _numbers(labels: Any, kind: Any) -> Any:
    """Labels as an array of finite numbers; None if one of them is none."""
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(labels, kind)
    except pa.ArrowInvalid:
        return None
    return numbers if pc.all(pc.is_finite(numbers)).as_py() else None


def _write(path: Path, dtype: type[np.generic], arrays: Iterator[Any]) -> None:
    with ExitStack() as opened:
        file = ArrayFile(path, dtype, opened)
        for array in arrays:
            file.append(array.to_numpy(zero_copy_only=False))
        file.close()
