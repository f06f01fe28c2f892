"""A callable that adds a column to the batches of any engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from selfsent.data.corpus.batch import is_missing
from selfsent.data.corpus.clean import LONGEST_TEXT, clean
from selfsent.data.corpus.cleaners import Cleaners
from selfsent.errors import CorpusError, SettingsError


class BatchColumn(ABC):
    """A function from columns of a batch to a new one, row by row. It is small and picklable.

    Args:
        inputs: names of the columns that it reads.
        output: name of the new column.

    Raises:
        SettingsError: the new column is one of the others.
    """

    def __init__(self, inputs: Sequence[str], output: str) -> None:
        if output in inputs:
            raise SettingsError(f"the new column cannot replace what it is made of: {output!r} names both columns")
        self.inputs, self.output = tuple(inputs), output

    @property
    @abstractmethod
    def type(self) -> pa.DataType:
        """Type of the new column."""

    @abstractmethod
    def array(self, *columns: Iterable[Any]) -> pa.Array:
        """The new column, (n,), from the columns that it reads, (n,) each."""

    def schema(self, given: pa.Schema) -> pa.Schema:
        """The schema of a batch with the new column."""
        return given.append(pa.field(self.output, self.type))

    def __call__(self, batch: Any) -> Any:
        """The same batch with the new column.

        Args:
            batch: a pandas DataFrame, a pyarrow Table or RecordBatch, or a dictionary of numpy arrays, of n rows.

        Returns:
            A batch of the same kind. Vectors are arrays in a DataFrame, a fixed-size list in pyarrow, (n, d) in a
            dictionary.

        Raises:
            CorpusError: a text is no string, or a column is missing.
            SettingsError: the new column exists already, or another kind of batch.
        """
        arrow, frame = hasattr(batch, "schema") and hasattr(batch, "num_rows"), hasattr(batch, "assign")
        if not arrow and not frame and not isinstance(batch, Mapping):
            problem = f"a batch is {type(batch).__name__}"
            advice = "it must be a pandas DataFrame, a pyarrow Table or a dictionary of numpy arrays"
            raise SettingsError(f"{problem}; {advice}")
        names = list(batch.schema.names if arrow else batch)
        for name in self.inputs:
            if name not in names:
                raise CorpusError(f"a batch has no column {name!r}; it has {', '.join(map(repr, names))}")
        if self.output in names:
            raise SettingsError(f"a batch has a column {self.output!r} already: name the new one otherwise")
        made = self.array(*(batch[name] for name in self.inputs))
        if arrow:
            return batch.append_column(pa.field(self.output, made.type), made)
        values = _plain(made)
        return batch.assign(**{self.output: list(values)}) if frame else {**batch, self.output: values}


def _plain(array: pa.Array) -> NDArray[Any]:
    """An array of numpy, (n,), or (n, d) from lists of fixed size."""
    if pa.types.is_fixed_size_list(array.type):
        flat: NDArray[Any] = array.flatten().to_numpy()
        return flat.reshape(len(array), array.type.list_size)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def cleaned(texts: Iterable[Any], cleaners: Sequence[str] = ()) -> list[str]:
    """Texts of a batch, cleaned as a corpus is; empty ones for None and NaN.

    Raises:
        CorpusError: a text is neither a string nor missing.
    """
    given = texts.to_pylist() if isinstance(texts, (pa.Array, pa.ChunkedArray)) else texts
    return clean(Cleaners(cleaners)([_as_text(text, row) for row, text in enumerate(given)]))[0]


def names_of_cleaners(names: str | Iterable[str] | None) -> tuple[str, ...]:
    """The names of cleaners, checked.

    Raises:
        SettingsError: there is none of that name.
    """
    return tuple(Cleaners(names if names is None or isinstance(names, str) else list(names)).names)


def _as_text(value: Any, row: int) -> str:
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    if is_missing(value):
        return ""
    raise CorpusError(f"row {row} of a batch: {type(value).__name__} {str(value)[:40]!r} where a text must be")
