"""BM25: the formula, and the scores of some queries over a stream of texts."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selfsent.lexical.analyzer import Analyzer

K1, B = 1.2, 0.75
"""Saturation of term frequency, and strength of length normalisation."""
_FEW = 16
"""Queries up to this number do without scipy."""
COMMON = 8
"""Texts for each one that holds a common term, by default."""


class BM25Stats(NamedTuple):
    r"""The statistics of a collection that BM25 reads, and its formula (Robertson et al., 1994, as in Lucene).

    With tf occurrences of the term t in a text of length \|d\|, df texts that hold t, and n texts of mean length L:

        s(q, d) = Σ_{t in q} idf(t) · tf / (tf + k1 (1 - b + b |d| / L)) / Σ_{t in q} idf(t)
        idf(t)  = ln(1 + (n - df + 1/2) / (df + 1/2))

    The denominator is the upper bound of the numerator, so s is between 0 and 1.

    Args:
        n_docs: number of texts, n.
        mean_length: mean number of terms in a text, L; 0 without texts.
    """

    n_docs: int
    mean_length: float

    @classmethod
    def of(cls, lengths: NDArray[np.float32]) -> BM25Stats:
        """The statistics of texts with these numbers of terms (n,)."""
        return cls(len(lengths), float(lengths.mean()) if len(lengths) else 0.0)

    def idf(self, frequencies: Any) -> Any:
        """Inverse document frequency of terms, by the number of texts that hold each: a number or an array."""
        return np.log1p((self.n_docs - frequencies + 0.5) / (frequencies + 0.5))

    def length_norms(self, lengths: NDArray[np.float32]) -> NDArray[np.float32]:
        """k1 (1 - b + b |d| / L) for texts with these numbers of terms (n,)."""
        return (K1 * (1 - B + B * lengths / max(self.mean_length, 1e-9))).astype(np.float32)

    def text_weights(self, terms: Sequence[int]) -> dict[int, float]:
        """The weights of a text's terms, given by `term_number`, as a sparse vector.

        Its inner product with the `query_weights` of a query is the score.
        """
        counts = Counter(terms)
        norms = self.length_norms(np.array([len(terms)], np.float32))
        found = saturated(np.array([*counts.values()], np.float32), norms)
        return dict(zip(counts, found.tolist(), strict=True))

    def query_weights(self, terms: Sequence[str], frequency: Callable[[str], int]) -> dict[int, float]:
        """The share of each term in the maximum of a query as a sparse vector, by `term_number`.

        Args:
            terms: of the query.
            frequency: number of texts that hold a term.

        Examples:
            >>> stats, texts = BM25Stats(2, 2.0), [["red", "car"], ["blue", "car"]]
            >>> query = stats.query_weights(["red"], lambda term: sum(term in text for text in texts))
            >>> held = [stats.text_weights([*map(term_number, text)]) for text in texts]
            >>> [round(sum(query.get(number, 0) * weight for number, weight in text.items()), 2) for text in held]
            [0.45, 0.0]
        """
        found = dict[int, float]()
        for term in terms:
            number = term_number(term)
            found[number] = found.get(number, 0.0) + float(self.idf(frequency(term)))
        total = sum(found.values()) or 1.0
        return {number: idf / total for number, idf in found.items()}


TERMS = 1 << 29
"""Dimension of sparse vectors of terms, which all databases take: among 100,000 terms some ten share their number."""


def term_number(term: str) -> int:
    """The place of a term in sparse vectors, from 0 to `TERMS` - 1: a hash, so that it needs no list of terms."""
    return int.from_bytes(blake2b(term.encode(), digest_size=4).digest()) % TERMS


def saturated(counts: NDArray[np.float32], length_norms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Tf / (tf + k1 (1 - b + b |d| / L)) for occurrences tf of a term (n,) in texts with these `length_norms` (n,)."""
    return counts / (counts + length_norms)


class BM25:
    """BM25 of some queries over a stream of texts; see `BM25Stats` for the formula.

    Only terms of the queries are kept: 8 bytes for each of them in each text that has it.

    Args:
        queries: (q,) texts.
        analyzer: makes terms of queries and texts.

    Examples:
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

        shape = len(self._lengths), len(self._columns)
        return csr_matrix((self._weights, np.array(self._found), np.array(self._ends)), shape)

    @property
    def _weights(self) -> NDArray[np.float32]:
        """The weight of each term that was found, text after text."""
        counts, lengths = np.array(self._counts, np.float32), np.array(self._lengths, np.float32)
        return saturated(counts, np.repeat(BM25Stats.of(lengths).length_norms(lengths), np.diff(self._ends)))

    @property
    def queries(self) -> Any:
        """The share of each term in the maximum of its query, (q, terms) sparse: rows add up to 1, or to 0."""
        from scipy.sparse import csr_matrix

        idf = self._idf
        columns = np.array([self._columns[term] for terms in self._queries for term in terms], np.int64)
        ends = np.cumsum([0, *map(len, self._queries)])
        rows = csr_matrix((idf[columns], columns, ends), (len(self._queries), len(self._columns)), dtype=np.float32)
        rows.sum_duplicates()
        totals = np.asarray(rows.sum(axis=1)).ravel()
        rows.data /= np.repeat(np.where(totals > 0, totals, 1), np.diff(rows.indptr))
        return rows

    @property
    def _idf(self) -> NDArray[np.float64]:
        """The inverse document frequency of each term of the queries."""
        stats = BM25Stats(len(self._lengths), 0.0)  # the length of a query does not count
        frequencies = np.bincount(np.array(self._found, np.int64), minlength=len(self._columns))
        return np.asarray(stats.idf(frequencies), np.float64)

    @property
    def _shares(self) -> list[NDArray[np.float32]]:
        """The rows of `queries`, (terms,) each."""
        idf, shares = self._idf.astype(np.float32), []
        for terms in self._queries:
            times = np.bincount(np.array([self._columns[term] for term in terms], np.int64), minlength=len(idf))
            share = times.astype(np.float32) * idf
            shares.append(share / (share.sum() or np.float32(1)))
        return shares

    def scorer(self) -> Callable[[int, int], NDArray[np.float32]]:
        """A function from the first of some texts and the one after the last to their scores, (q, texts).

        They are the products of `queries` and `texts`; for a few queries without scipy, which is slow to import.

        Examples:
            >>> bm25 = BM25(["red cars"], Analyzer("english"))
            >>> bm25.add(["a red car", "a blue car", "rain"])
            >>> bm25.scorer()(1, 3).round(2).tolist()
            [[0.14000000059604645, 0.0]]
        """
        if len(self._queries) > _FEW:
            queries, texts = self.queries, self.texts
            return lambda start, stop: np.asarray((queries @ texts[start:stop].T).toarray(), np.float32)
        weights, found, ends = self._weights, np.array(self._found, np.int64), np.array(self._ends)
        shares = self._shares

        def scores(start: int, stop: int) -> NDArray[np.float32]:
            part = slice(int(ends[start]), int(ends[stop]))
            rows = np.repeat(np.arange(stop - start), np.diff(ends[start : stop + 1]))
            each = [np.bincount(rows, share[found[part]] * weights[part], stop - start) for share in shares]
            return np.array(each, np.float32).reshape(len(shares), stop - start)

        return scores


class Postings(NamedTuple):
    """The texts that hold a term.

    Args:
        frequency: number of texts.
        doc_ids: ascending (frequency,); None for all documents, over which a common term is added up faster.
        weights: its `saturated` counts there; zeros where all documents are given and one has no such term.
    """

    frequency: int
    doc_ids: NDArray[np.int64] | None
    weights: NDArray[np.float32]

    @classmethod
    def of(
        cls, doc_ids: NDArray[np.int64], weights: NDArray[np.float32], n_docs: int, common: int = COMMON
    ) -> Postings:
        """The postings of a term, over all documents if many hold it.

        Args:
            doc_ids: ascending (df,).
            weights: (df,).
            n_docs: document ids are below it.
            common: a term is common where more than one in this number of texts holds it.
        """
        if len(doc_ids) * common <= n_docs:
            return cls(len(doc_ids), doc_ids, weights)
        everywhere = np.zeros(n_docs, np.float32)
        everywhere[doc_ids] = weights
        return cls(len(doc_ids), None, everywhere)


def score_postings(stats: BM25Stats, postings: Iterable[tuple[Postings, int]], n_docs: int) -> NDArray[np.float32]:
    """BM25 of one query for every document of an inverted index, (n_docs,).

    Args:
        stats: of the documents.
        postings: for each distinct term of the query, and its occurrences there.
        n_docs: length of the result: document ids are below it.
    """
    scores, total = np.zeros(n_docs, np.float32), 0.0
    for (frequency, doc_ids, weights), times in postings:
        idf = times * float(stats.idf(frequency))
        if doc_ids is None:
            scores += np.float32(idf) * weights
        else:
            np.add.at(scores, doc_ids, np.float32(idf) * weights)  # no id comes twice: faster than +=
        total += idf
    return scores / np.float32(total) if total else scores
