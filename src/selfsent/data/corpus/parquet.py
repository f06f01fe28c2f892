"""The reader of parquet files, bounded in memory: a few bytes of dictionary may expand to gigabytes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from selfsent.data.corpus.batch import BATCH_CHARACTERS, BATCH_ROWS, Batch, Columns, check_header, make_batch
from selfsent.data.corpus.streams import chunks, fail, open_file
from selfsent.errors import first_line

if TYPE_CHECKING:
    from selfsent.data.corpus.remote import RemoteFile

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def read_parquet(file: IO[bytes], name: str, columns: Columns, part: range | None = None) -> Iterator[Batch]:
    """The chosen columns of a parquet file, a few thousand rows at a time.

    Args:
        file: its bytes.
        name: what errors call it.
        columns: which.
        part: the rows to read, from 0; all by default.
    """
    start = part.start if part else 0
    with _parquet(file, name, columns.wanted) as parquet:
        held = parquet.schema_arrow.names
        folders = {key: value for key, value in _partition(name).items() if key not in held}
        check_header([*held, *folders], name, columns)
        read = [column for column in columns.wanted if column not in folders]
        try:
            batches = _record_batches(parquet, read, part or range(parquet.metadata.num_rows))
            for batch in chain.from_iterable(map(_bounded, batches)):
                values = {column: [value] * batch.num_rows for column, value in folders.items()}
                values |= {column: _values(batch.column(column)) for column in read}
                yield make_batch(values, name, columns, range(start + 1, start + 1 + batch.num_rows))
                start += batch.num_rows
        except UnicodeDecodeError:
            fail(name, "a text is not UTF-8", row=start + 1)


def look_at_parquet(path: Path | RemoteFile, columns: Columns) -> tuple[int, dict[str, str]]:
    """How many rows a parquet file has, and the kind of each wanted column: bool, int, float or str.

    Raises:
        CorpusError: it is no whole parquet file, or has no such column.
    """
    import pyarrow as pa

    with open_file(path) as file, _parquet(file, str(path)) as parquet:
        kinds = {field.name: field.type for field in parquet.schema_arrow}
        check_header([*parquet.schema_arrow.names, *_partition(str(path)).keys() - kinds], str(path), columns)
        found = {name: kind_of(kinds.get(name, pa.null())) or str for name in columns.wanted}
        return parquet.metadata.num_rows, {name: kind.__name__ for name, kind in found.items()}


def kind_of(kind: Any) -> type | None:
    """What columns of results call a type of Arrow: bool, int, float or str; None for what is nested, and for dates."""
    import pyarrow as pa

    if kind == pa.uint64():  # whose numbers do not all fit into an int of 64 bits
        return str
    tests = {bool: pa.types.is_boolean, int: pa.types.is_integer, float: pa.types.is_floating}
    tests |= {str: lambda each: pa.types.is_string(each) or pa.types.is_large_string(each)}
    return next((found for found, fits in tests.items() if fits(kind)), None)


@contextmanager
def _parquet(file: IO[bytes], name: str, wanted: Sequence[str] = ()) -> Iterator[Any]:
    """A parquet file, opened; what is wrong with it then or later is told in one line.

    Texts of wanted columns that the file holds once, and names by number, come so: a few bytes may stand for gigabytes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryFile() as unpacked:
        if not file.seekable():
            # Parquet needs seeking: a compressed file, or a stream, is spooled to disk first.
            for chunk in chunks(file, name):
                unpacked.write(chunk)
            file = unpacked
        try:
            options: dict[str, Any] = {"buffer_size": 1 << 20, "pre_buffer": False}
            opened = pq.ParquetFile(file, **options)
            if by_number := _by_number(opened, wanted):
                opened = pq.ParquetFile(file, read_dictionary=by_number, metadata=opened.metadata, **options)
            yield opened
        except (pa.ArrowException, OSError, KeyError, ValueError, OverflowError) as error:
            fail(name, f"not a whole parquet file, or one with values that cannot be read: {first_line(error)}")


def _record_batches(parquet: Any, columns: list[str], part: range) -> Iterator[Any]:
    """Consecutive rows of a parquet file, some thousand at a time; row groups without any of them are not read."""
    described = parquet.metadata
    groups = [described.row_group(i) for i in range(described.num_row_groups)]
    rows = max(
        1, min(BATCH_ROWS, BATCH_CHARACTERS * described.num_rows // max(1, sum(g.total_byte_size for g in groups)))
    )
    ends = np.cumsum([group.num_rows for group in groups])
    chosen = [i for i, group in enumerate(groups) if ends[i] > part.start and ends[i] - group.num_rows < part.stop]
    place = int(ends[chosen[0]]) - groups[chosen[0]].num_rows if chosen else 0
    for batch in parquet.iter_batches(batch_size=rows, row_groups=chosen, columns=columns):
        first, last = max(part.start - place, 0), min(part.stop - place, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        place += batch.num_rows


def _by_number(parquet: Any, wanted: Sequence[str]) -> list[str]:
    """The columns of text that have a dictionary."""
    import pyarrow as pa

    texts = {field.name for field in parquet.schema_arrow if pa.types.is_string(field.type)} & set(wanted)
    described = parquet.metadata
    chunks = (
        described.row_group(group).column(column)
        for group in range(described.num_row_groups)
        for column in range(described.num_columns)
    )
    found = {each.path_in_schema for each in chunks if any("DICTIONARY" in kind for kind in each.encodings)}
    return sorted(texts & found)


def _bounded(batch: Any) -> Iterator[Any]:
    """A batch in slices of at most some million characters, as far as rows go."""
    import pyarrow as pa
    import pyarrow.compute as pc

    named = [column for column in batch.columns if pa.types.is_dictionary(column.type)]
    lengths = [pc.binary_length(column.dictionary) for column in named]
    if sum(pc.max(each).as_py() or 0 for each in lengths) * batch.num_rows <= BATCH_CHARACTERS:
        yield batch
        return
    sizes = np.zeros(batch.num_rows, np.int64)
    for column, each in zip(named, lengths, strict=True):
        sizes += pc.fill_null(each.take(column.indices), 0).to_numpy(zero_copy_only=False)
    part = np.cumsum(sizes) // BATCH_CHARACTERS
    ends = [*(np.flatnonzero(np.diff(part)) + 1).tolist(), batch.num_rows]
    for first, last in zip([0, *ends], ends, strict=False):
        yield batch.slice(first, last - first)


def _values(column: Any) -> list[Any]:
    import pyarrow as pa

    return list((column.dictionary_decode() if pa.types.is_dictionary(column.type) else column).to_pylist())


def _partition(name: str) -> dict[str, str | None]:
    """The columns that the folders of a partitioned table stand for: `lang=en/part-0.parquet` is in English."""
    found = (folder.partition("=") for folder in name.split("/")[:-1])
    return {key: None if value == _NO_VALUE else unquote(value) for key, sign, value in found if sign}
