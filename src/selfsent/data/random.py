"""Random numbers as a pure function of (key, row, position), whatever the number of workers, ranks or restarts."""

from __future__ import annotations

import numpy as np

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.zeros(1, dtype=np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: scrambles uint64 values."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


def make_key(*parts: int) -> int:
    """One 64-bit key from seed, epoch, view number and the like."""
    key = np.zeros(1, dtype=np.uint64)
    for part in parts:
        key = _mixed(key * _STEP + np.uint64(part % 2**64) + _STEP)
    return int(key[0])


def uniforms(key: int, rows: np.ndarray, positions: np.ndarray = _FIRST, draw: int = 0) -> np.ndarray:
    """Counter-based random numbers in [0, 1): one for each (row, position) pair, independent for each `draw`.

    Args:
        key: from `make_key`.
        rows: (n,) corpus rows.
        positions: (n,) positions of words or tokens in their sentence; 0 by default.
        draw: number of the draw, if one position needs several.
    """
    seed = np.uint64(make_key(key, draw))
    row = _mixed(seed + _STEP * (rows.astype(np.uint64) + np.uint64(1)))
    bits = _mixed(row + _STEP * (positions.astype(np.uint64) + np.uint64(1)))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
