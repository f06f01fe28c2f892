"""Corpora in memory: an iterable of texts, or a table of pandas, polars, pyarrow or datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from selfsent.data.corpus.batch import (
    BATCH_ROWS,
    Batch,
    Columns,
    batch_rows,
    batched,
    check_header,
    is_missing,
    make_batch,
)
from selfsent.errors import CorpusError, first_line

_NAME = "the table given from Python"


def is_table(source: Any) -> bool:
    """Whether an object has columns: a table, a dictionary of columns, or a list of rows by name."""
    if isinstance(source, list | tuple):
        return bool(source) and isinstance(source[0], Mapping)
    is_frame = hasattr(source, "columns") and hasattr(source, "shape")
    return is_frame or isinstance(source, Mapping) or hasattr(source, "column_names")


def read_memory(source: Any, columns: Columns) -> Iterator[Batch]:
    """The chosen columns of a table, a few thousand rows at a time; rows are counted from 1 in errors.

    Raises:
        CorpusError: there is no such column, or one holds values of several kinds.
    """
    import pyarrow as pa

    if isinstance(source, Mapping) and all(isinstance(values, list | tuple) for values in source.values()):
        if len({len(values) for values in source.values()}) > 1:
            raise CorpusError(f"{_NAME} cannot be read: its columns are not of one length")
        source = [dict(zip(source, row, strict=True)) for row in zip(*source.values(), strict=True)] or source
    if isinstance(source, list | tuple):
        yield from _read_rows(source, columns)
        return
    try:
        if hasattr(source, "with_format") and hasattr(source, "column_names"):  # a Dataset, perhaps of chosen rows
            table = source.with_format("arrow")[:]
        elif isinstance(source, Mapping):
            table = pa.table({name: pa.array(values, from_pandas=True) for name, values in source.items()})
        else:
            table = pa.table(source)
        check_header(table.column_names, _NAME, columns)
        table = table.select(columns.wanted)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise CorpusError(f"{_NAME} cannot be read: {first_line(error)}") from error
    start = 1
    for batch in table.to_batches(batch_rows(table.num_rows, table.nbytes)):
        yield make_batch(batch.to_pydict(), _NAME, columns, range(start, start + batch.num_rows))
        start += batch.num_rows


def _read_rows(rows: Sequence[Mapping[str, Any]], columns: Columns) -> Iterator[Batch]:
    """A list of rows by name, with the columns of the first: NaN is empty, and a column may mix kinds."""
    check_header(list(rows[0]), _NAME, columns)
    for start in range(0, len(rows), BATCH_ROWS):
        part = rows[start : start + BATCH_ROWS]
        for number, row in enumerate(part, start=start + 1):
            if not isinstance(row, Mapping):
                raise CorpusError(f"{_NAME}, row {number}: {type(row).__name__} in a list of rows by name")
        values = {wanted: [row.get(wanted) for row in part] for wanted in columns.wanted}
        yield make_batch(values, _NAME, columns, range(start + 1, start + 1 + len(part)))


def read_texts(texts: Iterable[Any], columns: Columns) -> Iterator[Batch]:
    """Texts one by one; None, NaN and NA are empty.

    Raises:
        CorpusError: an item is no string, or columns are named.
    """
    if len(columns.wanted) > 1 or columns.texts != ("text",):
        raise CorpusError("texts given from Python have no columns: give a table, such as a DataFrame or a file")

    def checked() -> Iterator[str]:
        for row, text in enumerate(texts):
            if not (isinstance(text, str) or is_missing(text)):
                raise CorpusError(f"item {row} of the texts is {type(text).__name__}, not a string")
            yield text if isinstance(text, str) else ""

    for part in batched(checked(), len):
        yield Batch([part])
