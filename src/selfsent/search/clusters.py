"""Clusters of sentences by k-means on vectors of length 1, and the words that are typical of each."""

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
"""Number of sentences from which k-means runs on mini-batches; rows per block of cosines."""
WORDS = 5
LIFT = 2.0
"""Minimum ratio of a telling word's frequency in its cluster to that elsewhere."""


@dataclass(frozen=True)
class Clusters:
    """Clusters of rows, the largest first.

    Args:
        cluster: (n,) number of each row's cluster.
        cosine: (n,) cosine of each row to the centre of its cluster.
        repeats: (n,) number of texts per row; one each if None.
    """

    cluster: NDArray[np.int64]
    cosine: NDArray[np.float32]
    repeats: NDArray[np.int64] | None = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(k,) number of texts in each cluster."""
        return np.bincount(self.cluster, self.repeats).astype(np.int64)

    def typical(self, cluster: int, count: int = 1) -> NDArray[np.int64]:
        """The rows of a cluster nearest to its centre, nearest first."""
        rows = np.flatnonzero(self.cluster == cluster)
        found: NDArray[np.int64] = rows[np.argsort(-self.cosine[rows], kind="stable")[:count]]
        return found


def find_clusters(
    vectors: NDArray[np.float32], count: int, seed: int = 0, repeats: NDArray[np.int64] | None = None
) -> Clusters:
    """Cluster rows by k-means.

    Args:
        vectors: (n, d) of length 1.
        count: number of clusters; fewer if rows are equal.
        seed: of the first centres.
        repeats: (n,) number of texts per row: they count for sizes, not for centres.

    Raises:
        SettingsError: fewer than two clusters, or fewer rows than clusters.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    if not 2 <= count <= len(vectors):
        raise SettingsError(
            f"clusters is {count}; it must be at least 2, and at most the {len(vectors):,} different texts"
        )
    kind: Any = MiniBatchKMeans if len(vectors) > MANY else KMeans
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal rows
        fitted = kind(n_clusters=count, n_init=3, random_state=seed).fit(vectors)
    names, label = np.unique(fitted.labels_, return_inverse=True)
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.argsort(-np.bincount(label, repeats), kind="stable")] = np.arange(len(names))
    centres, cosine = unit(fitted.cluster_centers_), np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), BLOCK):
        part = slice(start, start + BLOCK)
        cosine[part] = np.einsum("nd,nd->n", vectors[part], centres[fitted.labels_[part]])
    return Clusters(rank[label], cosine, repeats)


def telling_words(texts: Iterable[str], clusters: Clusters, count: int = WORDS) -> list[list[str]]:
    """The most telling words of each cluster, best first.

    Among words at least twice as frequent in the cluster (p) as elsewhere (q), those with the largest p log (p / q),
    their share of the KL divergence. q is smoothed by half a word.

    Args:
        texts: of the rows, in order.
        clusters: the clusters.
        count: maximum number of words per cluster.
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
    inside, names, found = (member @ counts).tocsr(), vectorizer.get_feature_names_out(), []
    total = inside.sum(0)
    for cluster in range(len(clusters.sizes)):
        own = inside[[cluster]].toarray()[0]
        share, elsewhere = own / max(own.sum(), 1), total - own + 0.5
        elsewhere = elsewhere / elsewhere.sum()
        weight = np.where(share >= LIFT * elsewhere, share * np.log(np.maximum(share, 1e-300) / elsewhere), 0)
        best = np.argsort(-weight, kind="stable")[:count]
        found.append([str(names[column]) for column in best if weight[column] > 0])
    return found
