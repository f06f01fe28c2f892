"""Clusters of unit vectors, and the words that distinguish each from the others."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import unit
from selfsent.errors import DataError, SettingsError
from selfsent.lexical import Analyzer, fold, split_words
from selfsent.lexical.courtesy import says_nothing, without_courtesies

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus

MANY, BLOCK = 100_000, 1 << 16
"""Number of sentences from which k-means runs on mini-batches; rows per block of cosines."""
FEW, CLEAR = 5, 0.25
"""Minimum silhouette for fewer clusters than this: two halves separate nearly any text best."""
DRAWN, COMPONENTS = 4_000, 50
"""Rows and principal components by which the number of clusters is chosen."""
COUNTS, SMALLEST, NEARLY = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50), 5, 0.05
"""Candidate numbers of clusters, minimum rows of a cluster, and tolerated relative loss of silhouette."""
COURTEOUS = 300
"""Maximum characters of a text that only greets, thanks and closes."""
NAMED_BY = 50_000
"""Texts by which clusters are named at most, drawn at even distances."""
SAME = 1e-4
"""Maximum difference of cosines of the same text between two orders of encoding."""
WORDS, LONGEST = 5, 40
"""Words in the name of a cluster, and maximum characters of a word."""
_NO_LETTER = re.compile(r"[\d_]")
LIFT = 2.0
"""Minimum ratio of a telling word's frequency in its cluster to that elsewhere."""


@dataclass(frozen=True)
class Clusters:
    """Clusters of rows, the largest first.

    Args:
        cluster: (n,) number of each row's cluster; -1 for an outlier.
        cosine: (n,) cosine of each row to the centre of its cluster, of an outlier to the nearest centre.
        repeats: (n,) number of texts per row; one each if None.
        count: minimum number of clusters; the last ones may be empty.
    """

    cluster: NDArray[np.int64]
    cosine: NDArray[np.float32]
    repeats: NDArray[np.int64] | None = None
    count: int = 0

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(k,) number of texts in each cluster."""
        return self._texts[1:]

    @property
    def outliers(self) -> int:
        """Number of texts in no cluster."""
        return int(self._texts[0])

    @property
    def _texts(self) -> NDArray[np.int64]:
        return np.bincount(self.cluster + 1, self.repeats, self.count + 1).astype(np.int64)

    def typical(self, cluster: int, count: int = 1) -> NDArray[np.int64]:
        """The rows of a cluster nearest to its centre, nearest first."""
        rows = np.flatnonzero(self.cluster == cluster)
        found: NDArray[np.int64] = rows[np.argsort(-self.cosine[rows], kind="stable")[:count]]
        return found


def find_clusters(
    vectors: NDArray[np.float32],
    count: int | None = None,
    seed: int = 0,
    repeats: NDArray[np.int64] | None = None,
    empty: NDArray[np.bool_] | None = None,
    many: int = MANY,
) -> Clusters:
    """Cluster rows: by k-means into so many clusters, else into as many as the rows have, and outliers into none.

    Args:
        vectors: (n, d) of length 1.
        count: number of clusters; fewer if rows are equal; None to choose it (see `choose_count`).
        seed: of the first centres.
        repeats: (n,) number of texts per row: they count for sizes, not for centres.
        empty: (n,) rows that say nothing: outliers, unless `count` is given or nearly all are.
        many: number of rows from which k-means runs on mini-batches.

    Raises:
        SettingsError: fewer than two clusters, or fewer rows than clusters.
    """
    if count is not None and not 2 <= count <= len(vectors):
        most = f"at most the {len(vectors):,} different texts"
        raise SettingsError(f"clusters is {count}; it must be at least 2, and {most}")
    if count is None and empty is not None and empty.any() and (~empty).sum() >= SMALLEST:
        label = np.full(len(vectors), -1, np.int64)
        label[~empty] = find_clusters(vectors[~empty], seed=seed, many=many).cluster
        return _ordered(vectors, label, repeats)
    wanted = choose_count(vectors, seed) if count is None else count
    label = _k_means(vectors, wanted, seed, 3, many) if wanted > 1 else np.zeros(len(vectors), np.int64)
    if count is None:
        centres = centres_of(vectors, label)
        cosine = _nearest(vectors, centres, label)[1]
        least = np.array([_fence(cosine[label == number]) for number in range(len(centres))])
        few = np.bincount(label)[label] < SMALLEST
        label = np.where((cosine < least[label]) | (few & ~few.all()), -1, label)
    return _ordered(vectors, label, repeats)


def choose_count(vectors: NDArray[np.float32], seed: int = 0) -> int:
    """The number of clusters that rows have: the largest whose silhouette is within a twentieth of the best.

    It is looked for by k-means among `COUNTS`, on the first principal components of at most `DRAWN` rows; 1 for rows
    too few, or too alike, to part.

    Rousseeuw, 1987, "Silhouettes: a graphical aid to the interpretation and validation of cluster analysis".

    Args:
        vectors: (n, d) of length 1.
        seed: of the draw, and of the first centres.
    """
    from sklearn.decomposition import PCA
    from sklearn.metrics import pairwise_distances, silhouette_score

    if len(vectors) > DRAWN:
        vectors = vectors[np.sort(np.random.default_rng(seed).choice(len(vectors), DRAWN, replace=False))]
    if np.ptp(vectors, axis=0).max() <= SAME:
        return 1
    narrow = PCA(min(COMPONENTS, *vectors.shape), random_state=seed).fit_transform(vectors)
    apart, scores = pairwise_distances(narrow), dict[int, float]()
    for count in (count for count in COUNTS if count <= len(vectors) // SMALLEST):
        label = _k_means(narrow, count, seed, 1)
        if len(np.unique(label)) > 1:
            score = float(silhouette_score(apart, label, metric="precomputed"))
            if count >= FEW or score >= CLEAR:
                scores[count] = score
    best = max(scores.values(), default=0.0)
    return max((count for count, score in scores.items() if score >= best - NEARLY * abs(best)), default=1)


def _fence(cosines: NDArray[np.float32]) -> float:
    """The cosine to a centre below which a row is an outlier: Tukey's lower fence of the cluster's rows."""
    low, high = np.quantile(cosines, (0.25, 0.75))
    return float(low - 1.5 * (high - low)) - 1e-6  # equal cosines differ in the last digit


def _k_means(vectors: NDArray[np.float32], count: int, seed: int, starts: int, many: int = MANY) -> NDArray[np.int64]:
    """The number of each row's cluster, (n,); fewer clusters if rows are equal."""
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    kind: Any = MiniBatchKMeans if len(vectors) > many else KMeans
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal rows
        label = kind(n_clusters=count, n_init=starts, random_state=seed).fit(vectors).labels_
    return np.unique(label, return_inverse=True)[1]


def _ordered(vectors: NDArray[np.float32], label: NDArray[np.int64], repeats: NDArray[np.int64] | None) -> Clusters:
    """Clusters, the largest first, from any numbers of them, (n,); -1 stays what it is."""
    inside = label >= 0
    names, found = np.unique(label[inside], return_inverse=True)
    rank = np.empty(len(names), dtype=np.int64)
    sizes = np.bincount(found, None if repeats is None else repeats[inside])
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(names))
    cluster = np.full(len(label), -1, np.int64)
    cluster[inside] = rank[found]
    return clusters_of(vectors, cluster, repeats)


def clusters_of(
    vectors: NDArray[np.float32], cluster: NDArray[np.int64], repeats: NDArray[np.int64] | None = None
) -> Clusters:
    """Clusters from the number of each row's, (n,) from 0, -1 for outliers; none of them may be empty."""
    centres = centres_of(vectors, cluster)
    return Clusters(cluster, _nearest(vectors, centres, cluster)[1], repeats, len(centres))


def centres_of(vectors: NDArray[np.float32], cluster: NDArray[np.int64]) -> NDArray[np.float32]:
    """The centre of each cluster, of length 1: (k, d)."""
    return unit(np.stack([vectors[cluster == number].mean(0) for number in range(int(cluster.max(initial=-1)) + 1)]))


def _nearest(
    vectors: NDArray[np.float32], centres: NDArray[np.float32], cluster: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The nearest centre of each row, or its cluster's if it has one, and the cosine to it: (n,) each."""
    found, cosine = np.empty(len(vectors), np.int64), np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), BLOCK):
        part = slice(start, start + BLOCK)
        cosines = vectors[part] @ centres.T
        best = cosines.argmax(1)
        found[part] = best if cluster is None else np.where(cluster[part] >= 0, cluster[part], best)
        cosine[part] = cosines[np.arange(len(cosines)), found[part]]
    return found, cosine


class Centres:
    """Clusters to put other rows into: each row into that of the nearest centre.

    A row that is farther from the centre than every known row of the cluster is an outlier.

    Args:
        centres: (k, d) of length 1.
        least: (k,) smallest cosine to each of a known row of its cluster.
    """

    def __init__(self, centres: NDArray[np.float32], least: NDArray[np.float32]) -> None:
        self._centres, self._least = centres, least

    @classmethod
    def of(cls, known: NDArray[np.float32], cluster: NDArray[np.int64]) -> Centres:
        """From rows with clusters.

        Args:
            known: (m, d) of length 1.
            cluster: (m,) their clusters, from 0; -1 for outliers.
        """
        centres = centres_of(known, cluster)
        own = _nearest(known, centres, cluster)[1]
        return cls(centres, np.array([own[cluster == number].min() for number in range(len(centres))], np.float32))

    @property
    def size(self) -> int:
        """Dimension of the vectors."""
        return int(self._centres.shape[1])

    def assign(
        self,
        vectors: NDArray[np.float32],
        repeats: NDArray[np.int64] | None = None,
        empty: NDArray[np.bool_] | None = None,
    ) -> Clusters:
        """The clusters of other rows.

        Args:
            vectors: (n, d) of length 1.
            repeats: (n,) number of texts per row.
            empty: (n,) rows that say nothing, outliers too.
        """
        found, cosine = _nearest(vectors, self._centres)
        inside = cosine >= self._least[found] - SAME
        if empty is not None:
            inside &= ~empty
        return Clusters(np.where(inside, found, -1), cosine, repeats, len(self._centres))


def read_clusters(path: str) -> tuple[Corpus, NDArray[np.int64]]:
    """The texts of a file that `cluster --output` wrote, and the cluster of each, (n,).

    Raises:
        DataError: the file has no column with clusters, or no cluster in it.
    """
    from selfsent.data.corpus import read_corpus

    old = read_corpus(path, metadata_columns=("cluster",), min_rows=1)
    cells = old.input_rows.describe(np.asarray(old.input_rows.first))["cluster"]
    try:
        cluster = np.array([int(cell) for cell in cells], np.int64)
    except (TypeError, ValueError):
        problem = f"{path}: the column cluster holds no numbers: give what cluster --output wrote"
        raise DataError(problem) from None
    if missing := {*range(max(1, cluster.max() + 1))} - {*cluster.tolist()}:
        raise DataError(f"{path} has no group {min(missing)}: give what cluster --output wrote")
    return old, cluster


def without_content(texts: Iterable[str], language: str | None = None) -> NDArray[np.bool_]:
    """Texts that greet, thank and close, and say nothing else: (n,).

    Args:
        texts: of the rows, in order.
        language: of courtesies and stop words, as for `Analyzer`.
    """
    analyzer = Analyzer(language)
    return np.array([len(text) <= COURTEOUS and says_nothing(text, analyzer) for text in texts], np.bool_)


def parents_of(centres: NDArray[np.float32]) -> NDArray[np.int64]:
    """Groups of clusters: the parent of each, (k,), numbered from 0 in the order of their first cluster.

    Ward's hierarchy of the centres, cut where the silhouette of its parts is best, at half as many parts as clusters at
    most; one parent for fewer than four clusters.

    Args:
        centres: (k, d) of length 1.
    """
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    best, parents = -1.0, np.zeros(len(centres), np.int64)
    for count in range(2, len(centres) // 2 + 1):
        label = AgglomerativeClustering(count).fit(centres).labels_
        score = float(silhouette_score(centres, label))
        if score > best:
            best, parents = score, label
    first = dict.fromkeys(parents.tolist())
    rank = {parent: number for number, parent in enumerate(first)}
    return np.array([rank[parent] for parent in parents.tolist()], np.int64)


def telling_words(
    texts: Iterable[str],
    clusters: Clusters,
    count: int = WORDS,
    language: str | None = None,
    maximum: int = NAMED_BY,
) -> list[list[str]]:
    """The most telling words of each cluster, best first, without stop words and courtesies, and one of each stem.

    A word counts once a text: else the words of a single long one would name a cluster. Among words at least twice as
    frequent in the cluster (p) as elsewhere (q), those with the largest p log (p / q), their share of the KL
    divergence. q is smoothed by half a text.

    Args:
        texts: of the rows, in order.
        clusters: the clusters.
        count: maximum number of words per cluster.
        language: of stop words and stems, as for `Analyzer`.
        maximum: texts that are read, every second one, say, of twice as many.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    written = dict[str, str]()
    """A word as a text has it, for each folded one."""

    def words_in(text: str) -> list[str]:
        said = split_words(without_courtesies(text, language))
        found = [word for word in said if len(word) <= LONGEST and not _NO_LETTER.search(word)]
        folded = fold(found)
        for word, each in zip(folded, found, strict=True):
            written.setdefault(word, each)
        return folded

    step = -(-len(clusters.cluster) // maximum)
    own_cluster = clusters.cluster[::step]
    vectorizer = CountVectorizer(analyzer=words_in, max_features=50_000, binary=True)
    try:
        counts = vectorizer.fit_transform(islice(texts, 0, None, step))
    except ValueError:  # no words at all
        return [[] for _ in clusters.sizes]
    rows = np.flatnonzero(own_cluster >= 0)
    shape = len(clusters.sizes), len(own_cluster)
    member = csr_array((np.ones(len(rows)), (own_cluster[rows], rows)), shape=shape)
    inside, names, found = (member @ counts).tocsr(), vectorizer.get_feature_names_out(), list[list[str]]()
    total, analyzer = counts.sum(0), Analyzer(language)
    total = np.asarray(total).ravel()
    for cluster in range(len(clusters.sizes)):
        own = inside[[cluster]].toarray()[0]
        share, elsewhere = own / max(own.sum(), 1), total - own + 0.5
        elsewhere = elsewhere / elsewhere.sum()
        weight = np.where(share >= LIFT * elsewhere, share * np.log(np.maximum(share, 1e-300) / elsewhere), 0)
        chosen = dict[str, str]()
        for column in np.argsort(-weight, kind="stable"):
            if weight[column] <= 0 or len(chosen) == count:
                break
            for stem in analyzer(str(names[column]))[:1]:  # none of a stop word
                chosen.setdefault(stem, written[str(names[column])])
        found.append(list(chosen.values()))
    return found
