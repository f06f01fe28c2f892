"""Caches that are filled once and survive a kill: arrays by row, vectors by text, and tables of text in chunks.

Each has one method that fills it: content of an earlier run is checked and kept, and the rest is computed.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import DTypeLike, NDArray

from selfsent.errors import OutputError
from selfsent.files import atomic_file, is_half_written, output_errors, read_json, sweep_half_written, write_json
from selfsent.integrity import warn_damaged
from selfsent.locks import lock_directory, lock_range
from selfsent.progress import Counter

_CHECKED = 1 << 15
"""Rows checked at a time."""
_ASKED, _MADE = 500, 256
"""Texts looked up at a time, and encoded and written at a time."""
_WAIT = 60
"""Seconds to wait while another process writes."""
Compute = Callable[[NDArray[np.int64]], NDArray[Any]]
"""(n,) ascending rows -> (n, size)."""
Prepare = Callable[[], tuple[Compute, int]]
"""Loads what computes rows, and gives it with the number of rows that are computed at once."""


def key_of(about: Any, hashed: Callable[[bytes], Any] = sha256) -> str:
    """The key of a cache, 16 hexadecimal digits: a digest of everything that its content depends on.

    Args:
        about: JSON, with arrays by their content.
        hashed: the digest.

    Examples:
        >>> key_of([1, "text", np.arange(3)])
        'fdccbafdb2dadfd3'
    """

    def content(value: Any) -> str:
        if isinstance(value, np.ndarray):
            return sha256(value.tobytes()).hexdigest()
        raise TypeError(f"no key can be made of {value!r}")

    return str(hashed(json.dumps(about, sort_keys=True, default=content).encode()).hexdigest()[:16])


class ArrayCache:
    """Arrays of rows on disk, each with a checksum and a `done` flag.

    Unlike other files these are written in place, and sparse until they are filled. Several processes may fill one
    cache. Damaged rows count as not done.

    Args:
        directory: made if it is missing; its name holds a `key_of` everything that the arrays depend on.
        rows: number of rows.
        size: numbers of a row.
        dtype: of these, 16 or 32 bits.
        name: of the cache in warnings.

    Raises:
        OutputError: the directory cannot be written.
    """

    def __init__(self, directory: Path, rows: int, size: int, dtype: DTypeLike, name: object = None) -> None:
        self.directory, self.repaired = directory, 0
        """The number of damaged rows found when it was opened."""
        arrays = {"vectors": (np.dtype(dtype), (rows, size)), "sums": (np.dtype("u4"), (rows,))}
        arrays["done"] = np.dtype("u1"), (rows,)
        with output_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
            with lock_range(directory / "lock", rows, rows + 1, patient=True):
                try:
                    found = {name: self._open(name) for name in arrays}
                    intact = {name: (array.dtype, array.shape) for name, array in found.items()} == arrays
                except Exception:  # numpy reads a header as Python, so damage raises whatever Python's parser does
                    intact = False
                if not intact:
                    for each, (kind, shape) in arrays.items():
                        self.path(each).unlink(missing_ok=True)
                        np.lib.format.open_memmap(self.path(each), "w+", kind, shape)
                    found = {name: self._open(name) for name in arrays}
            self.vectors, self.done = found["vectors"], found["done"]
            for start in range(0, rows, _CHECKED):
                part = slice(start, start + _CHECKED)
                if not self.done[part].any():
                    continue
                wrong = (self.done[part] > 0) & (_checksums(self.vectors[part]) != found["sums"][part])
                damaged = start + np.flatnonzero(wrong | (self.done[part] > 1))
                self._write("done", damaged, np.zeros(len(damaged), np.uint8))
                self.repaired += len(damaged)
        if self.repaired:
            warn_damaged(name or directory)

    def path(self, name: str) -> Path:
        """The file of `vectors`, `sums` or `done`."""
        return self.directory / f"{name}.npy"

    def _open(self, name: str) -> np.memmap[Any, Any]:
        return np.load(self.path(name), mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]

    def fill(self, rows: NDArray[np.int64], prepare: Prepare, advance: Counter = lambda count: None) -> NDArray[Any]:
        """The arrays of all rows, memory-mapped, with the arrays of `rows` computed where they are missing.

        Processes share the work, by chunks with the same borders in every process and run, as rounding depends a
        little on the batch.

        Args:
            rows: (chosen,) in any order; others are undefined if nobody asked for them.
            prepare: called if rows are missing.
            advance: called after each chunk; first with the number of rows of earlier runs.
        """
        rows = np.unique(rows)
        known = int(self.done[rows].sum())
        advance(known)
        if known == len(rows):
            return self.vectors
        compute, size = prepare()
        # The first pass skips chunks of other processes; the second waits for them, and takes over from dead ones.
        for patient in (False, True):
            for chunk in np.split(rows, range(size, len(rows), size)):
                if self.done[chunk].all():
                    continue
                with lock_range(self.directory / "lock", int(chunk[0]), int(chunk[-1]) + 1, patient) as mine:
                    left = chunk[self.done[chunk] == 0]
                    if mine and len(left):
                        self.write(left, compute(left))
                done = int(self.done[rows].sum())
                advance(done - known)
                known = done
        return self.vectors

    def fill_in_order(
        self, stream: Callable[[int], Iterable[NDArray[Any]]], advance: Counter = lambda count: None
    ) -> int:
        """Compute all rows in one process, and return the number of rows that were done before.

        Args:
            stream: makes the arrays from a row on, (n, size) at a time.
            advance: called after each.
        """
        kept = done = int(self.done.sum())
        if self.repaired or not self.done[:done].all():  # otherwise chunk borders would differ
            self.clear()
            kept = done = 0
        if kept:
            advance(kept)
        for block in stream(kept):
            self.write(np.arange(done, done + len(block)), block)
            done += len(block)
            advance(len(block))
        return kept

    def write(self, rows: NDArray[np.int64], vectors: NDArray[Any]) -> None:
        """Write the arrays (n, size) of ascending rows (n,), safely on disk.

        Raises:
            OutputError: the disk is full.
        """
        vectors = np.ascontiguousarray(vectors, self.vectors.dtype)
        self._write("vectors", rows, vectors)
        self._write("sums", rows, _checksums(vectors))
        self._write("done", rows, np.ones(len(rows), np.uint8))

    def clear(self) -> None:
        """Mark all rows as not done."""
        self._write("done", np.arange(len(self.done)), np.zeros(len(self.done), np.uint8))

    def _write(self, name: str, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        if not len(rows):
            return
        gaps = np.flatnonzero(np.diff(rows) > 1) + 1
        start, width = self._open(name).offset, values[0].nbytes
        # Not through the memory map: writing one to a full disk kills the process without an error.
        with output_errors(self.path(name)), self.path(name).open("r+b") as file:
            for run, part in zip(np.split(rows, gaps), np.split(values, gaps), strict=True):
                file.seek(start + width * int(run[0]))
                file.write(part.tobytes())
            file.flush()
            os.fsync(file.fileno())


def _checksums(vectors: NDArray[Any]) -> NDArray[np.uint32]:
    """(n,) checksums of vectors (n, d), not 0 for zeros; any change of one number changes them."""
    numbers = np.ascontiguousarray(vectors).view(f"u{vectors.dtype.itemsize}")
    return np.asarray(np.add.reduce(numbers, axis=1, dtype=np.uint32, initial=1))


class VectorsOfTexts:
    """Vectors of texts on disk, whatever corpus the texts are from: each is computed when it is first asked for.

    An SQLite file of vectors with their checksums, by a digest of the text. Several processes may use it, and one that
    is damaged begins again.

    Args:
        path: the file; it belongs to one encoder.
        encode: (n,) texts -> (n, d) float32.
        lookup_size: texts looked up at a time.
        batch_size: texts encoded and written at a time: an interruption loses at most as many.

    Raises:
        OutputError: it cannot be written.
    """

    def __init__(
        self,
        path: Path,
        encode: Callable[[Sequence[str]], NDArray[np.float32]],
        lookup_size: int = _ASKED,
        batch_size: int = _MADE,
    ) -> None:
        self.path, self._encode, self._lookup_size, self._batch_size = path, encode, lookup_size, batch_size

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, (n, d)."""
        try:
            with output_errors(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return self._vectors(texts)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:  # not SQLite's, or damaged
                warn_damaged(self.path)
                for file in (self.path, self.path.with_name(f"{self.path.name}-journal")):
                    file.unlink(missing_ok=True)
                return self._vectors(texts)
        except sqlite3.Error as error:  # read-only, full, or locked for long
            raise OutputError(f"{self.path} cannot be written: {error}") from error

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        found: dict[bytes, bytes] = {}
        with closing(sqlite3.connect(self.path, timeout=_WAIT)) as file:
            file.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB, sum INT)")
            for start in range(0, len(keys), self._lookup_size):
                asked = keys[start : start + self._lookup_size]
                rows = file.execute(f"SELECT * FROM vectors WHERE text IN ({','.join('?' * len(asked))})", asked)
                found.update((key, vector) for key, vector, total in rows if crc32(key + vector) == total)
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
            for start in range(0, len(new), self._batch_size):
                made = [*new][start : start + self._batch_size]
                vectors = self._encode([new[key] for key in made])
                found.update((key, vector.astype("<f4").tobytes()) for key, vector in zip(made, vectors, strict=True))
                with file:
                    new_rows = [(key, found[key], crc32(key + found[key])) for key in made]
                    file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", new_rows)
        return np.stack([np.frombuffer(found[key], "<f4") for key in keys])


class Chunks:
    """Chunks of a table, each a parquet file with a checksum, until they are joined.

    They lie in `OUTPUT.parts`, which no other process may use meanwhile.

    Args:
        output: the file that is made of them.
        plan: everything that the chunks depend on, as JSON.
        overwrite: throw away the chunks of another plan, and of this one.

    Raises:
        OutputError: the directory holds chunks of another plan, belongs to another process, or cannot be written.
    """

    _PLAN = "plan.json"

    def __init__(self, output: Path, plan: Mapping[str, Any], overwrite: bool) -> None:
        self.directory = directory = output.with_name(output.name + ".parts")
        self.output, self.plan, self._files = output, plan, list[Path]()
        busy = f"another selfsent is making {output}: wait for it, or name another output"
        self._lock = lock_directory(directory, busy)
        sweep_half_written(output.parent, output.name)  # the lock says that nobody is writing it
        kept = [path for path in directory.glob("*") if path.name != "lock" and not is_half_written(path)]
        if kept and not overwrite and read_json(directory / self._PLAN) != plan:
            raise OutputError(f"{directory} has chunks of other options, another seed or corpus: give overwrite=True")
        for path in kept if overwrite else ():
            path.unlink(missing_ok=True)
        write_json(directory / self._PLAN, plan)

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, name: str) -> bool:
        return (self.directory / f"{name}.parquet").is_file()

    def fill(
        self,
        parts: Mapping[str, Sequence[Any] | NDArray[Any]],
        compute: Callable[[Any], dict[str, list[Any]]],
        advance: Counter = lambda count: None,
    ) -> int:
        """Take or write the chunk of each part, in order, and return the summed length of the parts computed now.

        Args:
            parts: the input of each chunk, by its name.
            compute: makes the columns of a chunk.
            advance: called after each chunk with the length of its part.
        """
        made = 0
        for name, part in parts.items():
            if not self.find(name):
                self.write(name, compute(part))
                made += len(part)
            advance(len(part))
        return made

    def find(self, name: str) -> bool:
        """Take the chunk of this name; False if it is missing or damaged."""
        import pyarrow.parquet as pq

        file = self.directory / f"{name}.parquet"
        if name not in self:
            return False
        try:
            pq.read_table(file, page_checksum_verification=True)
        except (OSError, ValueError):
            warn_damaged(file)
            return False
        self._files.append(file)
        return True

    def write(self, name: str, columns: dict[str, list[Any]]) -> None:
        """Write a chunk."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = self.directory / f"{name}.parquet"
        with atomic_file(file) as temporary:
            pq.write_table(pa.table(columns), temporary, compression="zstd", write_page_checksum=True)
        self._files.append(file)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of all chunks, in the order of `find` and `write`."""
        import pyarrow.parquet as pq

        return [row for file in self._files for row in pq.read_table(file).to_pylist()]

    def join(self) -> int:
        """Write all chunks, in the order of `find` and `write`, into the parquet file; returns its number of rows."""
        import pyarrow.parquet as pq

        schema = pq.read_schema(self._files[0]).with_metadata({b"selfsent": json.dumps(self.plan)})
        rows = 0
        with atomic_file(self.output) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for file in self._files:
                table = pq.read_table(file)
                writer.write_table(table.replace_schema_metadata(schema.metadata))
                rows += len(table)
        self.remove()
        return rows

    def remove(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self.directory, ignore_errors=True)
