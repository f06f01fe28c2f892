"""Arrow arrays from Python's texts; `pyarrow.array` would import pandas to look for its types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def texts_array(texts: Sequence[str]) -> pa.StringArray:
    """Texts as an array of strings, of 2 GB at most together.

    Examples:
        >>> texts_array(["it rains", "é"]).to_pylist()
        ['it rains', 'é']
    """
    encoded = [text.encode("utf-8") for text in texts]
    ends = np.zeros(len(encoded) + 1, np.int32)
    ends[1:] = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))
