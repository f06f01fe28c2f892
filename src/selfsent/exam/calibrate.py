"""Calibration of a search: the best scores of an exam's queries, with their answers and without."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.sentences import split_sentences
from selfsent.data.vector_files import VectorsFile, unit
from selfsent.display import counted
from selfsent.errors import DataError, SettingsError
from selfsent.exam.draw import MAX_DOCUMENTS, draw_exam
from selfsent.exam.exam import Exam, Text
from selfsent.index import Index
from selfsent.index.calibration import Calibration, queries_needed, write_calibration
from selfsent.lexical import BM25, Analyzer
from selfsent.lexical.hybrid import check_weight, fuse, normalized, top_k
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.opening import open_encoder
from selfsent.naming import name_of
from selfsent.progress import SILENT, Progress
from selfsent.search import search
from selfsent.search.exact import corpus_language
from selfsent.search.vectors import corpus_vectors

if TYPE_CHECKING:
    from selfsent.models.encoding import Model
    from selfsent.scorers.rerank import Reranker
    from selfsent.search import Hit

QUERIES, RERANKED = 500, 100
"""Maximum number of drawn queries, without a reranker and with one, which reads the candidates of each."""
_PIECE = 20
"""Words of the pieces of a text that has fewer than three sentences."""


def calibrate(
    source: Index | Corpus,
    encoder: Model | str | os.PathLike[str] | None = None,
    lexical_weight: float | None = None,
    progress: Progress = SILENT,
    queries: Sequence[str] | None = None,
    rerank: Any = None,
    candidates: int | None = None,
    language: str | None = None,
    file: VectorsFile | None = None,
    answer_rate: float | None = None,
) -> Calibration:
    """Measure the best scores of queries from the texts of a search, for `answer_rate`; an index keeps them.

    A query is the sentence of a text that is most like the rest of it: people ask for what a text is about. It is taken
    out (see `draw_exam`), and its best score is taken among the texts with the rest of its own, and again without that
    and its near-copies: a query near the domain that nothing answers. Only texts that lost a sentence are encoded.

    Args:
        source: an index, or a corpus as `search` takes it, with texts of two sentences or more, or of 60 words; at most
            10,000 are searched.
        encoder: of queries, or its name; None to load it by the name in the index.
        lexical_weight: of the searches; None for the index's own, the encoder's or the reranker's.
        progress: receives the number of texts encoded.
        queries: real queries that have an answer, whose best scores are taken in place of those of drawn ones: the rate
            then holds of queries like these.
        rerank: a stronger model, as for `search`, whose scores are measured.
        candidates: of each query for `rerank`; None for 200.
        language: of the stemmer, for a corpus.
        file: vectors of a corpus from `encode_to_file`; computed if None.
        answer_rate: that will be asked for. Where the queries are too few for it, an index keeps what it has.

    Raises:
        DataError: no two queries can be drawn, too few for `answer_rate`, or it is the encoder of another index.
        SettingsError: an invalid weight, a corpus without an encoder, or no model that can rerank.
        OutputError: the directory of the index cannot be written.

    Examples:
        >>> index = Index("tickets.index")  # doctest: +SKIP
        >>> calibrate(index).false_answers(0.9)  # doctest: +SKIP
        0.62
        >>> [hits] = index.search(vectors, texts=[query], answer_rate=0.9)  # doctest: +SKIP
        >>> cutoff = calibrate(corpus, "bundled").cutoff(0.9)  # doctest: +SKIP
        >>> [hit for hit in search("bundled", corpus, [query])[0] if hit.score >= cutoff]  # doctest: +SKIP
    """
    check_weight(0.0 if lexical_weight is None else lexical_weight)
    reranker: Reranker | None = None
    if rerank is not None:
        from selfsent.scorers.load_scorer import as_reranker  # a slow import

        reranker = as_reranker(rerank, candidates)
    if isinstance(source, Index):
        searched = _of_index(source, encoder, lexical_weight, reranker)
    else:
        searched = _of_corpus(source, encoder, lexical_weight, reranker, language, file)
    split = [_parts(text) for text in searched.texts]
    drawn = [Text(str(n), (), tuple(sentences)) for n, sentences in enumerate(split) if sentences]
    try:
        most = RERANKED if reranker else QUERIES
        exam = draw_exam(drawn, most, dropped=0.0, choice=searched.most_central)  # both chosen on dev: docs/log
    except DataError:
        rate = 0.9 if answer_rate is None else answer_rate
        needed = f"an answer rate of {rate:g} needs {counted(queries_needed(rate), 'text')} of three sentences at least"
        raise DataError(f"{searched.name}: no queries can be drawn from these texts: {needed}") from None
    answered, unanswered = best_scores(exam, searched, progress)
    made_of = f"{exam.summary} of the {'index' if isinstance(source, Index) else 'corpus'}"
    if queries is not None:
        found = searched.ask(list(queries))
        answered = np.array([hits[0].score for hits in found if hits], np.float32)
        made_of = f"{counted(len(queries), 'given query', 'given queries')}"
    both = tuple(answered.tolist()), tuple(unanswered.tolist())
    by = (reranker.scorer.name, reranker.candidates, reranker.fingerprint) if reranker else ()
    made = Calibration(*both, searched.final_weight, made_of, searched.count, searched.rows, *by)
    if answer_rate is not None:
        made.cutoff(answer_rate)
    if isinstance(source, Index):
        write_calibration(source.path, made)
    return made


@dataclass
class Searched:
    """A sample of the searched texts, and the way of the search.

    Args:
        name: in messages.
        texts: (n,) at most `MAX_DOCUMENTS` of it.
        vectors: (n, d) of these, of length 1.
        model: the encoder.
        weight: of words in the score by which texts are found.
        final_weight: of words in the score of a hit.
        language: of the stemmer.
        reranker: orders what is found.
        count: number of all texts.
        rows: number of the next new row.
        ask: q queries -> the best hit of each.
    """

    name: str
    texts: list[str]
    vectors: NDArray[np.float32]
    model: Model
    weight: float
    final_weight: float
    language: str | None
    reranker: Reranker | None
    count: int
    rows: int
    ask: Callable[[list[str]], list[list[Hit]]]

    def most_central(self, text: Text, sentences: Sequence[str]) -> int:
        """The place of the sentence that is most like its text, by the cosine and the words that the rest has, too."""
        analyzer = Analyzer(self.language)
        own = [{*analyzer(sentence)} for sentence in text.sentences]
        shared = []
        for sentence in sentences:
            rest = set[str]().union(*(o for o, s in zip(own, text.sentences, strict=True) if s != sentence))
            words = {*analyzer(sentence)}
            shared.append(len(words & rest) / max(1, len(words)))
        cosines = unit(encode(self.model, list(sentences), side="query")) @ self.vectors[int(text.name)]
        return int(fuse(cosines, np.array(shared), self.weight).argmax())


def _parts(text: str) -> list[str]:
    """The sentences of a text; pieces of it where it has fewer than three."""
    sentences = split_sentences(text)
    if len(sentences) > 2:
        return sentences
    words = text.split()
    pieces = [" ".join(words[at : at + _PIECE]) for at in range(0, len(words), _PIECE)]
    return pieces if len(pieces) > 2 else sentences


def _of_index(
    index: Index,
    encoder: Model | str | os.PathLike[str] | None,
    lexical_weight: float | None,
    reranker: Reranker | None,
) -> Searched:
    index.refuse_map("scores of mapped queries are not calibrated")
    model = open_encoder(encoder or index.query_model)
    index.check_model(fingerprint(model), str(name_of(encoder or index.query_model)), model.space)
    if model.embedding_size > index.size:
        model = model.twin()
        model.cut(index.size)
    with index.snapshot():
        texts, vectors = index.sample(MAX_DOCUMENTS)
        count, rows = len(index), index.rows
    weight, final = _weights(index.lexical_weight, lexical_weight, reranker)

    def ask(queries: list[str]) -> list[list[Hit]]:
        asked = unit(encode(model, queries, side="query"))
        return index.search(asked, 1, queries, lexical_weight, reranker)

    name = str(index.path)
    return Searched(name, texts, vectors, model, weight, final, index.language, reranker, count, rows, ask)


def _of_corpus(
    corpus: Corpus,
    encoder: Model | str | os.PathLike[str] | None,
    lexical_weight: float | None,
    reranker: Reranker | None,
    language: str | None,
    file: VectorsFile | None,
) -> Searched:
    if encoder is None:
        raise SettingsError("a corpus names no encoder: give `encoder`")
    model = open_encoder(encoder)
    rows = np.arange(min(MAX_DOCUMENTS, len(corpus))) * len(corpus) // min(MAX_DOCUMENTS, len(corpus))
    texts = corpus.texts(rows)
    if file is None:
        vectors = unit(encode(model, texts, side="document"))
    else:
        start, kept = 0, list[NDArray[np.float32]]()
        for part in corpus_vectors(model, corpus, file, "document"):
            kept.append(unit(part[rows[(rows >= start) & (rows < start + len(part))] - start]))
            start += len(part)
        vectors = np.concatenate(kept)
    weight, final = _weights(model.lexical_weight, lexical_weight, reranker)
    language = language or corpus_language(corpus)

    def ask(queries: list[str]) -> list[list[Hit]]:
        how = file, lexical_weight, language, reranker
        return search(model, corpus, queries, 1, SILENT, *how)

    count = len(corpus)
    return Searched(corpus.source, texts, vectors, model, weight, final, language, reranker, count, count, ask)


def _weights(own: float, given: float | None, reranker: Reranker | None) -> tuple[float, float]:
    """The weights of words by which texts are found, and of the scores of hits."""
    first = own if given is None or reranker else float(given)
    return first, first if reranker is None else reranker.lexical_weight if given is None else float(given)


def best_scores(
    exam: Exam, searched: Searched, progress: Progress = SILENT
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The best score of each query of an exam, (q,), with its answers among the documents and without.

    Args:
        exam: whose documents are named by their places among the texts.
        searched: the texts.
        progress: receives the number of texts encoded.
    """
    model, weight = searched.model, searched.weight
    places = np.array([int(document.name) for document in exam.documents])
    asked = sorted({answer for query in exam.queries for answer in query.answers})
    documents = [searched.texts[place] for place in places.tolist()]
    for row in asked:
        documents[row] = exam.documents[row].body
    queries, held = [query.text for query in exam.queries], searched.vectors[places]
    advance = progress.counting("encoding", len(queries) + len(asked))
    held[asked] = unit(encode(model, [documents[row] for row in asked], side="document"))
    advance(len(asked))
    dense = unit(encode(model, queries, side="query")) @ held.T
    advance(len(queries))
    lexical = np.zeros_like(dense)
    if weight:
        bm25 = BM25(queries, Analyzer(searched.language))
        bm25.add(documents)
        lexical = bm25.scorer()(0, len(documents))
    scores = normalized(fuse(dense, lexical, weight), weight)
    without = scores.copy()
    for row, query in enumerate(exam.queries):
        without[row, list(query.answers)] = -1.0  # the minimum of a cosine
    if searched.reranker is None:
        return scores.max(axis=1), without.max(axis=1)
    advance = progress.counting("reranking", 2 * len(queries))
    found = []
    for each in (scores, without):
        found.append(_best_reranked(searched.reranker, queries, documents, each, lexical, searched.final_weight))
        advance(len(queries))
    return found[0], found[1]


def _best_reranked(
    reranker: Reranker,
    queries: Sequence[str],
    documents: Sequence[str],
    scores: NDArray[np.float32],
    lexical: NDArray[np.float32],
    weight: float,
) -> NDArray[np.float32]:
    """The best score of each query, (q,), when a reranker has ordered its candidates; the worst where it has none."""
    chosen = [
        columns[row[columns] > -1.0] for row, columns in zip(scores, top_k(scores, reranker.candidates), strict=True)
    ]
    again = reranker.scores(queries, [[documents[column] for column in columns] for columns in chosen])
    best = []
    for row, columns, new in zip(lexical, chosen, again, strict=True):
        best.append(normalized(fuse(new, row[columns], weight), weight).max(initial=-np.inf))
    return np.asarray(best, np.float32)
