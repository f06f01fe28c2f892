"""Arrow arrays from Python's texts and numpy's numbers; `pyarrow.array` would import pandas to look for its types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def texts_array(texts: Sequence[str]) -> pa.StringArray:
    """Texts as an array of strings, of 2 GB at most together.

    Example:
        >>> texts_array(["it rains", "é"]).to_pylist()
        ['it rains', 'é']
    """
    encoded = [text.encode("utf-8") for text in texts]
    ends = np.zeros(len(encoded) + 1, np.int32)
    ends[1:] = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def numbers_array(numbers: NDArray[np.int64]) -> pa.Int64Array:
    """Whole numbers, (n,), as an array of 64 bits."""
    whole = np.ascontiguousarray(numbers, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])
