"""Functions from tables to tables that an engine runs one after another, with folders of Parquet in between."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import dataset, fs

from selfsent.errors import CorpusError, OutputError, first_line
from selfsent.resumable import key_of

Integers = NDArray[np.int64]
Run = Callable[..., None]
"""An engine, called with folders, a stage and a new folder for its rows; and perhaps the name of a column: all rows
with the same value in it are in one table then."""

_LEAST_PARTS, _ROWS_OF_PART = 8, 50_000
"""Minimum number of parts that rows are grouped into, and rows of the source for each part."""
_BUFFER = 1 << 20
"""Bytes of a column that are read ahead."""
PART, KEY, COUNT = "part", "key", "count"
_MIXES = np.uint64(0x9E3779B97F4A7C15)


class Stage(ABC):
    """A function from a table to a table, for all rows or for the rows of a part.

    Args:
        reads: columns that it reads, with their types.
        makes: columns of its rows.
        parts: number of parts in which its rows are brought together.
    """

    def __init__(self, reads: pa.Schema, makes: pa.Schema, parts: int) -> None:
        self.reads, self.makes, self.parts = reads, makes, parts

    @property
    def inputs(self) -> Sequence[str]:
        """Names of the columns that it reads."""
        return list(self.reads.names)

    def schema(self, given: pa.Schema) -> pa.Schema:
        """The schema of its rows."""
        return self.makes

    def __call__(self, table: pa.Table) -> pa.Table:
        """Its rows for the rows of a table, whose types may differ in width."""
        return self.rows(table.select(self.inputs).cast(self.reads)).cast(self.makes)

    @abstractmethod
    def rows(self, table: pa.Table) -> pa.Table:
        """Its rows, from a table with exactly the columns and types of `reads`."""


class Summed(Stage):
    """Counts with the same key as one."""

    def __init__(self, parts: int) -> None:
        super().__init__(COUNTS.remove(0), COUNTS, parts)

    def rows(self, table: pa.Table) -> pa.Table:
        """A row for each key."""
        keys, places = np.unique(table[KEY].to_numpy(), return_inverse=True)
        return counts_table(keys, np.bincount(places, table[COUNT].to_numpy(), len(keys)).astype(np.int64), self.parts)


COUNTS = pa.schema([(PART, pa.int32()), (KEY, pa.int64()), (COUNT, pa.int64())])
"""Numbers of something by key."""


def counts_table(keys: Integers, counts: Integers, parts: int) -> pa.Table:
    """A table of `COUNTS`, from (n,) keys and (n,) counts."""
    return pa.table([parts_of(pa.array(keys), parts), keys, counts], schema=COUNTS)


def parts_for(rows: int) -> int:
    """The number of parts for so many rows: each has to fit into the memory of a worker."""
    return max(_LEAST_PARTS, rows // _ROWS_OF_PART)


def parts_of(values: Any, parts: int) -> pa.Array:
    """The part, from 0, of each of some integers or strings, (n,): the same on every machine."""
    if pa.types.is_integer(values.type):
        mixed = values.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64) * _MIXES >> np.uint64(32)
    else:
        mixed = np.fromiter((crc32(each.encode()) for each in values.to_pylist()), np.uint64, len(values))
    return pa.array((mixed % np.uint64(parts)).astype(np.int32))


class Work:
    """A folder with the rows of each stage; a job that was stopped goes on with the first stage that was not done.

    Args:
        run: the engine.
        folder: for the folders of stages.
        sources: folders or files of Parquet that the first stage reads.
        about: all else that rows depend on.
    """

    def __init__(self, run: Run, folder: str, sources: Sequence[str], about: Sequence[object]) -> None:
        self._run, self._folder = run, folder
        self._key = key_of([*map(stamp_of, sources), *about])

    def __call__(self, name: str, sources: Sequence[str], stage: Any, by: str | None = None) -> str:
        """The folder with the rows of a stage, made from the rows of other folders."""
        output, mark = f"{self._folder}/{name}", f"{self._folder}/{name}.done"
        if not self._is_done(mark):
            remove(output)
            self._run(sources, stage, output, by)
            write_bytes(mark, json.dumps(self._key).encode())
        return output

    def _is_done(self, mark: str) -> bool:
        system, path = place_of(mark)
        if system.get_file_info(path).type != fs.FileType.File:
            return False
        with system.open_input_stream(path) as file:
            return bool(file.read() == json.dumps(self._key).encode())


def place_of(address: str) -> tuple[Any, str]:
    """The file system of an address or path, and the path there."""
    if "://" in address:
        system, path = fs.FileSystem.from_uri(address)
        return system, path
    return fs.LocalFileSystem(), str(Path(address).absolute())


def parquet_files(address: str) -> list[Any]:
    """The Parquet files of a folder, by name, or the one of that name.

    Raises:
        CorpusError: there is none.
    """
    system, path = place_of(address)
    about = system.get_file_info(path)
    found = [about] if about.type == fs.FileType.File else []
    if about.type == fs.FileType.Directory:
        inside = system.get_file_info(fs.FileSelector(path, recursive=True))
        found = [each for each in inside if each.type == fs.FileType.File and each.path.endswith(".parquet")]
        found = [each for each in found if not Path(each.path).name.startswith((".", "_"))]
    if not found:
        raise CorpusError(f"{address} has no Parquet file: name a folder with some, or one")
    return sorted(found, key=lambda each: str(each.path))


def stamp_of(address: str) -> str:
    """A description of the state of a folder of Parquet: paths, sizes and times of change."""
    return " ".join(f"{each.path}:{each.size}:{each.mtime_ns}" for each in parquet_files(address))


def rows_of(*addresses: str) -> Any:
    """The rows of folders of Parquet, as a dataset.

    Raises:
        CorpusError: a folder has no Parquet file, or one cannot be read.
    """
    parts = []
    for address in addresses:
        files = [each.path for each in parquet_files(address)]
        try:
            parts.append(dataset.dataset(files, filesystem=place_of(address)[0], format="parquet"))
        except (pa.ArrowInvalid, OSError) as error:
            raise CorpusError(f"{address}: {first_line(error)}") from None
    return parts[0] if len(parts) == 1 else dataset.dataset(parts)


def batches_of(addresses: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
    """The rows of folders of Parquet, `size` at a time, with the schema of `rows_of`.

    In a memory that does not grow with the files: a dataset reads whole groups of rows ahead, of several files.

    Raises:
        CorpusError: as `rows_of`.
    """
    schema = rows_of(*addresses).schema
    for address in addresses:
        system = place_of(address)[0]
        for each in parquet_files(address):
            with system.open_input_file(each.path) as file:
                for batch in pq.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER).iter_batches(size):
                    names = batch.schema.names
                    columns = [
                        batch[field.name].cast(field.type) if field.name in names else pa.nulls(len(batch), field.type)
                        for field in schema
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def check_new(address: str) -> None:
    """Reject a folder that is there already.

    Raises:
        OutputError: it is.
    """
    system, path = place_of(address)
    if system.get_file_info(path).type != fs.FileType.NotFound:
        raise OutputError(f"{address} exists: name another folder, or remove it")


def remove(address: str) -> None:
    """Remove a folder, if it is there."""
    system, path = place_of(address)
    if system.get_file_info(path).type == fs.FileType.Directory:
        system.delete_dir(path)


def write_bytes(address: str, content: bytes) -> None:
    """Write a small file."""
    system, path = place_of(address)
    system.create_dir(str(Path(path).parent), recursive=True)
    with system.open_output_stream(path) as file:
        file.write(content)
