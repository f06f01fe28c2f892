"""Lexical and hybrid search as scorers: TF-IDF, BM25, and BM25 with the cosine, as `search` ranks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.vector_files import Vectors
from selfsent.errors import DataError
from selfsent.lexical import BM25, Analyzer, WordCounts, WordWeights, language_of
from selfsent.lexical.hybrid import PAIR_WEIGHT, fuse
from selfsent.scorers.scorer import Scorer
from selfsent.stats.resampling import Floats

LEXICAL = {"tfidf": "TF-IDF", "bm25": "BM25"}
"""Lexical baselines: names as models, and as shown."""
WITH_WORDS = "+words"
"""Suffix of a model's name for hybrid search."""


def without_words(name: str) -> str:
    """The model in the name of a hybrid search; empty for other names."""
    return name.removesuffix(WITH_WORDS) if name.endswith(WITH_WORDS) and not Path(name).exists() else ""


def bm25_of(queries: Sequence[str], texts: Sequence[str]) -> BM25:
    """BM25 of queries over texts, with stems in the language of the texts."""
    return _bm25(tuple(queries), tuple(texts))


@lru_cache(maxsize=4)  # an exam ranks the same texts many times, for three parts of dev and for test
def _bm25(queries: tuple[str, ...], texts: tuple[str, ...]) -> BM25:
    found = BM25(queries, Analyzer(language_of(texts)))
    found.add(texts)
    return found


class LexicalScorer(Scorer):
    """TF-IDF, BM25 (Robertson et al., 1994), fitted on the texts to search, or on both sides of the pairs.

    TF-IDF weighs words as scikit-learn does by default, stop words too, and is symmetric. BM25 is as in `search`:
    without stop words, with stems, as a share of the query's maximum; the first text of a pair is the query.

    Args:
        kind: `tfidf` or `bm25`.
        name: in results.

    Examples:
        >>> LexicalScorer("tfidf").similarity(["a red car"], ["the red car"]).round(2).tolist()
        [0.71]
    """

    def __init__(self, kind: str, name: str | None = None) -> None:
        super().__init__(None, name or kind, kind)
        self.kind, self.measure = kind, "bm25" if kind == "bm25" else "cos"

    def query_document_vectors(
        self, queries: Sequence[str], texts: Sequence[str], search: bool = False
    ) -> tuple[Any, Any]:
        """Sparse rows for queries and texts, with cosines or BM25 scores as inner products."""
        if self.kind == "bm25":
            bm25 = bm25_of(queries, texts)
            return bm25.queries, bm25.texts
        weights = WordWeights(texts)
        return (weights.rows if list(queries) == list(texts) else weights.weighed(queries)), weights.rows

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Floats:
        """The cosine or BM25 score of each pair of texts, (n,); fitted on both sides."""
        texts = list(dict.fromkeys([*left, *right]))
        row = {text: number for number, text in enumerate(texts)}
        queries, weighed = self.query_document_vectors(texts, texts)
        product = queries[[row[text] for text in left]].multiply(weighed[[row[text] for text in right]])
        return np.asarray(product.sum(axis=1), np.float64).ravel()


class Hybrid(Scorer):
    """Hybrid search with a scorer: cosine + weight · BM25; for pairs cosine + 0.5 · TF-IDF, which is symmetric.

    Document frequencies are counted in the texts to search, or in both sides of the pairs.

    Args:
        scorer: one with vectors.
        weight: of BM25; by default the encoder's own.

    Raises:
        DataError: the encoder has no vectors.
    """

    def __init__(self, scorer: Scorer, weight: float | None = None) -> None:
        if not scorer.has_vectors:
            raise DataError(f"{scorer.name}{WITH_WORDS}: {scorer.name} has no vectors to add words to")
        training = scorer.trained_on, scorer.trained_by
        super().__init__(None, scorer.name + WITH_WORDS, scorer.pooling + WITH_WORDS, *training)
        self.scorer, self.lexical_weight = scorer, scorer.lexical_weight if weight is None else weight
        self.texts_read, self.parts = scorer.texts_read, (scorer,)
        self.measure = f"cos+{self.lexical_weight:g}bm25"

    def query_document_vectors(
        self, queries: Sequence[str], texts: Sequence[str], search: bool = False
    ) -> tuple[Any, Any]:
        """Rows for queries and texts, with the scores of `search` as inner products."""
        vectors, bm25 = self.scorer.query_document_vectors(queries, texts, search), bm25_of(queries, texts)
        queries_and_texts = zip(vectors, (bm25.queries, bm25.texts), strict=True)
        asked, held = (HybridRows(*each, self.lexical_weight) for each in queries_and_texts)
        return asked, held

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Floats:
        """The fused cosine and TF-IDF of each pair of texts, (n,)."""
        texts = list(dict.fromkeys([*left, *right]))
        counts = WordCounts(analyzer=Analyzer(language_of(texts)))
        counts.add(texts)
        shared = counts.weighed(left).multiply(counts.weighed(right)).sum(axis=1)
        cosines = self.scorer.similarity(left, right)
        return fuse(cosines, np.asarray(shared, np.float64).ravel(), PAIR_WEIGHT)


class HybridRows:
    """Vectors (n, d) and sparse BM25 weights (n, terms), with the fused score of both inner products."""

    def __init__(self, vectors: Vectors, bm25: Any, weight: float) -> None:
        self.vectors, self.bm25, self.weight, self.shape = vectors, bm25, weight, vectors.shape

    def __getitem__(self, rows: Any) -> HybridRows:
        return HybridRows(self.vectors[rows], self.bm25[rows], self.weight)

    @property
    def T(self) -> HybridRows:  # noqa: N802 - as in numpy
        """Itself: `@` transposes the right side."""
        return self

    def __matmul__(self, other: HybridRows) -> Vectors:
        """(n, m) fused scores with the rows of another one."""
        lexical = (self.bm25 @ other.bm25.T).toarray()
        return np.asarray(fuse(self.vectors @ other.vectors.T, lexical, self.weight))
