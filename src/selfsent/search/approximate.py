"""The most similar pairs among millions of sentences: an index looks only where neighbours are likely."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from selfsent.search.cells import Cells, wanted
from selfsent.search.pairs import Best, Pair, keep_best

NEIGHBOURS = 16
"""Sentences nearest to each one that are looked at."""
PROBED = 16
"""Cells of the index that are searched for each sentence."""
SAMPLE = 1000
"""Sentences whose pairs are also found exactly, to see what the index misses."""
_ROUNDED = 1e-3
"""A cosine of vectors in 16 bits is nearer than that to the exact one."""
_TOGETHER = 1 << 16
"""Vectors added to an index at once, which are copied for that."""


def approximately_most_similar_pairs(
    vectors: NDArray[np.float32],
    top: int = 100,
    threshold: float = -1.0,
    seed: int = 0,
    advance: Callable[[int], None] = lambda count: None,
    proposed: int | None = None,
) -> tuple[list[Pair], float | None]:
    """Pairs of rows with large cosines, best first, and what share of such pairs the index finds.

    As `pairs_in_cells`, with an index that is made for it; the cosines are exact.

    Args:
        vectors: (n, d) of length 1.
        top: how many pairs at most.
        threshold: the smallest cosine that counts.
        seed: of the sample and of the index' centres.
        advance: called with the number of rows done since the last call; there are n.
        proposed: as there.

    Raises:
        SettingsError: faiss is not installed.
    """
    draw = np.random.default_rng(seed)
    cells = Cells.around(vectors[np.sort(draw.permutation(len(vectors))[: wanted(len(vectors))])], len(vectors), seed)
    for start in range(0, len(vectors), _TOGETHER):
        cells.add(vectors[start : start + _TOGETHER])
    return pairs_in_cells(cells, top, threshold, seed, advance, vectors, proposed)


def pairs_in_cells(
    cells: Cells,
    top: int = 100,
    threshold: float = -1.0,
    seed: int = 0,
    advance: Callable[[int], None] = lambda count: None,
    exact: NDArray[np.float32] | None = None,
    proposed: int | None = None,
) -> tuple[list[Pair], float | None]:
    """Pairs of rows of an index with large cosines, best first, and what share of such pairs it finds.

    Each vector is compared with those of its own cell and of the 15 nearest others. So some pairs are missed: of the
    `top` best pairs with a sentence from a random sample, found by computing all its cosines, the share that the
    index found too.

    Args:
        cells: the index.
        top: how many pairs at most.
        threshold: the smallest cosine that counts.
        seed: of the sample.
        advance: called with the number of rows done since the last call; there are `len(cells)`.
        exact: (n, d) of length 1, the vectors in 32 bits, which the cosines are then computed from.
        proposed: how many pairs at most, where more are wanted than `top`; the recall is that of the best `top`.

    Returns:
        The pairs, and the recall in 0 to 1; None when no pair of the sample reaches the threshold.
    """
    cells.probed = min(PROBED, cells.count)
    sample = np.sort(np.random.default_rng(seed).permutation(len(cells))[:SAMPLE])
    sampled = np.zeros(len(cells), dtype=bool)
    sampled[sample] = True
    best, found = Best(proposed or top, threshold), Best(top, threshold)
    for cosine, first, second in _neighbours(cells, advance):
        own = sampled[first] | sampled[second]
        likely = cosine >= np.where(own, min(best.bar, found.bar), best.bar) - _ROUNDED
        cosine, first, second, own = cosine[likely], first[likely], second[likely], own[likely]
        if exact is not None:
            cosine = np.einsum("nd,nd->n", exact[first], exact[second])
        best.add(cosine, first, second)
        found.add(cosine[own], first[own], second[own])
    all_of_sample = {pair[1:] for pair in _exactly(cells, sample, top, threshold, exact)}
    known = all_of_sample & {pair[1:] for pair in found.pairs()}
    recall = len(known) / len(all_of_sample) if all_of_sample else None
    return best.pairs(), recall


def _neighbours(
    cells: Cells, advance: Callable[[int], None]
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]]:
    """Cosine, row and neighbour, for a cell at a time; every row leads to its nearest."""
    for rows, vectors in cells.parts():
        cosine, nearest = cells.search(vectors, NEIGHBOURS + 1)
        first, second = np.repeat(rows, nearest.shape[1]), nearest.ravel()
        # A row finds itself, which is no pair, and -1 where its cells hold fewer vectors.
        real = (second >= 0) & (second != first)
        advance(len(rows))
        yield cosine.ravel()[real], first[real], second[real]


@torch.inference_mode()
def _exactly(
    cells: Cells, sample: NDArray[np.int64], top: int, threshold: float, exact: NDArray[np.float32] | None
) -> list[Pair]:
    """The best pairs that have a row of the sample, (s,)."""
    best = Best(top, threshold)
    queries = torch.from_numpy(cells.take(sample) if exact is None else exact[sample])
    numbers = torch.from_numpy(sample)
    for rows, vectors in cells.parts():
        columns = torch.from_numpy(rows)
        block = queries @ torch.from_numpy(vectors if exact is None else exact[rows]).T
        own = torch.isin(columns, numbers)
        # Two rows of the sample meet twice, and a row meets itself.
        block[own & (columns <= numbers[:, None])] = -torch.inf
        keep_best(block, sample, rows, best)
    return best.pairs()
