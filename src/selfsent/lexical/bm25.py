"""BM25 as a share of what a query can reach: inner products that depend on query, text and corpus alone."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from selfsent.lexical.analyzer import Analyzer

K1, B = 1.2, 0.75
"""How soon more of a term adds no more, and how much the length of a text counts."""


class BM25:
    r"""BM25 (Robertson et al., 1994, as in Lucene) of some queries over texts that are shown one after another.

    With tf occurrences of the term t in a text of length \|d\|, df texts that hold t, and n texts of mean length L:

        s(q, d) = Σ_{t in q} idf(t) · tf / (tf + k1 (1 - b + b |d| / L)) / Σ_{t in q} idf(t)
        idf(t)  = ln(1 + (n - df + 1/2) / (df + 1/2))

    The sum below is the upper bound of the one above, so s lies between 0 and 1. A query whose words are hardly in any
    text stays near 0. Only terms of the queries are kept: 8 bytes for each of them in each text that holds it.

    Args:
        queries: (q,) texts.
        analyzer: makes terms of queries and texts.

    Example:
        >>> bm25 = BM25(["red cars"], Analyzer("english"))
        >>> bm25.add(["a red car", "a blue car", "rain"])
        >>> (bm25.queries @ bm25.texts.T).toarray().round(2).tolist()
        [[0.45, 0.15, 0.0]]
    """

    def __init__(self, queries: Sequence[str], analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._queries = [analyzer(query) for query in queries]
        self._columns = {term: column for column, term in enumerate(dict.fromkeys(t for q in self._queries for t in q))}
        self._found, self._counts, self._ends = array("i"), array("f"), array("q", [0])
        self._lengths = array("i")

    def add(self, texts: Sequence[str]) -> None:
        """Show it some more texts."""
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
