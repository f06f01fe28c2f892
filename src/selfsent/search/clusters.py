"""Sentences in groups of like meaning: k-means on vectors of length 1, and what tells a group from the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import SettingsError
from selfsent.search.vectors import unit

MANY = 100_000
"""Sentences from which on the centres are moved by samples of them, not by all of them at once."""
WORDS = 5
LIFT = 2.0
"""Times as frequent as everywhere, at least, is a word that tells a group."""


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
    """Group rows by k-means on the unit sphere (Dhillon and Modha, 2001).

    Args:
        vectors: (n, d) of length 1.
        count: how many groups; fewer come out where rows are equal.
        seed: of the first centres.

    Raises:
        SettingsError: there are fewer than two groups, or fewer rows than groups.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if not 2 <= count <= len(vectors):
        raise SettingsError(f"--clusters is {count}; it must be at least 2, and at most the {len(vectors):,} sentences")
    kind: Any = MiniBatchKMeans if len(vectors) > MANY else KMeans
    fitted = kind(n_clusters=count, n_init=3, random_state=seed).fit(vectors)
    names, sizes = np.unique(fitted.labels_, return_counts=True)
    order = names[np.argsort(-sizes, kind="stable")]
    number = np.empty(count, dtype=np.int64)
    number[order] = np.arange(len(order))
    cosine = np.einsum("nd,nd->n", vectors, unit(fitted.cluster_centers_)[fitted.labels_])
    return Clusters(number[fitted.labels_], cosine)


def telling_words(texts: Iterable[str], clusters: Clusters, count: int = WORDS) -> list[list[str]]:
    """The words that tell each group from the rest, the most telling first.

    Of the words at least twice as frequent in the group (p) as everywhere (q), those with the largest p log (p / q),
    their part in the divergence of the group's words from all words. So function words drop out, in any language.

    Args:
        texts: of the rows, in order.
        clusters: the groups.
        count: words of a group, at most.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=r"(?u)\b[^\W\d_]{2,}\b", max_features=50_000)
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # no words at all
        return [[] for _ in clusters.sizes]
    rows = len(clusters.cluster)
    member = csr_array((np.ones(rows), (clusters.cluster, np.arange(rows))), shape=(len(clusters.sizes), rows))
    inside = (member @ counts).toarray()
    share = inside / np.maximum(inside.sum(1, keepdims=True), 1)
    everywhere = inside.sum(0) / inside.sum()
    weight = np.where(share >= LIFT * everywhere, share * np.log(np.maximum(share, 1e-300) / everywhere), 0)
    names = vectorizer.get_feature_names_out()
    best = np.argsort(-weight, axis=1, kind="stable")[:, :count]
    return [[str(names[i]) for i in row if each[i] > 0] for row, each in zip(best, weight, strict=True)]
