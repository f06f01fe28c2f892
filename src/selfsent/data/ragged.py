"""Index arithmetic on arrays of different lengths that lie in one array."""

from __future__ import annotations

import numpy as np


def ranges(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The integers from each of `begins`, (n,), on, as many as `lengths`, (n,), says, in one array."""
    return np.asarray(np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum())))
