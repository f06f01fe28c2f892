"""Hybrid search: the sentences nearest to a query by the cosine of their vectors and by BM25."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.vector_files import VectorsFile
from selfsent.errors import ONE_STRING, SettingsError
from selfsent.lexical import BM25, Analyzer, language_of
from selfsent.lexical.analyzer import SAMPLED
from selfsent.lexical.scores import check_weight, hybrid
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.search.vectors import corpus_vectors, open_encoder, sentences, unit

if TYPE_CHECKING:
    from selfsent.evaluation.rerank import Reranker
    from selfsent.search.index import Index

_COUNTED_TOGETHER = 256
_RERANKED_TOGETHER = 64


class Hit(NamedTuple):
    """A search result.

    Args:
        row: among the corpus' distinct sentences, or number of a vector in an index.
        cosine: to the query; the score of a cross-encoder, if one reranks.
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
    rerank: Any = None,
    candidates: int | None = None,
) -> list[list[Hit]]:
    """The distinct sentences nearest to each query, by cosine + word_weight · words, best first; exact.

    With `rerank` these are candidates, and a stronger model puts them in order. It need not encode the whole corpus.

    Args:
        model: the encoder, or the name of one, such as a run's directory.
        corpus: the sentences to search.
        queries: texts.
        top: sentences per query.
        advance: called with the number of texts done since the last call.
        file: vectors of the corpus from `encode_to_file`; computed if None.
        word_weight: of BM25 relative to the cosine; 0 for the cosine alone, None for the encoder's default. With
            `rerank`, relative to its cosine or score; candidates are found with the encoder's default.
        language: of the stemmer, one of `LANGUAGES`; by default that of most sentences.
        rerank: a sentence encoder or a cross-encoder, as for `as_reranker`. Vectors of candidates are kept in the
            cache folder for the next question, if it is given by name.
        candidates: of each query, `top` at least; None for 200.

    Raises:
        DataError: the file is damaged, or holds other vectors.
        SettingsError: a query outside a list, no encoder, an unknown language, an invalid weight, or no candidates.

    Example:
        >>> hits = search("bundled", corpus, ["printer is dead"], rerank="runs/tickets")  # doctest: +SKIP
    """
    if isinstance(queries, str):
        raise SettingsError(ONE_STRING)
    if word_weight is not None:
        check_weight(word_weight)
    if rerank is not None:
        from selfsent.evaluation.encoders import as_reranker  # imports all kinds of models

        reranker = as_reranker(rerank, candidates)
        first = search(model, corpus, queries, max(top, reranker.candidates), advance, file, None, language)
        return rerank_hits(reranker, queries, first, corpus, top, word_weight)
    analyzer = Analyzer(language)
    model = open_encoder(model)
    word_weight = model.lexical_weight if word_weight is None else word_weight
    query_vectors = unit(encode(model, queries, side="query"))
    if word_weight:
        bm25 = BM25(queries, analyzer if language else Analyzer(corpus_language(corpus)))
        left = sentences(corpus)
        while texts := list(islice(left, _COUNTED_TOGETHER)):
            bm25.add(texts)
        query_terms, terms = bm25.queries, bm25.texts
    best = TopHits(len(queries), top)
    start = 0
    for vectors in corpus_vectors(model, corpus, file, "document"):
        rows = np.arange(start, start + len(vectors))
        words = (query_terms @ terms[start : start + len(vectors)].T).toarray() if word_weight else None
        best.add(rows, query_vectors @ unit(vectors).T, words, word_weight)
        start += len(vectors)
        advance(len(vectors))
    return best.hits()


def rerank_hits(
    reranker: Reranker,
    queries: Sequence[str],
    found: Sequence[Sequence[Hit]],
    source: Corpus | Index,
    top: int,
    word_weight: float | None = None,
) -> list[list[Hit]]:
    """The best of the candidates of each query, in the order of a reranker.

    Args:
        reranker: what puts them in order.
        queries: (q,) texts.
        found: (q,) candidates, best first; that order decides among equals.
        source: the texts.
        top: sentences per query.
        word_weight: relative to the cosine or score; None for the reranker's own.
    """
    weight = reranker.lexical_weight if word_weight is None else word_weight
    ordered = []
    for start in range(0, len(queries), _RERANKED_TOGETHER):
        part = slice(start, start + _RERANKED_TOGETHER)
        texts = [source.texts(np.array([hit.row for hit in hits], np.int64)) for hits in found[part]]
        for hits, scores in zip(found[part], reranker.scores(queries[part], texts), strict=True):
            again = [hit._replace(cosine=score) for hit, score in zip(hits, scores.tolist(), strict=True)]
            ordered.append(sorted(again, key=lambda hit: -hybrid(hit.cosine, hit.words, weight))[:top])
    return ordered


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
        new = np.stack([hybrid(cosines, words, word_weight), cosines, words])
        found = np.concatenate([self._found, new], axis=2)
        candidates = np.hstack([self._rows, np.broadcast_to(rows, cosines.shape)])
        order = np.argsort(-found[0], axis=1, kind="stable")[:, : self._top]
        self._rows = np.take_along_axis(candidates, order, 1)
        self._found = np.take_along_axis(found, order[None], 2)

    def hits(self) -> list[list[Hit]]:
        """The hits of each query, best first."""
        columns = (self._rows.tolist(), *self._found[1:].tolist())
        return [list(map(Hit, *each)) for each in zip(*columns, strict=True)]
