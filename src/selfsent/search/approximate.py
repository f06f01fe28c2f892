"""The most similar pairs among millions of sentences: an index looks only where neighbours are likely."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from selfsent.errors import SettingsError
from selfsent.search.pairs import COLUMNS, Best, Pair, keep_best

NEIGHBOURS = 16
"""Sentences nearest to each one that are looked at."""
PROBED = 16
"""Cells of the index that are searched for each sentence."""
SAMPLE = 1000
"""Sentences whose pairs are also found exactly, to see what the index misses."""


def approximately_most_similar_pairs(
    vectors: NDArray[np.float32],
    top: int = 100,
    threshold: float = -1.0,
    seed: int = 0,
    advance: Callable[[int], None] = lambda count: None,
) -> tuple[list[Pair], float | None]:
    """Pairs of rows with large cosines, best first, and what share of such pairs the index finds.

    An inverted file of faiss: the vectors are put into cells around a few centres, and each is compared with those of
    its own cell and the nearest others. The cosines are exact, and some pairs are missed: of the `top` best pairs with
    a sentence from a random sample, found by computing all cosines of the sample, the share that the index found too.

    Args:
        vectors: (n, d) of length 1.
        top: how many pairs at most.
        threshold: the smallest cosine that counts.
        seed: of the sample and of the index' centres.
        advance: called with the number of rows done since the last call; there are n.

    Returns:
        The pairs, and the recall in 0 to 1; None when no pair of the sample reaches the threshold.

    Raises:
        SettingsError: faiss is not installed.
    """
    sample = np.sort(np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE])
    sampled = np.zeros(len(vectors), dtype=bool)
    sampled[sample] = True
    best, found = Best(top, threshold), Best(top, threshold)
    for cosine, first, second in _neighbours(_index(vectors, seed), vectors, advance):
        likely = cosine >= best.bar
        best.add(cosine[likely], first[likely], second[likely])
        likely = (cosine >= found.bar) & (sampled[first] | sampled[second])
        found.add(cosine[likely], first[likely], second[likely])
    wanted = {pair[1:] for pair in _exactly(vectors, sample, top, threshold)}
    recall = len(wanted & {pair[1:] for pair in found.pairs()}) / len(wanted) if wanted else None
    return best.pairs(), recall


def require_index() -> Any:
    """The library of the index.

    Raises:
        SettingsError: it is not installed.
    """
    try:
        import faiss
    except ImportError:
        raise SettingsError(
            "--approximate needs faiss: pip install 'selfsent[index]', or leave it out for the exact answer"
        ) from None
    return faiss


def _index(vectors: NDArray[np.float32], seed: int) -> Any:
    faiss = require_index()
    count, size = vectors.shape
    cells = max(1, min(4 * int(count**0.5), count // 39))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(size), size, cells, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = seed + 1
    index.cp.max_points_per_centroid = 64
    index.cp.min_points_per_centroid = 1  # of fewer than 39 vectors a cell faiss warns
    index.nprobe = PROBED
    index.train(vectors)
    index.add(vectors)
    return index


def _neighbours(
    index: Any, vectors: NDArray[np.float32], advance: Callable[[int], None]
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]]:
    """Cosine, row and neighbour, for a few thousand rows at a time; every row leads to its nearest."""
    for start in range(0, len(vectors), COLUMNS):
        rows = np.arange(start, min(start + COLUMNS, len(vectors)))
        cosine, nearest = index.search(vectors[rows[0] : rows[-1] + 1], NEIGHBOURS + 1)
        first = np.repeat(rows, nearest.shape[1])
        cosine, second = cosine.ravel(), nearest.ravel().astype(np.int64)
        # A row finds itself, which is no pair, and -1 where its cells hold fewer vectors.
        real = (second >= 0) & (second != first)
        advance(len(rows))
        yield cosine[real], first[real], second[real]


@torch.inference_mode()
def _exactly(vectors: NDArray[np.float32], sample: NDArray[np.int64], top: int, threshold: float) -> list[Pair]:
    """The best pairs that have a row of the sample, (s,)."""
    best = Best(top, threshold)
    rows = torch.from_numpy(vectors)
    queries, numbers = rows[torch.from_numpy(sample)], torch.from_numpy(sample)
    for left in range(0, len(rows), COLUMNS):
        block = queries @ rows[left : left + COLUMNS].T
        columns = torch.arange(left, left + block.shape[1])
        own = torch.isin(columns, numbers)
        # Two rows of the sample meet twice, and a row meets itself.
        block[own & (columns <= numbers[:, None])] = -torch.inf
        keep_best(block, sample, left, best)
    return best.pairs()
