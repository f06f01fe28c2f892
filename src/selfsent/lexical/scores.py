"""Lexical scores: BM25 of queries, TF-IDF that is the same both ways, and their weights in hybrid search."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import SettingsError
from selfsent.lexical.analyzer import Analyzer

_Scores = TypeVar("_Scores", float, NDArray[Any])

K1, B = 1.2, 0.75
"""Saturation of term frequency, and strength of length normalisation."""
BUCKETS = 1 << 20
"""Number of columns; terms are hashed to them."""
SEARCH_WEIGHT = {"table": 1.5, "transformer": 0.5}
"""Weight of BM25 in hybrid search, by kind of encoder: chosen by judged answers (docs/log)."""
SEARCH_FILE = "search.json"
"""File in a model's directory with another `lexical_weight`."""
PAIR_WEIGHT = 0.5
"""Weight of TF-IDF, the terms that two texts share, in hybrid pairs."""
LARGEST = 1000
"""Largest weight; cosines no longer matter."""


class BM25:
    r"""BM25 (Robertson et al., 1994, as in Lucene) of some queries over a stream of texts.

    With tf occurrences of the term t in a text of length \|d\|, df texts that hold t, and n texts of mean length L:

        s(q, d) = Σ_{t in q} idf(t) · tf / (tf + k1 (1 - b + b |d| / L)) / Σ_{t in q} idf(t)
        idf(t)  = ln(1 + (n - df + 1/2) / (df + 1/2))

    The denominator is the upper bound of the numerator, so s is between 0 and 1. Only terms of the
    queries are kept: 8 bytes for each of them in each text that has it.

    Args:
        queries: (q,) texts.
        analyzer: makes terms of queries and texts.

    Example:
        >>> bm25 = BM25(["red cars"], Analyzer("english"))
        >>> bm25.add(["a red car", "a blue car", "rain"])
        >>> (bm25.queries @ bm25.texts.T).toarray().round(2)
        array([[0.42, 0.14, 0.  ]], dtype=float32)
    """

    def __init__(self, queries: Sequence[str], analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._queries = [analyzer(query) for query in queries]
        self._columns = {term: column for column, term in enumerate(dict.fromkeys(t for q in self._queries for t in q))}
        self._found, self._counts, self._ends = array("i"), array("f"), array("q", [0])
        self._lengths = array("i")

    def add(self, texts: Sequence[str]) -> None:
        """Add texts."""
        for text in texts:
            terms = self._analyzer(text)
            held = Counter(self._columns[term] for term in terms if term in self._columns)
            self._found.extend(held.keys())
            self._counts.extend(held.values())
            self._ends.append(len(self._found))
            self._lengths.append(len(terms))

    @property
    def texts(self) -> Any:
        """The weights of the terms of each text, (n, terms) sparse."""
        from scipy.sparse import csr_matrix

        counts, lengths = np.array(self._counts, np.float32), np.array(self._lengths, np.float32)
        room = K1 * (1 - B + B * lengths / max(float(lengths.mean()) if len(lengths) else 0.0, 1e-9))
        weights = counts / (counts + np.repeat(room, np.diff(self._ends)).astype(np.float32))
        return csr_matrix((weights, np.array(self._found), np.array(self._ends)), (len(lengths), len(self._columns)))

    @property
    def queries(self) -> Any:
        """The share of each term in what its query can reach, (q, terms) sparse: rows add up to 1, or to 0."""
        from scipy.sparse import csr_matrix

        texts, frequencies = len(self._lengths), np.bincount(self._found, minlength=len(self._columns))
        idf = np.log1p((texts - frequencies + 0.5) / (frequencies + 0.5))
        columns = np.array([self._columns[term] for terms in self._queries for term in terms], np.int64)
        ends = np.cumsum([0, *map(len, self._queries)])
        rows = csr_matrix((idf[columns], columns, ends), (len(self._queries), len(self._columns)), dtype=np.float32)
        rows.sum_duplicates()
        totals = np.asarray(rows.sum(axis=1)).ravel()
        rows.data /= np.repeat(np.where(totals > 0, totals, 1), np.diff(rows.indptr))
        return rows


class WordCounts:
    """Document frequencies of terms, and TF-IDF weights of texts.

    A term that is c times in a text and in d of n texts weighs (1 + ln c)·(1 + ln((1 + n) / (1 + d))).

    Args:
        analyzer: makes the terms; by default words as they are.

    Example:
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


def hybrid(cosines: _Scores, words: Any, weight: float) -> _Scores:
    """The score of hybrid search, cosine + weight · words: of one text, or of arrays of them."""
    scores: _Scores = cosines + weight * words
    return scores


def check_weight(weight: float) -> None:
    """Reject an invalid weight.

    Raises:
        SettingsError: it is negative, no number, or above 1,000.
    """
    if not 0 <= weight <= LARGEST:
        raise SettingsError(f"the weight of words is {weight:g}; it is 0 to {LARGEST:,}: 0 is the cosine alone")
