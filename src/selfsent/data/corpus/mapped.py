"""An Arrow file as a table on disk: cells of any rows, and nothing else in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class MappedTable:
    """An Arrow file, memory-mapped.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])[:-1]

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self._batches)

    def take(self, column: int, rows: NDArray[np.int64]) -> list[Any]:
        """The cells of one column.

        Args:
            column: its place among the columns.
            rows: (n,) row numbers in any order, repeated or not.
        """
        batch_of = np.searchsorted(self._starts, rows, side="right") - 1
        cells = np.empty(len(rows), dtype=object)
        for batch in np.unique(batch_of).tolist():
            here = np.flatnonzero(batch_of == batch)
            cells[here] = self._batches[batch].column(column).take(rows[here] - self._starts[batch]).to_pylist()
        found: list[Any] = cells.tolist()
        return found


def mapped_array(path: Path) -> NDArray[Any] | None:
    """A `.npy` file, memory-mapped; None where there is none."""
    return np.load(path, mmap_mode="r", allow_pickle=False) if path.exists() else None


def read_column(path: Path, column: int) -> Iterator[Any]:
    """One column of an Arrow file, a record batch at a time, as arrays.

    Not memory-mapped: pages of a map stay with the process, and a pass would leave the whole file there.
    """
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=[column]))
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index).column(0)
