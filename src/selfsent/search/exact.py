"""Exact hybrid search: every text of a corpus is scored by the cosine of its vector and by BM25."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.batch import PARTS, POSITIONS
from selfsent.data.vector_files import VectorsFile, unit
from selfsent.errors import ONE_STRING, SettingsError
from selfsent.lexical import BM25, Analyzer, language_of
from selfsent.lexical.analyzer import SAMPLED
from selfsent.lexical.hybrid import check_weight, fuse, normalized, top_k
from selfsent.models.encoding import encode
from selfsent.models.opening import open_encoder
from selfsent.progress import SILENT, Progress
from selfsent.renamed import callbacks_as_progress, renamed_arguments, warn_renamed
from selfsent.search.near import Texts
from selfsent.search.vectors import corpus_vectors, sentences

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.models.encoding import Model
    from selfsent.scorers.rerank import Reranker

_COUNTED_TOGETHER = 256
_RERANKED_TOGETHER = 64


class Hit(NamedTuple):
    """A search result: a text, by the first row of the input that has it.

    Args:
        row: of the input, as pandas counts the rows of a table; an index continues the numbers with each addition.
        score: (dense_score + lexical_weight · lexical_score) / (1 + lexical_weight), by which hits are ranked.
        dense_score: cosine to the query, or the score of a cross-encoder that reranks.
        lexical_score: BM25 as a share of the maximum of the query, 0 to 1; 0 if not computed.
        id: of the row: in an index from its column of ids, in a corpus from the first metadata column; None without.
        sentence: place in the row of the sentence or passage, from 0, for split texts; None for others.
    """

    row: int
    score: float
    dense_score: float
    lexical_score: float = 0.0
    id: Any = None
    sentence: int | None = None

    @property
    def cosine(self) -> float:
        """Deprecated name of `dense_score`."""
        warn_renamed("Hit.cosine", "Hit.dense_score")
        return self.dense_score

    @property
    def words(self) -> float:
        """Deprecated name of `lexical_score`."""
        warn_renamed("Hit.words", "Hit.lexical_score")
        return self.lexical_score


@callbacks_as_progress
@renamed_arguments(word_weight="lexical_weight")
def search(
    model: Model | str | os.PathLike[str],
    corpus: Corpus,
    queries: list[str],
    top: int = 10,
    progress: Progress = SILENT,
    file: VectorsFile | None = None,
    lexical_weight: float | None = None,
    language: str | None = None,
    rerank: Any = None,
    candidates: int | None = None,
) -> list[list[Hit]]:
    """The distinct texts nearest to each query, by cosine + lexical_weight · BM25, best first; exact.

    With `rerank` these are candidates, which a stronger model orders without encoding the whole corpus.

    Args:
        model: the encoder, or the name of one, such as a run's directory.
        corpus: the sentences to search.
        queries: texts.
        top: sentences per query.
        progress: receives the number of texts done.
        file: vectors of the corpus from `encode_to_file`; computed if None.
        lexical_weight: of BM25 relative to the cosine; 0 for the cosine alone, None for the encoder's default. With
            `rerank`, relative to its cosine or score; candidates are found with the encoder's default.
        language: of the stemmer, one of `LANGUAGES`; by default the language of most sentences.
        rerank: a sentence encoder or a cross-encoder, as for `as_reranker`. Vectors of candidates are kept in the
            cache folder for the next question, if it is given by name.
        candidates: of each query for `rerank`, at least `top`; None for 200.

    Raises:
        DataError: the file is damaged, or holds other vectors.
        SettingsError: a query outside a list, no encoder, an unknown language, an invalid weight, or no candidates.

    Examples:
        >>> hits = search("bundled", corpus, ["printer is dead"], rerank="runs/tickets")  # doctest: +SKIP
    """
    if isinstance(queries, str):
        raise SettingsError(ONE_STRING)
    if not all(query.strip() for query in queries):
        raise SettingsError("the query is empty")
    check_weight(0 if lexical_weight is None else lexical_weight)
    reranker: Reranker | None = None
    if rerank is not None:
        from selfsent.scorers.load_scorer import as_reranker  # a slow import

        reranker = as_reranker(rerank, candidates)
    analyzer = Analyzer(language)
    model = open_encoder(model)
    weight = model.lexical_weight if lexical_weight is None or reranker else lexical_weight
    query_vectors = unit(encode(model, queries, side="query"))
    if weight:
        bm25 = BM25(queries, analyzer if language else Analyzer(corpus_language(corpus)))
        left = sentences(corpus)
        while texts := list(islice(left, _COUNTED_TOGETHER)):
            bm25.add(texts)
        lexical_scores = bm25.scorer()
    wanted = max(top, reranker.candidates) if reranker else top
    best = TopHits(len(queries), wanted, weight, owners_of(corpus))
    advance, start = progress.counting("searching", len(corpus)), 0
    for vectors in corpus_vectors(model, corpus, file, "document"):
        rows = np.arange(start, start + len(vectors))
        lexical = lexical_scores(start, start + len(vectors)) if weight else None
        best.add(rows, query_vectors @ unit(vectors).T, lexical)
        start += len(vectors)
        advance(len(vectors))
    found = best.hits()
    if reranker:
        found = rerank_hits(reranker, queries, found, lambda hits: corpus.texts(_rows(hits)), top, lexical_weight)
    return [_in_input(hits, corpus) for hits in found]


def _rows(hits: Sequence[Hit]) -> NDArray[np.int64]:
    return np.array([hit.row for hit in hits], np.int64)


def rerank_hits(
    reranker: Reranker,
    queries: Sequence[str],
    found: Sequence[Sequence[Hit]],
    texts_of: Callable[[Sequence[Hit]], list[str]],
    top: int,
    lexical_weight: float | None = None,
) -> list[list[Hit]]:
    """The best of the candidates of each query, in the order of a reranker.

    Args:
        reranker: gives their dense scores.
        queries: (q,) texts.
        found: (q,) candidates, best first; equal scores keep this order.
        texts_of: from hits to their texts.
        top: sentences per query.
        lexical_weight: relative to the cosine or score; None for the reranker's own.
    """
    weight = reranker.lexical_weight if lexical_weight is None else lexical_weight
    ordered = []
    for start in range(0, len(queries), _RERANKED_TOGETHER):
        part = slice(start, start + _RERANKED_TOGETHER)
        texts = [texts_of(hits) for hits in found[part]]
        for hits, scores in zip(found[part], reranker.scores(queries[part], texts), strict=True):
            lexical = np.array([hit.lexical_score for hit in hits])
            fused = normalized(fuse(scores, lexical, weight), weight)
            both = ((hits[place], float(fused[place]), float(scores[place])) for place in top_k(fused, top))
            ordered.append([hit._replace(score=score, dense_score=dense) for hit, score, dense in both])
    return ordered


def _in_input(hits: Sequence[Hit], corpus: Corpus) -> list[Hit]:
    """Hits with rows of the input instead of rows of the corpus."""
    both = zip(hits, input_places(corpus, [hit.row for hit in hits]), strict=True)
    return [hit._replace(row=row, id=name, sentence=sentence) for hit, (row, name, sentence) in both]


def input_places(corpus: Corpus, rows: Sequence[int]) -> list[tuple[int, Any, int | None]]:
    """For rows of a corpus the first row of the input, its first metadata value, and the sentence in it (or None)."""
    inputs = corpus.input_rows
    cells = inputs.describe(np.asarray(inputs.first[np.array(rows, np.int64)]))
    ids = next((cells[name] for name in cells if name not in POSITIONS), [None] * len(rows))
    return list(
        zip(cells["row"], ids, next((cells[part] for part in PARTS if part in cells), [None] * len(rows)), strict=True)
    )


def corpus_language(corpus: Texts) -> str | None:
    """The language of most sentences in a sample of a corpus; None if mixed."""
    return language_of(sampled(corpus))


def sampled(corpus: Texts) -> list[str]:
    """Some hundred texts from all of a corpus, to find its language by."""
    rows = sorted({*np.linspace(0, len(corpus) - 1, SAMPLED).astype(np.int64).tolist()})
    return corpus.texts(np.array(rows, np.int64))


def owners_of(corpus: Corpus) -> NDArray[np.int64] | None:
    """The row of the input that each passage of a corpus is first in, (n,) in rising order; None without passages."""
    inputs = corpus.input_rows
    return inputs.positions(np.asarray(inputs.first))["row"] if inputs.unit == "passage" else None


def best_parts(scores: NDArray[np.float32], owners: NDArray[np.int64]) -> NDArray[np.float32]:
    """Scores (q, n) with all but the best part of each owner at minus infinity; the first among equals.

    Args:
        scores: of the parts.
        owners: (n,) what each part belongs to, in rising order.
    """
    first = np.flatnonzero(np.diff(owners, prepend=owners[0] - 1))
    lengths = np.diff(first, append=len(owners))
    best = np.repeat(np.maximum.reduceat(scores, first, axis=1), lengths, axis=1)
    places = np.where(scores == best, np.arange(len(owners)), len(owners))
    chosen = np.repeat(np.minimum.reduceat(places, first, axis=1), lengths, axis=1)
    return np.where(chosen == np.arange(len(owners)), scores, np.float32(-np.inf))


class TopHits:
    """The best hits of each query so far; the earlier row among equals.

    Args:
        queries: number of queries.
        top: hits kept per query.
        lexical_weight: of BM25.
        owners: the owner of each row; only its best row is a hit; None for rows of their own.
    """

    def __init__(self, queries: int, top: int, lexical_weight: float, owners: NDArray[np.int64] | None = None) -> None:
        self._top, self._weight, self._owners = top, lexical_weight, owners
        self._rows = np.zeros((queries, 0), np.int64)
        self._found = np.zeros((3, queries, 0), np.float32)
        """Cosine, BM25 and their weighted sum."""

    def add(self, rows: NDArray[np.int64], cosines: NDArray[np.float32], lexical: NDArray[np.float32] | None) -> None:
        """Add rows (n,) with their cosines and lexical scores, (queries, n) each."""
        lexical = np.zeros_like(cosines) if lexical is None else lexical
        fused = fuse(cosines, lexical, self._weight)
        if self._owners is not None:
            fused = best_parts(fused, self._owners[rows])
        new = np.stack([cosines, lexical, fused])
        found = np.concatenate([self._found, new], axis=2)
        candidates = np.hstack([self._rows, np.broadcast_to(rows, cosines.shape)])
        if self._owners is not None and self._rows.size:
            self._without_worse(candidates, found[2])
        order = top_k(found[2], self._top)
        self._rows = np.take_along_axis(candidates, order, 1)
        self._found = np.take_along_axis(found, order[None], 2)

    def _without_worse(self, candidates: NDArray[np.int64], scores: NDArray[np.float32]) -> None:
        """Give up the worse part of an owner whose parts came in two calls."""
        assert self._owners is not None
        owners, kept = self._owners[candidates], self._rows.shape[1]
        straddling = owners[:, kept]  # parts are in the order of their owners, so that it is the first new one
        for query, owner in enumerate(straddling.tolist()):
            both = np.flatnonzero(owners[query] == owner)
            worse = both[np.arange(len(both)) != scores[query, both].argmax()]
            scores[query, worse] = -np.inf

    def hits(self) -> list[list[Hit]]:
        """The hits of each query, best first."""
        cosines, lexical, fused = self._found
        scores = normalized(fused, self._weight)
        columns = self._rows.tolist(), scores.tolist(), cosines.tolist(), lexical.tolist()
        every = [list(map(Hit, *each)) for each in zip(*columns, strict=True)]
        return [[hit for hit in hits if hit.score > -np.inf] for hits in every]
