"""The most similar pairs among many sentences, exactly: all cosines are computed, and few of them are ever held."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

ROWS, COLUMNS = 1024, 4096
"""The block of cosines that is computed together."""


class Pair(NamedTuple):
    """Two rows, the smaller number first, and the cosine of their vectors."""

    cosine: float
    first: int
    second: int


class Best:
    """The best pairs seen so far, by falling cosine; among equals, the ones with the smaller rows.

    Args:
        top: how many to keep.
        threshold: the smallest cosine that counts.
    """

    def __init__(self, top: int, threshold: float = -1.0) -> None:
        # Rounding makes some cosines smaller than -1.
        self.top, self.bar = top, threshold if threshold > -1 else -2.0
        self._cosine = np.empty(0, np.float32)
        self._pairs = np.empty((2, 0), np.int64)

    def add(self, cosine: NDArray[np.float32], first: NDArray[np.int64], second: NDArray[np.int64]) -> None:
        """Consider pairs, (n,) each; one may come twice."""
        pairs = np.hstack([self._pairs, np.stack([np.minimum(first, second), np.maximum(first, second)])])
        cosine = np.concatenate([self._cosine, cosine])
        _, place = np.unique(pairs[0] << 32 | pairs[1], return_index=True)
        cosine, pairs = cosine[place], pairs[:, place]
        keep = np.lexsort((pairs[1], pairs[0], -cosine))[: self.top]
        keep = keep[cosine[keep] >= self.bar]
        self._cosine, self._pairs = cosine[keep], pairs[:, keep]
        if len(keep) == self.top:
            self.bar = float(self._cosine[-1])

    def pairs(self) -> list[Pair]:
        """What there is, best first."""
        columns = (self._cosine.tolist(), *self._pairs.tolist())
        return [Pair(*values) for values in zip(*columns, strict=True)]


@torch.inference_mode()
def most_similar_pairs(
    vectors: NDArray[np.float32],
    top: int = 100,
    threshold: float = -1.0,
    advance: Callable[[int], None] = lambda count: None,
) -> list[Pair]:
    """The pairs of rows with the largest cosines, best first; among equals, the ones with the smaller rows.

    Products of blocks over the upper triangle: time grows with n², memory does not.

    Args:
        vectors: (n, d) of length 1.
        top: how many pairs at most.
        threshold: the smallest cosine that counts.
        advance: called with the number of blocks done since the last call; there are `blocks(n)`.
    """
    best = Best(top, threshold)
    rows = torch.from_numpy(vectors)
    for low in range(0, len(rows), ROWS):
        for left in range(low // COLUMNS * COLUMNS, len(rows), COLUMNS):
            block = rows[low : low + ROWS] @ rows[left : left + COLUMNS].T
            if left < low + ROWS:  # on the diagonal: every pair once, and no sentence with itself
                block.masked_fill_(torch.ones_like(block, dtype=torch.bool).tril(low - left), -torch.inf)
            columns = np.arange(left, left + block.shape[1])
            keep_best(block, np.arange(low, low + len(block)), columns, best)
            advance(1)
    return best.pairs()


def blocks(rows: int) -> int:
    """How many blocks `most_similar_pairs` computes."""
    columns = -(-rows // COLUMNS)
    return sum(columns - low // COLUMNS for low in range(0, rows, ROWS))


def keep_best(block: torch.Tensor, rows: NDArray[np.int64], columns: NDArray[np.int64], best: Best) -> None:
    """Consider a (rows, columns) block of cosines: the numbers of its rows (rows,) and columns (columns,)."""
    if not block.numel() or not best.top or float(block.max()) < best.bar:
        return
    flat = block.flatten()
    place = (flat >= best.bar).nonzero()[:, 0]
    cosine = flat[place]
    if len(place) > best.top:
        last = cosine.topk(best.top).values[-1]
        above = cosine > last
        equal = (cosine == last).nonzero()[: best.top - int(above.sum()), 0]  # those with the smaller rows
        chosen = torch.cat([above.nonzero()[:, 0], equal])
        place, cosine = place[chosen], cosine[chosen]
    width = block.shape[1]
    best.add(cosine.numpy(), rows[(place // width).numpy()], columns[(place % width).numpy()])
