"""Hybrid search: the sentences nearest to a query by the cosine of their vectors and by BM25."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.vector_files import VectorsFile
from selfsent.errors import ONE_STRING, SettingsError
from selfsent.lexical import BM25, Analyzer, language_of
from selfsent.lexical.analyzer import SAMPLED
from selfsent.lexical.scores import check_weight
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.search.vectors import corpus_vectors, open_encoder, sentences, unit

_COUNTED_TOGETHER = 256


class Hit(NamedTuple):
    """A search result.

    Args:
        row: among the corpus' distinct sentences, or number of a vector in an index.
        cosine: to the query.
        words: lexical score, 0 to 1: BM25 as a share of the query's maximum (in an index the TF-IDF cosine); 0 if not
            computed.
    """

    row: int
    cosine: float
    words: float


def search(
    model: Encoder | str | os.PathLike[str],
    corpus: Corpus,
    queries: list[str],
    top: int = 10,
    advance: Callable[[int], None] = lambda count: None,
    file: VectorsFile | None = None,
    word_weight: float | None = None,
    language: str | None = None,
) -> list[list[Hit]]:
    """The distinct sentences nearest to each query, by cosine + word_weight · words, best first; exact.

    Args:
        model: the encoder, or the name of one, such as a run's directory.
        corpus: the sentences to search.
        queries: texts.
        top: sentences per query.
        advance: called with the number of input rows done since the last call.
        file: vectors of the corpus from `encode_to_file`; computed if None.
        word_weight: of BM25 relative to the cosine; 0 for the cosine alone, None for the encoder's default.
        language: of the stemmer, one of `LANGUAGES`; by default that of most sentences.

    Raises:
        DataError: the file is damaged, or holds other vectors.
        SettingsError: a query outside a list, no encoder, an unknown language, or an invalid weight.
    """
    if isinstance(queries, str):
        raise SettingsError(ONE_STRING)
    analyzer = Analyzer(language)
    model = open_encoder(model)
    word_weight = model.lexical_weight if word_weight is None else word_weight
    check_weight(word_weight)
    query_vectors = unit(encode(model, queries, side="query"))
    if word_weight:
        bm25 = BM25(queries, analyzer if language else Analyzer(corpus_language(corpus)))
        left = sentences(corpus)
        while texts := list(islice(left, _COUNTED_TOGETHER)):
            bm25.add(texts)
        query_terms, terms = bm25.queries, bm25.texts
    best = TopHits(len(queries), top)
    start, report = 0, corpus.input_rows.progress_callback(advance)
    for vectors in corpus_vectors(model, corpus, file, "document"):
        rows = np.arange(start, start + len(vectors))
        words = (query_terms @ terms[start : start + len(vectors)].T).toarray() if word_weight else None
        best.add(rows, query_vectors @ unit(vectors).T, words, word_weight)
        start += len(vectors)
        report(len(vectors))
    return best.hits()


def corpus_language(corpus: Corpus) -> str | None:
    """The language of most sentences in a sample of a corpus; None if mixed."""
    return language_of(corpus.texts(np.unique(np.linspace(0, len(corpus) - 1, SAMPLED).astype(np.int64))))


class TopHits:
    """The best hits of each query so far; first come, first ranked among equals.

    Args:
        queries: number of queries.
        top: hits kept per query.
    """

    def __init__(self, queries: int, top: int) -> None:
        self._top = top
        self._rows = np.zeros((queries, 0), np.int64)
        self._found = np.zeros((3, queries, 0), np.float32)
        """Score, cosine and words."""

    def add(
        self,
        rows: NDArray[np.int64],
        cosines: NDArray[np.float32],
        words: NDArray[np.float32] | None,
        word_weight: float,
    ) -> None:
        """Add rows (n,) with their cosines and lexical scores, (queries, n) each."""
        words = np.zeros_like(cosines) if words is None else words
        new = np.stack([cosines + np.float32(word_weight) * words, cosines, words])
        found = np.concatenate([self._found, new], axis=2)
        candidates = np.hstack([self._rows, np.broadcast_to(rows, cosines.shape)])
        order = np.argsort(-found[0], axis=1, kind="stable")[:, : self._top]
        self._rows = np.take_along_axis(candidates, order, 1)
        self._found = np.take_along_axis(found, order[None], 2)

    def hits(self) -> list[list[Hit]]:
        """The hits of each query, best first."""
        columns = (self._rows.tolist(), *self._found[1:].tolist())
        return [list(map(Hit, *each)) for each in zip(*columns, strict=True)]
