"""Corpora in memory: an iterable of texts, or a table of pandas, polars, pyarrow or datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from selfsent.data.corpus.batch import (
    BATCH_CHARACTERS,
    BATCH_ROWS,
    Batch,
    Columns,
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
    framed = hasattr(source, "columns") and hasattr(source, "shape")
    return framed or isinstance(source, Mapping) or hasattr(source, "column_names")


def read_memory(source: Any, columns: Columns) -> Iterator[Batch]:
    """The chosen columns of a table, a few thousand rows at a time; rows are counted from 1 in errors.

    Raises:
        CorpusError: there is no such column, or one holds values of several kinds.
    """
    import pyarrow as pa

    try:
        table = _as_arrow(source)
        check_header(table.column_names, _NAME, columns)
        batches = table.select(columns.wanted).to_batches(BATCH_ROWS)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise CorpusError(f"{_NAME} cannot be read: {first_line(error)}") from error
    start = 1
    for batch in batches:
        rows = max(1, BATCH_CHARACTERS // max(1, batch.nbytes // max(1, batch.num_rows)))
        for part in (batch.slice(first, rows) for first in range(0, batch.num_rows, rows)):
            values = {name: part.column(name).to_pylist() for name in columns.wanted}
            yield make_batch(values, _NAME, columns, range(start, start + part.num_rows))
            start += part.num_rows


def _as_arrow(source: Any) -> Any:
    import pyarrow as pa

    if hasattr(source, "with_format") and hasattr(source, "column_names"):  # a Dataset, perhaps of chosen rows
        return source.with_format("arrow")[:]
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    if isinstance(source, Mapping):
        return pa.table({name: pa.array(values, from_pandas=True) for name, values in source.items()})
    if isinstance(source, list | tuple):
        return pa.Table.from_pylist(list(source))
    return pa.Table.from_pandas(source, preserve_index=False)


def read_texts(texts: Iterable[Any], columns: Columns) -> Iterator[Batch]:
    """Texts one by one; None, NaN and NA are empty.

    Raises:
        CorpusError: something else is no string, or columns are asked for.
    """
    if len(columns.wanted) > 1 or columns.texts != ("text",):
        raise CorpusError("texts given from Python have no columns: give a table, such as a DataFrame or a file")
    waiting: list[str] = []
    size = 0
    for row, text in enumerate(texts):
        if not (isinstance(text, str) or is_missing(text)):
            raise CorpusError(f"item {row} of the texts is {type(text).__name__}, not a string")
        waiting.append(text if isinstance(text, str) else "")
        size += len(waiting[-1])
        if len(waiting) == BATCH_ROWS or size > BATCH_CHARACTERS:
            yield Batch([waiting])
            waiting, size = [], 0
    if waiting:
        yield Batch([waiting])
