"""How well vectors group texts by label, with no classifier trained: the nearest neighbour, and k-means.

k-means follows MTEB (Muennighoff et al., 2023, arXiv:2210.07316; the protocol of its version 2): ten times, as many
rows are drawn with replacement, put into as many groups as there are labels by mini-batch k-means, and held against the
labels by the V-measure. MTEB first takes 4 % of its large sets; here all rows may be drawn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import Vectors, unit
from selfsent.evaluation.stats.resampling import Floats

DRAWS, ROWS, BATCH, SEED = 10, 16_384, 512, 42
"""Times that rows are drawn, how many; rows that k-means reads at a time; seed of both."""
BLOCK = 256
TIE = 1e-6

Labels = NDArray[np.int64]


def nearest_neighbours(vectors: Vectors, labels: Labels, texts: Sequence[str]) -> Floats:
    """Whether the row with the largest cosine to each row has its label: (n,), of equal ones the share that has.

    Rows with the same text are no neighbours: they would find each other whatever the vectors are.

    Args:
        vectors: (n, d).
        labels: (n,).
        texts: (n,).
    """
    rows, right = unit(vectors), np.zeros(len(vectors))
    _, text, count = np.unique(np.asarray(texts, dtype=object), return_inverse=True, return_counts=True)
    alike = np.split(np.argsort(text, kind="stable"), np.cumsum(count)[:-1])
    for start in range(0, len(rows), BLOCK):
        cosine = rows[start : start + BLOCK] @ rows.T
        for line, number in zip(cosine, text[start : start + BLOCK], strict=True):
            line[alike[number]] = -np.inf
        best = cosine.max(1, keepdims=True)
        row, other = np.nonzero((cosine >= best - TIE) & np.isfinite(best))
        same = np.bincount(row, labels[start + row] == labels[other], len(cosine))
        right[start : start + BLOCK] = same / np.maximum(np.bincount(row, minlength=len(cosine)), 1)
    return right


def v_measures(vectors: Vectors, labels: Labels) -> list[float]:
    """The V-measure of each clustering, in 0 to 1.

    Args:
        vectors: (n, d), as the model gives them.
        labels: (n,).
    """
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.metrics import v_measure_score

    draw = random.Random(SEED)
    found = []
    for _ in range(DRAWS):
        rows = np.array(draw.choices(range(len(labels)), k=ROWS))
        groups = MiniBatchKMeans(len(np.unique(labels)), batch_size=BATCH, n_init=1, random_state=SEED)
        found.append(float(v_measure_score(labels[rows], groups.fit_predict(vectors[rows]))))
    return found
