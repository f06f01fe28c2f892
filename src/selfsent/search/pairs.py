"""The most similar pairs among many sentences, exactly: all cosines are computed, and few of them are ever held.

Words put the pairs with the largest cosines in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from selfsent.lexical import Analyzer, WordCounts
from selfsent.lexical.scores import PAIR_WEIGHT
from selfsent.search.nearest import corpus_language

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.search.index import Index

ROWS, COLUMNS = 1024, 4096
"""The block of cosines that is computed together."""
ORDERED, TIMES = 10_000, 4
"""Pairs that words put in order, at least, and for each one that is wanted."""
_COUNTED_TOGETHER = 1024


class Pair(NamedTuple):
    """Two rows, the smaller number first.

    Args:
        cosine: of their vectors.
        first: a row.
        second: the other one.
        words: how many of their words they share, from 0 to 1: the cosine by TF-IDF. 0 where words were not looked at.
    """

    cosine: float
    first: int
    second: int
    words: float = 0.0

    def score(self, word_weight: float) -> float:
        """(cosine + word_weight · words) / (1 + word_weight)."""
        return (self.cosine + word_weight * self.words) / (1 + word_weight)


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


def proposed(top: int, threshold: float, word_weight: float) -> tuple[int, float]:
    """How many pairs cosines propose, and the smallest cosine of one whose score can reach a threshold."""
    return max(ORDERED, TIMES * top) if word_weight else top, threshold * (1 + word_weight) - word_weight


def by_words(
    pairs: Sequence[Pair],
    place: Corpus | Index,
    top: int = 100,
    threshold: float = -1.0,
    word_weight: float = PAIR_WEIGHT,
    language: str | None = None,
) -> list[Pair]:
    """The best of some pairs by their score, best first; among equals, the ones with the smaller rows.

    Args:
        pairs: what cosines propose.
        place: the texts, in all of which words are counted.
        top: how many pairs at most.
        threshold: the smallest score that counts.
        word_weight: of the words beside the cosine.
        language: whose stems are compared, one of `LANGUAGES`; by default the one that most texts are in.

    Raises:
        SettingsError: there is no such language.

    Example:
        >>> pairs = most_similar_pairs(vectors, *proposed(20, 0.8, 0.5))  # doctest: +SKIP
        >>> by_words(pairs, corpus, 20, 0.8, 0.5)  # doctest: +SKIP
    """
    counts, found = WordCounts(analyzer=Analyzer(language or corpus_language(place))), list[Pair]()
    for start in range(0, len(place), _COUNTED_TOGETHER):
        counts.add(place.texts(np.arange(start, min(start + _COUNTED_TOGETHER, len(place)))))
    pairs = sorted(pairs, key=lambda pair: pair.first)  # so that those counted together have few texts
    for start in range(0, len(pairs), _COUNTED_TOGETHER):
        part = pairs[start : start + _COUNTED_TOGETHER]
        rows, sides = np.unique([pair[1:3] for pair in part], return_inverse=True)
        held, (one, other) = counts.weighed(place.texts(rows)), sides.reshape(-1, 2).T
        shared = np.asarray(held[one].multiply(held[other]).sum(axis=1)).ravel().tolist()
        found += [pair._replace(words=words) for pair, words in zip(part, shared, strict=True)]
    found.sort(key=lambda pair: (-pair.score(word_weight), pair.first, pair.second))
    return [pair for pair in found[:top] if pair.score(word_weight) >= threshold]
