"""TF-IDF in memory that does not grow: the terms that two texts share, a measure that is the same both ways."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from selfsent.lexical.analyzer import Analyzer

BUCKETS = 1 << 20
"""Terms that are told apart: the column of a term is a hash of it."""


class WordCounts:
    """In how many texts each term is; and the terms of a text, weighed by it (TF-IDF).

    A term that is c times in a text and in d of n texts weighs (1 + ln c)·(1 + ln((1 + n) / (1 + d))).

    Args:
        frequencies: (2^20,) texts that each term is in; none yet where it is not given.
        texts: how many there were.
        analyzer: makes the terms; by default words as they are.

    Example:
        >>> counts = WordCounts()
        >>> counts.add(["a red car", "a blue car"])
        >>> round(float((counts.weighed(["red"]) @ counts.weighed(["a red car"]).T)[0, 0]), 2)
        0.81
    """

    def __init__(
        self,
        frequencies: NDArray[np.int32] | None = None,
        texts: int = 0,
        analyzer: Callable[[str], list[str]] | None = None,
    ) -> None:
        self.frequencies = np.zeros(BUCKETS, np.int32) if frequencies is None else frequencies
        self.texts = texts
        self._analyzer = analyzer or Analyzer()

    def add(self, texts: Sequence[str]) -> None:
        """Count some more texts."""
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
        """How often each text has each term, (n, 2^20) sparse: scikit-learn's HashingVectorizer imports more slowly."""
        from scipy.sparse import csr_matrix

        columns, ends = array("i"), array("q", [0])  # a list would take ten times the memory
        for text in texts:
            columns.extend(crc32(term.encode("utf-8", "surrogatepass")) % BUCKETS for term in self._analyzer(text))
            ends.append(len(columns))
        rows = csr_matrix((np.ones(len(columns), np.float32), np.array(columns), np.array(ends)), (len(texts), BUCKETS))
        rows.sum_duplicates()
        return rows
