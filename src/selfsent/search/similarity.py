"""The similarity of pairs of texts by which near-copies are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import unit
from selfsent.lexical import Analyzer, WordCounts
from selfsent.lexical.hybrid import PAIR_WEIGHT, fuse, normalized
from selfsent.models.encoding import encode
from selfsent.search.exact import corpus_language
from selfsent.search.near import Texts, counted_words
from selfsent.search.pairs import shared_words

if TYPE_CHECKING:
    from selfsent.models.encoding import Model

Vectors = NDArray[np.float32]
Integers = NDArray[np.int64]
_BLOCK = 1024


class Similarity:
    """The score of pairs of texts: by words, or by vectors and words as `pairs` ranks.

    Args:
        corpus: the texts.
        vectors: (n, d) of length 1; None for words alone.
        lexical_weight: of the words, with vectors.
        language: of the stemmer, with vectors; by default the language of most texts.
        encode: (n,) texts -> (n, d) vectors of length 1, with vectors; None if no other texts are compared.
    """

    def __init__(
        self,
        corpus: Texts,
        vectors: Vectors | None = None,
        lexical_weight: float = PAIR_WEIGHT,
        language: str | None = None,
        encode: Callable[[Sequence[str]], Vectors] | None = None,
    ) -> None:
        self._encode = encode
        self.corpus, self.vectors, self.weight = corpus, vectors, lexical_weight
        self.counts: WordCounts | None = None
        if vectors is None:
            self.counts = counted_words(corpus)
        elif lexical_weight:
            self.counts = WordCounts(Analyzer(language or corpus_language(corpus)))
            for batch in corpus.batches(size=_BLOCK):
                self.counts.add(batch)

    def __call__(self, first: Integers, second: Integers, cosine: Vectors | None = None) -> Vectors:
        """Scores of pairs of rows, (pairs,) each, from -1 to 1.

        Args:
            first: a row of each.
            second: the other one.
            cosine: of their vectors, if it is known.
        """
        words = None if self.counts is None else shared_words(self.corpus, self.counts, first, second)
        if self.vectors is None:
            assert words is not None
            return words
        if cosine is None:
            cosine = np.einsum("nd,nd->n", self.vectors[first], self.vectors[second])
        return cosine if words is None else normalized(fuse(cosine, words, self.weight), self.weight)

    def to_edits(self, rows: Integers, texts: Sequence[str]) -> Vectors:
        """Scores of rows, (n,), and edited texts of theirs, (n,)."""
        words = None
        if self.counts is not None:
            pairs = self.counts.weighed(self.corpus.texts(rows)).multiply(self.counts.weighed(texts))
            words = np.asarray(pairs.sum(axis=1), np.float32).ravel()
        if self.vectors is None or self._encode is None:
            assert words is not None
            return words
        cosine = np.einsum("nd,nd->n", self.vectors[rows], self._encode(texts))
        return cosine if words is None else normalized(fuse(cosine, words, self.weight), self.weight)


def encoding_of(model: Model) -> Callable[[Sequence[str]], Vectors]:
    """The function of `Similarity` that encodes texts as `encode_corpus` does."""
    return lambda texts: unit(encode(model, list(texts)))
