"""Hybrid search as an encoder: the cosine and BM25 together, as `search` ranks, so that it can be evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.data.vector_files import Vectors
from selfsent.errors import DataError
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.stats.resampling import Floats
from selfsent.lexical import BM25, Analyzer, WordCounts, language_of
from selfsent.lexical.scores import PAIR_WEIGHT

WITH_WORDS = "+words"
"""Behind the name of a model: its cosine and the words together."""


def without_words(name: str) -> str:
    """The model that words are added to, by its name; empty where none are."""
    return name.removesuffix(WITH_WORDS) if name.endswith(WITH_WORDS) and not Path(name).exists() else ""


class Hybrid(Encoder):
    """An encoder as `search` uses it: cosine + weight · BM25, and for pairs cosine + 0.5 · TF-IDF, which is symmetric.

    Words are counted over the texts searched, or over both sides of the pairs.

    Args:
        encoder: it needs vectors.
        weight: of BM25; by default the encoder's own.
        language: whose stems are compared; by default the one that the texts are in.

    Raises:
        DataError: the encoder has no vectors.
    """

    def __init__(self, encoder: Encoder, weight: float | None = None, language: str | None = None) -> None:
        if not encoder.has_vectors:
            raise DataError(f"{encoder.name}{WITH_WORDS}: {encoder.name} has no vectors to add words to")
        super().__init__(
            self._no_vectors,
            encoder.name + WITH_WORDS,
            f"{encoder.pooling}{WITH_WORDS}",
            encoder.trained_on,
            encoder.trained_by,
        )
        self.encoder, self.has_vectors, self.language = encoder, False, language
        self.lexical_weight = encoder.lexical_weight if weight is None else weight

    def sides(self, queries: Sequence[str], texts: Sequence[str], search: bool = False) -> tuple[Any, Any]:
        """Rows for queries and for texts, whose inner products are what `search` ranks by."""
        return self.beside(self.encoder.sides(queries, texts, search), queries, texts)

    def beside(self, vectors: tuple[Vectors, Vectors], queries: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:
        """The same, of vectors that are there: (q, d) and (n, d), each of length 1."""
        self.broken = self.encoder.broken
        bm25 = BM25(queries, Analyzer(self.language or language_of(texts)))
        bm25.add(texts)
        return VectorsAndWords(vectors[0], bm25.queries * self.lexical_weight), VectorsAndWords(vectors[1], bm25.texts)

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Floats:
        """The cosine of each pair of texts and the terms that they share, (n,)."""
        texts = list(dict.fromkeys([*left, *right]))
        counts = WordCounts(analyzer=Analyzer(self.language or language_of(texts)))
        counts.add(texts)
        shared = counts.weighed(left).multiply(counts.weighed(right)).sum(axis=1)
        cosines = self.encoder.similarity(left, right)
        self.broken = self.encoder.broken
        return cosines + PAIR_WEIGHT * np.asarray(shared, np.float64).ravel()

    @property
    def measure(self) -> str:
        """What `similarity` is, for the signature."""
        return f"cos+{self.lexical_weight:g}bm25"

    def _no_vectors(self, texts: Sequence[str]) -> Vectors:
        raise DataError(f"{self.name} says how near two texts are and has no vectors, so this task cannot use it")


class VectorsAndWords:
    """Vectors, and beside them words: rows of both, whose inner product is the sum of both inner products.

    Args:
        vectors: (n, d).
        words: (n, words) sparse.
    """

    def __init__(self, vectors: Vectors, words: Any) -> None:
        self.vectors, self.words = vectors, words

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the vectors."""
        return self.vectors.shape

    def __getitem__(self, rows: Any) -> VectorsAndWords:
        return VectorsAndWords(self.vectors[rows], self.words[rows])

    @property
    def T(self) -> VectorsAndWords:  # noqa: N802 - as arrays call it
        """Itself: the other side of a product says which way."""
        return self

    def __matmul__(self, other: VectorsAndWords) -> Vectors:
        """(n, m) inner products with the rows of another one's, transposed."""
        product: Vectors = self.vectors @ other.vectors.T + (self.words @ other.words.T).toarray()
        return product
