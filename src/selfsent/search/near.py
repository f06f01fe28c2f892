"""Near-copies by words: candidates from bands of weighted MinHash, in memory of a few bytes a text, and their score."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from selfsent.data.random import make_key, uniforms
from selfsent.lexical import WordCounts, words_of
from selfsent.progress import Counter

Integers = NDArray[np.int64]

BANDS, ROWS = 40, 3
"""Bands of a signature, and minima in each: texts with a weighted Jaccard index of a half share a band with 0.995."""
HEADS = 8
"""Texts of a band, the preferred ones, with which its others are compared."""
TOGETHER = 256
_COMPARED, _MOST, _CHARACTERS = 2048, 1 << 17, 1 << 24
"""Pairs compared together: at least and at most, and the characters of their texts in between."""
_WAITING = 1 << 23
"""Pairs of bands that wait to be merged with those of the bands before."""
_SINGLE = re.compile(r"(?<!\w)\w(?!\w)")


def near_words(text: str) -> list[str]:
    """The words of a text, folded, with stop words and single letters and digits, by which near-copies are told.

    Examples:
        >>> near_words("Not in room 4")
        ['not', 'in', 'room', '4']
    """
    return words_of(text) + _SINGLE.findall(text.lower())


class Texts(Protocol):
    """Texts in which near-copies are looked for: a corpus, or a part of one."""

    def __len__(self) -> int: ...

    def texts(self, rows: Integers) -> list[str]:
        """The texts of rows, (n,)."""
        ...

    def batches(self, *, size: int) -> Iterator[list[str]]:
        """All texts in order, `size` at a time."""
        ...


def counted_words(corpus: Texts) -> WordCounts:
    """How many texts of a corpus have each word."""
    counts = WordCounts(near_words)
    for batch in corpus.batches(size=TOGETHER):
        counts.add(batch)
    return counts


def signatures(texts: Sequence[str], counts: WordCounts) -> NDArray[np.uint64]:
    """A key of each band of each text, (n, BANDS); 0 for texts without words.

    A minimum is the same in two texts with the probability of their weighted Jaccard index, as the minimum of
    exponential variables, one for each word, with the word's squared rarity as rate (Moulton and Jiang, 2018,
    arXiv:1809.04052).
    """
    rows, keys = counts.weighed(texts), np.zeros((len(texts), BANDS), np.uint64)
    if not rows.nnz:
        return keys
    terms, places = np.unique(rows.indices, return_inverse=True)
    rarity = 1 + np.log((1 + counts.texts) / (1 + counts.frequencies[terms]))
    drawn = uniforms(make_key(78), np.repeat(terms, BANDS * ROWS), np.tile(np.arange(BANDS * ROWS), len(terms)))
    values = (-np.log1p(-drawn.reshape(len(terms), -1)) / rarity[:, None] ** 2).astype(np.float32)
    filled = np.flatnonzero(np.diff(rows.indptr))
    least = np.minimum.reduceat(values[places], rows.indptr[filled], axis=0).view(np.uint32).astype(np.uint64)
    mixed = np.zeros((len(filled), BANDS), np.uint64)
    for number in range(ROWS):
        mixed = (mixed ^ least[:, number::ROWS]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    keys[filled] = mixed | np.uint64(1)
    return keys


def near_candidates(
    corpus: Texts, counts: WordCounts, rank: Integers, advance: Counter
) -> Iterator[tuple[Integers, Integers]]:
    """Pairs of texts that share a band, (pairs,) the preferred one and (pairs,) the other, by their ranks.

    The keys of the bands lie in a temporary file, 320 bytes a text; of a band all texts are compared with its first
    ones, so that a band of n texts gives a multiple of n pairs.

    Args:
        corpus: the texts.
        counts: of their words.
        rank: (n,) place of each text in the order of preference.
        advance: called with the number of texts read since the last call.

    Returns:
        An iterator of chunks.
    """
    with tempfile.TemporaryDirectory(prefix="selfsent-") as folder:
        keys = np.memmap(Path(folder) / "bands", np.uint64, "w+", shape=(BANDS, len(corpus)))
        start, characters = 0, 0
        for batch in corpus.batches(size=TOGETHER):
            keys[:, rank[start : start + len(batch)]] = signatures(batch, counts).T
            start, characters = start + len(batch), characters + sum(map(len, batch))
            advance(len(batch))
        pairs, waiting = np.empty(0, np.int64), list[Integers]()
        for number, band in enumerate(keys, 1):
            waiting.append(in_band(np.asarray(band)))
            if number == BANDS or sum(map(len, waiting)) > max(_WAITING, len(pairs)):
                pairs, waiting = distinct(np.concatenate([pairs, *waiting])), []
        del keys
    # A text that many are compared with is read once a chunk.
    together = min(_MOST, max(_COMPARED, _CHARACTERS * len(corpus) // max(1, characters)))
    for at in range(0, len(pairs), together):
        chunk = pairs[at : at + together]
        yield chunk & 0xFFFFFFFF, chunk >> 32


def distinct(values: Integers) -> Integers:
    """Values in order, each once; numpy's own `unique` of many integers is several times slower."""
    values.sort()
    return values[np.flatnonzero(np.diff(values, prepend=-1))]


def in_band(keys: NDArray[np.uint64]) -> Integers:
    """Pairs with an equal key, `later << 32 | earlier`: each text with the first ones that have it."""
    order = np.argsort(keys, kind="stable")
    order = order[keys[order] > 0]
    begins = np.flatnonzero(np.diff(keys[order], prepend=np.uint64(0)) != 0)
    first = np.repeat(begins, np.diff(begins, append=len(order)))
    place, pairs = np.arange(len(order)), []
    for head in range(HEADS):
        has = place > first + head
        pairs.append(order[has] << 32 | order[first[has] + head])
    return np.concatenate(pairs)
