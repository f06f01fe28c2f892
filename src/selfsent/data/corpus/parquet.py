"""The reader of parquet files, bounded in memory: a few bytes of dictionary may expand to gigabytes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import IO, Any

import numpy as np

from selfsent.data.corpus.batch import BATCH_CHARACTERS, BATCH_ROWS, Batch, Columns, check_header, make_batch
from selfsent.data.corpus.streams import chunks, fail
from selfsent.errors import first_line


def read_parquet(file: IO[bytes], name: str, columns: Columns) -> Iterator[Batch]:
    """The chosen columns of a parquet file, a few thousand rows at a time.

    Args:
        file: its bytes.
        name: of the file, for errors.
        columns: which to read.
    """
    with _opened(file, name, columns.wanted) as parquet:
        check_header(parquet.schema_arrow.names, name, columns)
        start = 0
        try:
            size = sum(group.total_byte_size for group in _groups(parquet))
            rows = max(1, min(BATCH_ROWS, BATCH_CHARACTERS * parquet.metadata.num_rows // max(1, size)))
            for batch in chain.from_iterable(map(_bounded, parquet.iter_batches(rows, columns=columns.wanted))):
                arrays = (array.dictionary_decode() if hasattr(array, "dictionary") else array for array in batch)
                values = dict(zip(batch.schema.names, (array.to_pylist() for array in arrays), strict=True))
                yield make_batch(values, name, columns, range(start + 1, start + 1 + batch.num_rows))
                start += batch.num_rows
        except UnicodeDecodeError:
            fail(name, "a text is not UTF-8", row=start + 1)


@contextmanager
def _opened(file: IO[bytes], name: str, wanted: Sequence[str]) -> Iterator[Any]:
    """An open parquet file; whatever is wrong with it, then or later, is reported in one line.

    Wanted columns of text that are stored with a dictionary stay so: decoded, a few bytes may become gigabytes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryFile() as unpacked:
        if not file.seekable():
            # Parquet needs seeking: a compressed file, or a stream, is spooled to disk first.
            unpacked.writelines(chunks(file, name))
            file = unpacked
        try:
            options: dict[str, Any] = {"buffer_size": 1 << 20, "pre_buffer": False}
            parquet = pq.ParquetFile(file, **options)
            texts = {field.name for field in parquet.schema_arrow if pa.types.is_string(field.type)} & set(wanted)
            parts = (
                group.column(column) for group in _groups(parquet) for column in range(parquet.metadata.num_columns)
            )
            encoded = {each.path_in_schema for each in parts if any("DICTIONARY" in kind for kind in each.encodings)}
            if by_number := sorted(texts & encoded):
                parquet = pq.ParquetFile(file, read_dictionary=by_number, metadata=parquet.metadata, **options)
            yield parquet
        except (pa.ArrowException, OSError, KeyError, ValueError, OverflowError) as error:
            fail(name, f"not a whole parquet file, or one with values that cannot be read: {first_line(error)}")


def _groups(parquet: Any) -> list[Any]:
    return [parquet.metadata.row_group(index) for index in range(parquet.metadata.num_row_groups)]


def _bounded(batch: Any) -> Iterator[Any]:
    """A batch in slices of at most some million characters, as far as rows go."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            lengths = pc.binary_length(column.dictionary).take(column.indices)
            sizes += pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
    part = np.cumsum(sizes) // BATCH_CHARACTERS
    borders = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), batch.num_rows]
    return (batch.slice(first, last - first) for first, last in pairwise(borders))
