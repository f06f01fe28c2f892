"""Index arithmetic on concatenated arrays of different lengths."""

from __future__ import annotations

import numpy as np


def ranges(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Concatenated ranges of integers that start at `begins`, (n,), and have `lengths`, (n,)."""
    return np.asarray(np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum())))
