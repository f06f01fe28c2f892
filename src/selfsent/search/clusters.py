"""Sentences in groups of like meaning: k-means on vectors of length 1, and what tells a group from the others."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import SettingsError
from selfsent.search.vectors import unit

MANY, BLOCK = 100_000, 1 << 16
"""Sentences from which on the centres are moved by samples of them, not by all of them at once."""
WORDS = 5
LIFT = 2.0
"""Times as frequent as elsewhere, at least, is a word that tells a group."""


@dataclass(frozen=True)
class Clusters:
    """Groups of rows, the largest first.

    Args:
        cluster: (n,) number of each row's group.
        cosine: (n,) cosine of each row to the centre of its group.
    """

    cluster: NDArray[np.int64]
    cosine: NDArray[np.float32]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(k,) rows of each group."""
        return np.bincount(self.cluster).astype(np.int64)

    def typical(self, cluster: int, count: int = 1) -> NDArray[np.int64]:
        """The rows of a group that are nearest to its centre, the nearest first."""
        rows = np.flatnonzero(self.cluster == cluster)
        found: NDArray[np.int64] = rows[np.argsort(-self.cosine[rows], kind="stable")[:count]]
        return found


def find_clusters(vectors: NDArray[np.float32], count: int, seed: int = 0) -> Clusters:
    """Group rows by k-means.

    Args:
        vectors: (n, d) of length 1.
        count: how many groups; fewer come out where rows are equal.
        seed: of the first centres.

    Raises:
        SettingsError: there are fewer than two groups, or fewer rows than groups.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    if not 2 <= count <= len(vectors):
        raise SettingsError(f"--clusters is {count}; it must be at least 2, and at most the {len(vectors):,} vectors")
    kind: Any = MiniBatchKMeans if len(vectors) > MANY else KMeans
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of rows that are equal
        fitted = kind(n_clusters=count, n_init=3, random_state=seed).fit(vectors)
    names, sizes = np.unique(fitted.labels_, return_counts=True)
    order = names[np.argsort(-sizes, kind="stable")]
    number = np.empty(count, dtype=np.int64)
    number[order] = np.arange(len(order))
    centres, cosine = unit(fitted.cluster_centers_), np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), BLOCK):
        part = slice(start, start + BLOCK)
        cosine[part] = np.einsum("nd,nd->n", vectors[part], centres[fitted.labels_[part]])
    return Clusters(number[fitted.labels_], cosine)


def telling_words(texts: Iterable[str], clusters: Clusters, count: int = WORDS) -> list[list[str]]:
    """The words that tell each group from the rest, the most telling first.

    Of the words at least twice as frequent in the group (p) as in the other groups together (q), those with the largest
    p log (p / q), their part in the divergence of the one from the other. q is smoothed by half a word.

    Args:
        texts: of the rows, in order.
        clusters: the groups.
        count: words of a group, at most.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=r"(?u)\b[^\W\d_]{2,40}\b", max_features=50_000)
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # no words at all
        return [[] for _ in clusters.sizes]
    rows = len(clusters.cluster)
    member = csr_array((np.ones(rows), (clusters.cluster, np.arange(rows))), shape=(len(clusters.sizes), rows))
    inside = (member @ counts).tocsr()
    total = inside.sum(0)
    names = vectorizer.get_feature_names_out()
    found = []
    for group in range(len(clusters.sizes)):
        own = inside[[group]].toarray()[0]
        share = own / max(own.sum(), 1)
        elsewhere = (total - own + 0.5) / (total - own + 0.5).sum()
        weight = np.where(share >= LIFT * elsewhere, share * np.log(np.maximum(share, 1e-300) / elsewhere), 0)
        best = np.argsort(-weight, kind="stable")[:count]
        found.append([str(names[place]) for place in best if weight[place] > 0])
    return found
