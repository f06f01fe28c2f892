"""The most similar pairs of sentences, by exact or approximate search, ranked again with a lexical score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selfsent.lexical import Analyzer, WordCounts
from selfsent.lexical.hybrid import PAIR_WEIGHT, fuse, normalized
from selfsent.progress import SILENT, Progress
from selfsent.renamed import callbacks_as_progress, renamed_arguments, warn_renamed
from selfsent.search.exact import corpus_language, input_places
from selfsent.search.ivf import IVF, training_rows
from selfsent.search.near import Texts

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus

Vectors = NDArray[np.float32]
Integers = NDArray[np.int64]

ROWS, COLUMNS = 1024, 4096
"""Shape of a block of cosines."""
CANDIDATES, TIMES = 10_000, 4
"""Candidates for ranking with TF-IDF: minimum number, and multiple of the wanted number of pairs."""
NEIGHBOURS, NPROBE = 16, 16
"""Neighbours per sentence in approximate search, and lists visited."""
SAMPLE = 1000
"""Size of the sample that is also searched exactly, to measure the recall."""
_ROUNDED = 1e-3
"""Maximum error of a cosine of 16-bit vectors."""
_COUNTED_TOGETHER = 1024


class Pair(NamedTuple):
    """Two rows, the smaller number first.

    Args:
        cosine: of their vectors.
        first: a row.
        second: the other one.
        lexical_score: TF-IDF cosine of their texts, 0 to 1; 0 if not computed.
        ids: of both, for rows of the input: the first metadata column; None without.
        sentences: places in both rows, from 0, for split texts; None for others.
    """

    cosine: float
    first: int
    second: int
    lexical_score: float = 0.0
    ids: tuple[Any, Any] = (None, None)
    sentences: tuple[int | None, int | None] = (None, None)

    @renamed_arguments(word_weight="lexical_weight")
    def score(self, lexical_weight: float) -> float:
        """(cosine + lexical_weight · lexical_score) / (1 + lexical_weight)."""
        return normalized(fuse(self.cosine, self.lexical_score, lexical_weight), lexical_weight)

    @property
    def words(self) -> float:
        """Deprecated name of `lexical_score`."""
        warn_renamed("Pair.words", "Pair.lexical_score")
        return self.lexical_score


class TopPairs:
    """The best pairs so far, by descending cosine, then ascending rows.

    Args:
        top: number of pairs to keep.
        threshold: minimum cosine.
    """

    def __init__(self, top: int, threshold: float = -1.0) -> None:
        # Rounding may give cosines below -1.
        self.top, self.bar = top, threshold if threshold > -1 else -2.0
        self._cosine = np.empty(0, np.float32)
        self._pairs = np.empty((2, 0), np.int64)

    def add(self, cosine: Vectors, first: Integers, second: Integers) -> None:
        """Add pairs, (n,) each; duplicates are allowed."""
        pairs = np.hstack([self._pairs, np.stack([np.minimum(first, second), np.maximum(first, second)])])
        cosine = np.concatenate([self._cosine, cosine])
        _, distinct = np.unique(pairs[0] << 32 | pairs[1], return_index=True)
        cosine, pairs = cosine[distinct], pairs[:, distinct]
        keep = np.lexsort((pairs[1], pairs[0], -cosine))[: self.top]
        keep = keep[cosine[keep] >= self.bar]
        self._cosine, self._pairs = cosine[keep], pairs[:, keep]
        if len(keep) == self.top:
            self.bar = float(self._cosine[-1])

    def add_block(self, block: Vectors, rows: Integers, columns: Integers) -> None:
        """Add a block of cosines (rows, columns) of rows (rows,) and columns (columns,)."""
        if not block.size or not self.top or float(block.max()) < self.bar:
            return
        flat = block.ravel()
        index = np.flatnonzero(flat >= self.bar)
        cosine = flat[index]
        if len(index) > self.top:
            last = np.partition(cosine, len(cosine) - self.top)[len(cosine) - self.top]
            above = np.flatnonzero(cosine > last)
            equal = np.flatnonzero(cosine == last)[: self.top - len(above)]  # smaller rows first
            chosen = np.concatenate([above, equal])
            index, cosine = index[chosen], cosine[chosen]
        width = block.shape[1]
        self.add(cosine, rows[index // width], columns[index % width])

    def pairs(self) -> list[Pair]:
        """The pairs, best first."""
        return list(map(Pair, self._cosine.tolist(), *self._pairs.tolist()))


@callbacks_as_progress
def most_similar_pairs(
    vectors: Vectors,
    top: int = 100,
    threshold: float = -1.0,
    progress: Progress = SILENT,
    block: tuple[int, int] = (ROWS, COLUMNS),
) -> list[Pair]:
    """The pairs of rows with the largest cosines, best first; ties by ascending rows.

    Blockwise products over the upper triangle: quadratic time, constant memory.

    Args:
        vectors: (n, d) of length 1.
        top: maximum number of pairs.
        threshold: minimum cosine.
        progress: receives the number of rows done.
        block: shape of the products.
    """
    best, advance = TopPairs(top, threshold), progress.counting("comparing", len(vectors))
    height, width = block
    for low in range(0, len(vectors), height):
        band = vectors[low : low + height]
        for left in range(low // width * width, len(vectors), width):
            cosines = band @ vectors[left : left + width].T
            if left < low + height:  # on the diagonal: each pair once, without self-pairs
                cosines[np.tri(cosines.shape[0], cosines.shape[1], low - left, dtype=bool)] = -np.inf
            best.add_block(cosines, np.arange(low, low + len(cosines)), np.arange(left, left + cosines.shape[1]))
        advance(len(band))
    return best.pairs()


@callbacks_as_progress
def approximate_pairs(
    vectors: Vectors,
    top: int = 100,
    threshold: float = -1.0,
    seed: int = 0,
    progress: Progress = SILENT,
    candidates: int | None = None,
    nprobe: int = NPROBE,
    sample_size: int = SAMPLE,
) -> tuple[list[Pair], float | None]:
    """Pairs of rows with large cosines, best first, and the recall.

    An IVF compares each vector with those of a few lists, so some pairs are missed. The recall is the share found of
    the `top` best pairs with a sentence from a random sample.

    Args:
        vectors: (n, d) of length 1.
        top: maximum number of pairs.
        threshold: minimum cosine.
        seed: of the sample.
        progress: receives the number of rows done.
        candidates: maximum number of pairs, if more than `top`.
        nprobe: number of lists that a vector is compared with.
        sample_size: number of sentences searched exactly, for the recall.

    Returns:
        The pairs, and the recall (0 to 1), or None if no pair of the sample reaches the threshold.

    Raises:
        SettingsError: faiss is not installed.
    """
    drawn = np.random.default_rng(seed).permutation(len(vectors))
    ivf = IVF.trained(vectors[np.sort(drawn[: training_rows(len(vectors))])], len(vectors), seed)
    parts = np.array_split(np.arange(len(vectors)), range(ROWS, len(vectors), ROWS))
    for rows in parts:
        ivf.add(vectors[rows], rows)
    ivf.nprobe = nprobe
    sample = np.sort(drawn[:sample_size])
    is_sampled = np.zeros(len(vectors), dtype=bool)
    is_sampled[sample] = True
    best, found, expected = TopPairs(candidates or top, threshold), TopPairs(top, threshold), TopPairs(top, threshold)
    queries, advance = vectors[sample], progress.counting("comparing", len(vectors))
    for rows in parts:
        near, neighbours = ivf.search(vectors[rows], NEIGHBOURS + 1)
        cosine, first, second = near.ravel(), np.repeat(rows, neighbours.shape[1]), neighbours.ravel()
        sampled = is_sampled[first] | is_sampled[second]
        # A row finds itself, and -1 if the lists hold fewer vectors.
        likely = (second >= 0) & (second != first)
        likely &= cosine >= np.where(sampled, min(best.bar, found.bar), best.bar) - _ROUNDED
        first, second, sampled = first[likely], second[likely], sampled[likely]
        cosine = np.einsum("nd,nd->n", vectors[first], vectors[second])
        best.add(cosine, first, second)
        found.add(cosine[sampled], first[sampled], second[sampled])
        cosines = queries @ vectors[rows].T
        # Pairs within the sample occur twice, and rows pair with themselves.
        cosines[is_sampled[rows] & (rows <= sample[:, None])] = -np.inf
        expected.add_block(cosines, sample, rows)
        advance(len(rows))
    wanted = {pair[1:3] for pair in expected.pairs()}
    known = wanted & {pair[1:3] for pair in found.pairs()}
    return best.pairs(), len(known) / len(wanted) if wanted else None


def candidates_for(top: int, threshold: float, lexical_weight: float) -> tuple[int, float]:
    """Number and minimum cosine of the candidate pairs to rank with TF-IDF."""
    return max(CANDIDATES, TIMES * top) if lexical_weight else top, threshold * (1 + lexical_weight) - lexical_weight


def by_tfidf(
    pairs: Sequence[Pair],
    corpus: Corpus,
    top: int = 100,
    threshold: float = -1.0,
    lexical_weight: float = PAIR_WEIGHT,
    language: str | None = None,
    batch_size: int = _COUNTED_TOGETHER,
) -> list[Pair]:
    """Pairs ranked by the fused score, best first; ties by ascending rows.

    Args:
        pairs: candidates by cosine.
        corpus: of the rows, for document frequencies.
        top: maximum number of pairs.
        threshold: minimum score.
        lexical_weight: of the lexical score relative to the cosine.
        language: of the stemmer, one of `LANGUAGES`; by default the language of most texts.
        batch_size: texts, or pairs of them, in memory at once.

    Raises:
        SettingsError: no such language.

    Examples:
        >>> pairs = most_similar_pairs(vectors, *candidates_for(20, 0.8, 0.5))  # doctest: +SKIP
        >>> by_tfidf(pairs, corpus, 20, 0.8, 0.5)  # doctest: +SKIP
    """
    counts = WordCounts(analyzer=Analyzer(language or corpus_language(corpus)))
    for batch in corpus.batches(size=batch_size):
        counts.add(batch)
    pairs = sorted(pairs, key=lambda pair: pair.first)  # so that a batch has few distinct texts
    sides = np.array([pair[1:3] for pair in pairs], np.int64).reshape(-1, 2).T
    shared = shared_words(corpus, counts, sides[0], sides[1], batch_size).tolist()
    found = [pair._replace(lexical_score=lexical) for pair, lexical in zip(pairs, shared, strict=True)]
    cosines, first, second, lexical = np.array([pair[:4] for pair in found], np.float64).reshape(-1, 4).T
    scores = normalized(fuse(cosines, lexical, lexical_weight), lexical_weight)
    best = np.lexsort((second, first, -scores))[:top]
    return [found[place] for place in best[scores[best] >= threshold]]


def shared_words(
    corpus: Texts, counts: WordCounts, first: Integers, second: Integers, batch_size: int = _COUNTED_TOGETHER
) -> Vectors:
    """TF-IDF cosine of the texts in each pair of rows, (pairs,) each; few texts in memory at a time."""
    found = np.zeros(len(first), np.float32)
    for start in range(0, len(first), batch_size):
        chunk = slice(start, start + batch_size)
        rows, sides = np.unique(np.stack([first[chunk], second[chunk]]), return_inverse=True)
        terms, (one, other) = counts.weighed(corpus.texts(rows)), sides.reshape(2, -1)
        found[chunk] = np.asarray(terms[one].multiply(terms[other]).sum(axis=1)).ravel()
    return found


def in_input(pairs: Sequence[Pair], corpus: Corpus) -> list[Pair]:
    """Pairs of rows of a corpus as pairs of rows of the input: the first ones with these texts."""
    places = input_places(corpus, [row for pair in pairs for row in pair[1:3]])
    found = []
    for pair, one, other in zip(pairs, places[::2], places[1::2], strict=True):
        (first, first_id, first_sentence), (second, second_id, second_sentence) = one, other
        ids, sentences = (first_id, second_id), (first_sentence, second_sentence)
        found.append(pair._replace(first=first, second=second, ids=ids, sentences=sentences))
    return found
