"""Batches in which no text stands twice, for losses that take the others of a batch for different ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain

import numpy as np

from selfsent.errors import SettingsError
from selfsent.training.tokens import Table
from selfsent.views.noise import make_key

_CHUNK = 4096
_LOOK = 4
"""How many rows that wait are looked at for a batch, in batches."""
_STEP = np.uint64(0x9E3779B97F4A7C15)


def text_keys(table: Table, rows: np.ndarray, max_length: int) -> np.ndarray:
    """(sentences,) a 64-bit number for each text, equal for those that are the same once cut to `max_length` tokens.

    Args:
        table: tokens by corpus row.
        rows: (sentences,) corpus rows.
        max_length: tokens that training keeps, special tokens not counted.
    """
    places = np.array([make_key(place) for place in range(max_length)], dtype=np.uint64)
    keys = np.empty(len(rows), dtype=np.uint64)
    for begin in range(0, len(rows), _CHUNK):
        tokens = table[rows[begin : begin + _CHUNK]]
        within = np.arange(len(tokens.ids)) - np.repeat(tokens.starts, tokens.lengths)
        kept = within < max_length
        # A sum of products, one factor of which is drawn for the place, wraps around on purpose.
        terms = (tokens.ids[kept].astype(np.uint64) + _STEP) * places[within[kept]]
        found = np.zeros(len(tokens.lengths), dtype=np.uint64)
        np.add.at(found, tokens.sentence[kept], terms)
        keys[begin : begin + _CHUNK] = found
    return keys


def without_repeats(order: np.ndarray, keys: np.ndarray, size: int) -> np.ndarray:
    """The rows in nearly the same order, so that of each `size` that follow each other no two have a key in common.

    A row that does not fit a batch waits for the next. When all rows have had their turn, those that still wait make
    batches with others of the epoch, so that there are as many batches as ever.

    Args:
        order: (n,) rows in random order.
        keys: (n, columns) numbers of the texts of each row.
        size: rows in a batch.

    Returns:
        (batches x size,) rows.

    Raises:
        SettingsError: no such batch can be made, since too few texts differ.
    """
    placed = np.empty(len(order) // size * size, order.dtype)
    stream = chain.from_iterable(part.tolist() for part in np.array_split(order, 1 + len(order) // _CHUNK))
    waiting: deque[int] = deque()
    for begin in range(0, len(placed), size):
        batch = _Batch(keys, size)
        # A bounded look at those that wait: a text that stands in half of all rows would be looked at without end.
        looked_at = iter([waiting.popleft() for _ in range(min(len(waiting), _LOOK * size))])
        refused = batch.fill(looked_at)
        waiting.extendleft(reversed(list(looked_at)))
        waiting.extend(refused)
        waiting.extend(batch.fill(stream))
        batch.fill(int(placed[(begin // 2 + place) % begin]) for place in range(begin))
        if not batch.full:
            raise SettingsError(
                f"no batch of {size} rows can be made in which no text stands twice: lower --batch-size to"
                f" {len(batch.rows)} or less"
            )
        placed[begin : begin + size] = batch.rows
    return placed


class _Batch:
    """Rows that have no text in common."""

    def __init__(self, keys: np.ndarray, size: int) -> None:
        self.rows: list[int] = []
        self._keys, self._size = keys, size
        self._seen: set[int] = set()

    @property
    def full(self) -> bool:
        return len(self.rows) == self._size

    def fill(self, rows: Iterator[int]) -> list[int]:
        """Add rows that fit until it is full; the others."""
        left = []
        while not self.full and (row := next(rows, None)) is not None:
            texts = self._keys[row].tolist()
            if self._seen.isdisjoint(texts):
                self.rows.append(row)
                self._seen.update(texts)
            else:
                left.append(row)
        return left
