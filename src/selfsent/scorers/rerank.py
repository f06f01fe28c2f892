"""Reranking: a strong model orders the best candidates of a quick one, as `search --rerank` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.vector_files import Vectors, inner
from selfsent.errors import SettingsError
from selfsent.lexical.hybrid import fuse, top_k
from selfsent.scorers.lexical import Hybrid, bm25_of
from selfsent.scorers.scorer import PairScorer, Scorer, SearchScorer
from selfsent.stats.resampling import Floats

CANDIDATES = 200
"""Candidates of a query: chosen by judged answers (docs/log)."""
WITH_RERANKING = "+rerank:"
"""Separator in a model's name, between the model of the candidates and the reranker."""


def reranking(name: str) -> tuple[str, str] | None:
    """The two models in the name of a search that reranks; None for other names."""
    first, sign, second = name.partition(WITH_RERANKING)
    return (first, second) if sign and not Path(name).exists() else None


class Reranker:
    """Orders candidates: a sentence encoder by its cosine and BM25, a cross-encoder by its score.

    Args:
        scorer: either of them.
        candidates: of each query.
        digest: function that makes the fingerprint of the model, which takes a while.

    Raises:
        SettingsError: it is neither, or there are no candidates.
    """

    def __init__(self, scorer: Scorer, candidates: int = CANDIDATES, digest: Callable[[], str] = str) -> None:
        self.crosses = isinstance(scorer, PairScorer)
        if not (scorer.has_vectors or self.crosses):
            raise SettingsError(f"{scorer.name} cannot rerank: give a sentence encoder or a cross-encoder")
        if candidates < 1:
            raise SettingsError(f"`candidates` is {candidates}; it must be at least 1")
        self.scorer, self.candidates, self._digest = scorer, candidates, digest
        self.lexical_weight = 0.0 if self.crosses else scorer.lexical_weight
        """Weight of BM25 relative to its scores."""

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the files of a model, or of an encoder's weights; empty for any other model."""
        return self._digest()

    def scores(self, queries: Sequence[str], texts: Sequence[Sequence[str]]) -> list[Floats]:
        """The cosine, or a cross-encoder's score, of each query and each of its own texts."""
        each = [text for own in texts for text in own]
        if not each:
            return [np.zeros(0)] * len(queries)
        if self.crosses:
            asking = [query for query, own in zip(queries, texts, strict=True) for _ in own]
            return np.split(self.scorer.similarity(asking, each), np.cumsum([*map(len, texts)])[:-1])
        asked, held = self.scorer.query_document_vectors(queries, each, search=True)
        parts = np.split(held, np.cumsum([*map(len, texts)])[:-1])
        return [part @ query for part, query in zip(parts, asked, strict=True)]


class Reranked(SearchScorer):
    """Search whose best candidates are reranked; the others follow in their first order.

    Args:
        first: finds the candidates: with BM25, as `search` does, unless it is lexical itself.
        reranker: orders them.
    """

    def __init__(self, first: Scorer, reranker: Reranker) -> None:
        self.first = Hybrid(first) if first.has_vectors else first
        self.reranker, second = reranker, reranker.scorer
        name = f"{first.name}{WITH_RERANKING}{second.name}"
        super().__init__(None, name, f"{self.first.pooling}>{second.pooling}", second.trained_on)
        self.texts_read, self.parts = first.texts_read | second.texts_read, (self.first, second)
        words = f"+{weight:g}bm25" if (weight := reranker.lexical_weight) else ""
        self.measure = f"{self.first.measure}>{second.measure}{words}@{reranker.candidates}"

    def search_rows(self, queries: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:
        """Rows for queries and texts, with scores as inner products."""
        bm25 = bm25_of(queries, texts)
        first_queries, first_texts = self.first.query_document_vectors(queries, texts, search=True)
        asked = _Rows(self.reranker, first_queries, queries, bm25.queries)
        return asked, _Rows(self.reranker, first_texts, texts, bm25.texts)


@dataclass(frozen=True)
class _Rows:
    """Queries or texts of a search, with sparse BM25 weights for a reranker's scores."""

    reranker: Reranker
    first: Any
    texts: Sequence[str]
    bm25: Any

    def __getitem__(self, rows: slice) -> _Rows:
        return replace(self, first=self.first[rows], texts=self.texts[rows], bm25=self.bm25[rows])

    @property
    def T(self) -> _Rows:  # noqa: N802 - as in numpy
        """Itself: `@` transposes the right side."""
        return self

    def __matmul__(self, other: _Rows) -> Vectors:
        """(q, n) scores, of candidates above all others."""
        found = inner(self.first, other.first)
        chosen = top_k(found, self.reranker.candidates)
        again = self.reranker.scores(self.texts, [[other.texts[row] for row in rows] for rows in chosen])
        for row, (columns, scores) in enumerate(zip(chosen, again, strict=True)):
            scores = fuse(scores, inner(self.bm25[row], other.bm25[columns])[0], self.reranker.lexical_weight)
            found[row, columns] = scores - scores.min() + found[row].max() + 1
        return found
