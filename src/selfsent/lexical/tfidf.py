"""TF-IDF of texts, whose inner products are a symmetric lexical similarity."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any
from zlib import crc32

import numpy as np

from selfsent.lexical.analyzer import Analyzer, words_of

BUCKETS = 1 << 20
"""Number of columns; terms are hashed to them."""


class WordCounts:
    """Document frequencies of terms, and TF-IDF weights of texts.

    A term that is c times in a text and in d of n texts weighs (1 + ln c)·(1 + ln((1 + n) / (1 + d))).

    Args:
        analyzer: makes the terms; by default words as they are.

    Examples:
        >>> counts = WordCounts()
        >>> counts.add(["a red car", "a blue car"])
        >>> round(float((counts.weighed(["red"]) @ counts.weighed(["a red car"]).T)[0, 0]), 2)
        0.81
    """

    def __init__(self, analyzer: Callable[[str], list[str]] | None = None) -> None:
        self.frequencies, self.texts = np.zeros(BUCKETS, np.int32), 0
        self._analyzer = analyzer or Analyzer()

    def add(self, texts: Sequence[str]) -> None:
        """Count texts."""
        np.add.at(self.frequencies, self._counts(texts).indices, 1)
        self.texts += len(texts)

    def weighed(self, texts: Sequence[str]) -> Any:
        """The weights of the terms of texts, each row of length 1, or 0 without terms: (n, 2^20) sparse."""
        rows = self._counts(texts)
        rarity = 1 + np.log((1 + self.texts) / (1 + self.frequencies[rows.indices]))
        weights = (1 + np.log(rows.data)) * rarity
        rows.data = (weights**2).astype(np.float32)
        lengths = np.sqrt(np.asarray(rows.sum(axis=1)).ravel())
        rows.data = (weights / np.repeat(lengths, np.diff(rows.indptr))).astype(np.float32)
        return rows

    def _counts(self, texts: Sequence[str]) -> Any:
        """Counts of each term in each text, (n, 2^20) sparse: scikit-learn's HashingVectorizer imports more slowly."""
        from scipy.sparse import csr_matrix

        columns, ends = array("i"), array("q", [0])  # a list would take ten times the memory
        for text in texts:
            columns.extend(crc32(term.encode("utf-8", "surrogatepass")) % BUCKETS for term in self._analyzer(text))
            ends.append(len(columns))
        rows = csr_matrix((np.ones(len(columns), np.float32), np.array(columns), np.array(ends)), (len(texts), BUCKETS))
        rows.sum_duplicates()
        return rows


class WordWeights:
    """TF-IDF as scikit-learn's `TfidfVectorizer` has it, bit for bit; its import takes longer than most scores.

    A word that is c times in a text and in d of n texts weighs c·(1 + ln((1 + n) / (1 + d))), and rows have length 1.

    Args:
        texts: (n,) texts that give the words and their frequencies.

    Examples:
        >>> weights = WordWeights(["a red car", "the red car"])
        >>> round(float((weights.rows @ weights.weighed(["a red car"]).T)[1, 0]), 2)
        0.5
    """

    def __init__(self, texts: Sequence[str]) -> None:
        cut = [words_of(text) for text in texts]
        self._columns = {word: number for number, word in enumerate(sorted({*chain.from_iterable(cut)}))}
        counts = self._counts(cut)
        frequencies = np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.float32) + np.float32(1)
        self._rarity = np.log(np.float32(1 + len(texts)) / frequencies) + np.float32(1)
        self.rows = self._weighed(counts)
        """(n, words) sparse float32: the weights of the texts."""

    def weighed(self, texts: Iterable[str]) -> Any:
        """The weights of other texts, (m, words) sparse; words of theirs alone are left out."""
        return self._weighed(self._counts([words_of(text) for text in texts]))

    def _weighed(self, counts: Any) -> Any:
        counts.data *= self._rarity[counts.indices]
        row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        lengths = np.sqrt(np.bincount(row, counts.data * counts.data, counts.shape[0]))
        counts.data = (counts.data / lengths[row]).astype(np.float32)
        return counts

    def _counts(self, cut: Sequence[Sequence[str]]) -> Any:
        from scipy.sparse import csr_matrix

        known = [[self._columns[word] for word in words if word in self._columns] for words in cut]
        columns = np.fromiter(chain.from_iterable(known), np.int32)
        ends = np.cumsum([0, *map(len, known)])
        rows = csr_matrix((np.ones(len(columns), np.float32), columns, ends), (len(cut), max(1, len(self._columns))))
        rows.sum_duplicates()
        return rows
