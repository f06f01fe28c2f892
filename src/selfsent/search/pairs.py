"""The most similar pairs of sentences: by all cosines, or by those of likely neighbours; then with a lexical score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from selfsent.lexical import Analyzer, WordCounts
from selfsent.lexical.scores import PAIR_WEIGHT
from selfsent.search.ivf import IVF, training_rows
from selfsent.search.nearest import corpus_language

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.search.index import Index

Vectors = NDArray[np.float32]
Integers = NDArray[np.int64]

ROWS, COLUMNS = 1024, 4096
"""The block of cosines that is computed together."""
CANDIDATES, TIMES = 10_000, 4
"""Pairs that the lexical score puts in order: at least so many, and so many for each one that is wanted."""
NEIGHBOURS, NPROBE = 16, 16
"""Neighbours of each sentence that an approximate search considers, and the lists it looks for them in."""
SAMPLE = 1000
"""Sentences whose pairs are also found exactly, to measure the recall."""
_ROUNDED = 1e-3
"""Largest error of a cosine of 16-bit vectors."""
_COUNTED_TOGETHER = 1024


class Pair(NamedTuple):
    """Two rows, the smaller number first.

    Args:
        cosine: of their vectors.
        first: a row.
        second: the other one.
        words: lexical score, the TF-IDF cosine of their texts, 0 to 1. 0 where it was not computed.
    """

    cosine: float
    first: int
    second: int
    words: float = 0.0

    def score(self, word_weight: float) -> float:
        """(cosine + word_weight · words) / (1 + word_weight)."""
        return (self.cosine + word_weight * self.words) / (1 + word_weight)


class TopPairs:
    """The best pairs seen so far, by falling cosine; among equals, those with the smaller rows.

    Args:
        top: how many to keep.
        threshold: the smallest cosine that counts.
    """

    def __init__(self, top: int, threshold: float = -1.0) -> None:
        # Rounding makes some cosines smaller than -1.
        self.top, self.bar = top, threshold if threshold > -1 else -2.0
        self._cosine = np.empty(0, np.float32)
        self._pairs = np.empty((2, 0), np.int64)

    def add(self, cosine: Vectors, first: Integers, second: Integers) -> None:
        """Consider pairs, (n,) each; one may come twice."""
        pairs = np.hstack([self._pairs, np.stack([np.minimum(first, second), np.maximum(first, second)])])
        cosine = np.concatenate([self._cosine, cosine])
        _, distinct = np.unique(pairs[0] << 32 | pairs[1], return_index=True)
        cosine, pairs = cosine[distinct], pairs[:, distinct]
        keep = np.lexsort((pairs[1], pairs[0], -cosine))[: self.top]
        keep = keep[cosine[keep] >= self.bar]
        self._cosine, self._pairs = cosine[keep], pairs[:, keep]
        if len(keep) == self.top:
            self.bar = float(self._cosine[-1])

    def add_block(self, block: torch.Tensor, rows: Integers, columns: Integers) -> None:
        """Consider a block of cosines (rows, columns) of rows (rows,) and columns (columns,)."""
        if not block.numel() or not self.top or float(block.max()) < self.bar:
            return
        flat = block.flatten()
        place = (flat >= self.bar).nonzero()[:, 0]
        cosine = flat[place]
        if len(place) > self.top:
            last = cosine.topk(self.top).values[-1]
            above = cosine > last
            equal = (cosine == last).nonzero()[: self.top - int(above.sum()), 0]  # those with the smaller rows
            chosen = torch.cat([above.nonzero()[:, 0], equal])
            place, cosine = place[chosen], cosine[chosen]
        width = block.shape[1]
        self.add(cosine.numpy(), rows[(place // width).numpy()], columns[(place % width).numpy()])

    def pairs(self) -> list[Pair]:
        """The pairs, best first."""
        return list(map(Pair, self._cosine.tolist(), *self._pairs.tolist()))


@torch.inference_mode()
def most_similar_pairs(
    vectors: Vectors, top: int = 100, threshold: float = -1.0, advance: Callable[[int], None] = lambda count: None
) -> list[Pair]:
    """The pairs of rows with the largest cosines, best first; among equals, those with the smaller rows.

    Products of blocks over the upper triangle: time grows with n², memory does not.

    Args:
        vectors: (n, d) of length 1.
        top: how many pairs at most.
        threshold: the smallest cosine that counts.
        advance: called with the number of rows done since the last call; there are n.
    """
    best, rows = TopPairs(top, threshold), torch.from_numpy(vectors)
    for low in range(0, len(rows), ROWS):
        band = rows[low : low + ROWS]
        for left in range(low // COLUMNS * COLUMNS, len(rows), COLUMNS):
            block = band @ rows[left : left + COLUMNS].T
            if left < low + ROWS:  # on the diagonal: every pair once, and no sentence with itself
                block.masked_fill_(torch.ones_like(block, dtype=torch.bool).tril(low - left), -torch.inf)
            best.add_block(block, np.arange(low, low + len(block)), np.arange(left, left + block.shape[1]))
        advance(len(band))
    return best.pairs()


def approximate_pairs(
    vectors: Vectors,
    top: int = 100,
    threshold: float = -1.0,
    seed: int = 0,
    advance: Callable[[int], None] = lambda count: None,
    candidates: int | None = None,
) -> tuple[list[Pair], float | None]:
    """As `pairs_in_ivf`, of vectors (n, d) of length 1, whose exact cosines are computed.

    Raises:
        SettingsError: faiss is not installed.
    """
    sample = np.sort(np.random.default_rng(seed).permutation(len(vectors))[: training_rows(len(vectors))])
    ivf = IVF.trained(vectors[sample], len(vectors), seed)
    for start in range(0, len(vectors), 1 << 16):  # faiss copies what it adds at once
        block = vectors[start : start + (1 << 16)]
        ivf.add(block, np.arange(start, start + len(block)))
    return pairs_in_ivf(ivf, top, threshold, seed, advance, vectors, candidates)


@torch.inference_mode()
def pairs_in_ivf(
    ivf: IVF,
    top: int = 100,
    threshold: float = -1.0,
    seed: int = 0,
    advance: Callable[[int], None] = lambda count: None,
    exact: Vectors | None = None,
    candidates: int | None = None,
) -> tuple[list[Pair], float | None]:
    """Pairs of rows of an index with large cosines, best first, and the recall.

    Each vector is compared with those of 16 lists, so some pairs are missed. The recall is measured on the `top` best
    pairs that have a sentence of a random sample: the share of these that the index finds.

    Args:
        ivf: the index.
        top: how many pairs at most.
        threshold: the smallest cosine that counts.
        seed: of the sample.
        advance: called with the number of rows done since the last call; there are `len(ivf)`.
        exact: (n, d) of length 1, the vectors in 32 bits, which the cosines are then computed from.
        candidates: how many pairs at most, where more are wanted than `top`.

    Returns:
        The pairs, and the recall in 0 to 1; None if no pair of the sample reaches the threshold.
    """
    ivf.nprobe = NPROBE
    sample = np.sort(np.random.default_rng(seed).permutation(len(ivf))[:SAMPLE])
    is_sampled = np.zeros(len(ivf), dtype=bool)
    is_sampled[sample] = True
    best, found, expected = TopPairs(candidates or top, threshold), TopPairs(top, threshold), TopPairs(top, threshold)
    queries = torch.from_numpy(ivf.take(sample) if exact is None else exact[sample])
    for rows, vectors in ivf.lists():
        near, neighbours = ivf.search(vectors, NEIGHBOURS + 1)
        cosine, first, second = near.ravel(), np.repeat(rows, neighbours.shape[1]), neighbours.ravel()
        sampled = is_sampled[first] | is_sampled[second]
        # A row finds itself, and -1 where the lists hold fewer vectors.
        likely = (second >= 0) & (second != first)
        likely &= cosine >= np.where(sampled, min(best.bar, found.bar), best.bar) - _ROUNDED
        cosine, first, second, sampled = cosine[likely], first[likely], second[likely], sampled[likely]
        if exact is not None:
            cosine = np.einsum("nd,nd->n", exact[first], exact[second])
        best.add(cosine, first, second)
        found.add(cosine[sampled], first[sampled], second[sampled])
        block = queries @ torch.from_numpy(vectors if exact is None else exact[rows]).T
        # Two rows of the sample meet twice, and a row meets itself.
        block[torch.from_numpy(is_sampled[rows] & (rows <= sample[:, None]))] = -torch.inf
        expected.add_block(block, sample, rows)
        advance(len(rows))
    wanted = {pair[1:3] for pair in expected.pairs()}
    known = wanted & {pair[1:3] for pair in found.pairs()}
    return best.pairs(), len(known) / len(wanted) if wanted else None


def candidates_for(top: int, threshold: float, word_weight: float) -> tuple[int, float]:
    """How many pairs to take by cosine, and from which cosine on, so that the lexical score can choose among them."""
    return max(CANDIDATES, TIMES * top) if word_weight else top, threshold * (1 + word_weight) - word_weight


def by_words(
    pairs: Sequence[Pair],
    texts: Corpus | Index,
    top: int = 100,
    threshold: float = -1.0,
    word_weight: float = PAIR_WEIGHT,
    language: str | None = None,
) -> list[Pair]:
    """The best of some pairs by their score, best first; among equals, those with the smaller rows.

    Args:
        pairs: candidates by cosine.
        texts: their corpus or index; terms are counted in all of it.
        top: how many pairs at most.
        threshold: the smallest score that counts.
        word_weight: of the lexical score beside the cosine.
        language: of the stemmer, one of `LANGUAGES`; by default the one of most texts.

    Raises:
        SettingsError: there is no such language.

    Example:
        >>> pairs = most_similar_pairs(vectors, *candidates_for(20, 0.8, 0.5))  # doctest: +SKIP
        >>> by_words(pairs, corpus, 20, 0.8, 0.5)  # doctest: +SKIP
    """
    counts, found = WordCounts(analyzer=Analyzer(language or corpus_language(texts))), list[Pair]()
    for start in range(0, len(texts), _COUNTED_TOGETHER):
        counts.add(texts.texts(np.arange(start, min(start + _COUNTED_TOGETHER, len(texts)))))
    pairs = sorted(pairs, key=lambda pair: pair.first)  # so that those counted together have few texts
    for start in range(0, len(pairs), _COUNTED_TOGETHER):
        chunk = pairs[start : start + _COUNTED_TOGETHER]
        rows, sides = np.unique([pair[1:3] for pair in chunk], return_inverse=True)
        terms, (one, other) = counts.weighed(texts.texts(rows)), sides.reshape(-1, 2).T
        shared = np.asarray(terms[one].multiply(terms[other]).sum(axis=1)).ravel().tolist()
        found += [pair._replace(words=words) for pair, words in zip(chunk, shared, strict=True)]
    found.sort(key=lambda pair: (-pair.score(word_weight), pair.first, pair.second))
    return [pair for pair in found[:top] if pair.score(word_weight) >= threshold]
