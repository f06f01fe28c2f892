"""Corpora in memory: an iterable of texts, or a table of pandas, polars, pyarrow or datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from selfsent.data.corpus.batch import Batch, Columns, batch_rows, batched, check_header, is_missing, make_batch
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

    try:
        if hasattr(source, "with_format") and hasattr(source, "column_names"):  # a Dataset, perhaps of chosen rows
            table = source.with_format("arrow")[:]
        elif isinstance(source, Mapping):
            table = pa.table({name: pa.array(values, from_pandas=True) for name, values in source.items()})
        elif isinstance(source, list | tuple):
            table = pa.Table.from_pylist(list(source))
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
