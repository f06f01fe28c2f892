"""Calibration of an index: the best scores of an exam's queries, with their answers and without."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.sentences import split_sentences
from selfsent.data.vector_files import unit
from selfsent.display import counted
from selfsent.errors import DataError
from selfsent.exam.draw import MOST, Exam, Text, draw_exam
from selfsent.index import Index
from selfsent.index.calibration import Calibration, queries_needed, write_calibration
from selfsent.lexical import BM25, Analyzer
from selfsent.lexical.hybrid import check_weight, fuse, normalized
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.opening import open_encoder
from selfsent.naming import name_of
from selfsent.progress import SILENT, Progress

if TYPE_CHECKING:
    from selfsent.models.encoding import Model

QUERIES = 500


def calibrate(
    index: Index,
    encoder: Model | str | os.PathLike[str] | None = None,
    lexical_weight: float | None = None,
    progress: Progress = SILENT,
    queries: Sequence[str] | None = None,
) -> Calibration:
    """Measure the best scores of queries from the texts of an index, and keep them with it for `answer_rate`.

    A query is a sentence that is taken out of its text (see `draw_exam`). Its best score is taken among the texts with
    the rest of its own, and again without that and its near-copies: a query near the domain that nothing answers. Only
    texts that lost a sentence are encoded.

    Args:
        index: with texts of two sentences or more; at most 10,000 are searched.
        encoder: of queries, or its name; None to load it by the name in the index.
        lexical_weight: of the searches; None for the index's own.
        progress: receives the number of texts encoded.
        queries: real queries that have an answer in the index, whose best scores are taken in place of those of drawn
            ones: the rate then holds of queries like these.

    Raises:
        DataError: no two queries can be drawn, or it is the encoder of another index.
        SettingsError: an invalid weight.
        OutputError: the directory of the index cannot be written.

    Example:
        >>> index = Index("tickets.index")  # doctest: +SKIP
        >>> calibrate(index).false_answers(0.9)  # doctest: +SKIP
        0.62
        >>> [hits] = index.search(vectors, texts=[query], answer_rate=0.9)  # doctest: +SKIP
    """
    weight = index.lexical_weight if lexical_weight is None else float(lexical_weight)
    check_weight(weight)
    index.refuse_map("scores of mapped queries are not calibrated")
    model = open_encoder(encoder or index.query_model)
    index.check_model(fingerprint(model), str(name_of(encoder or index.query_model)), model.space)
    if model.embedding_size > index.size:
        model = model.twin()
        model.cut(index.size)
    with index.snapshot():
        texts, vectors = index.sample(MOST)
        count, rows = len(index), index.rows
    split = [split_sentences(text) for text in texts]
    drawn = [Text(str(n), (), tuple(sentences)) for n, sentences in enumerate(split) if sentences]
    try:
        exam = draw_exam(drawn, QUERIES, dropped=0.0)  # chosen on dev: docs/log/evaluation.md
    except DataError:
        needed = f"an answer rate of 0.9 needs {queries_needed(0.9)} texts of three sentences at least"
        raise DataError(f"{index.path}: no queries can be drawn from these texts: {needed}") from None
    answered, unanswered = best_scores(exam, texts, vectors, model, weight, index.language, progress)
    made_of = f"{exam.summary} of the index"
    if queries is not None:
        asked = unit(encode(model, list(queries), side="query"))
        found = index.search(asked, 1, list(queries), weight)
        answered = np.array([hits[0].score for hits in found if hits], np.float32)
        made_of = f"{counted(len(queries), 'given query', 'given queries')}"
    made = Calibration(tuple(answered.tolist()), tuple(unanswered.tolist()), weight, made_of, count, rows)
    write_calibration(index.path, made)
    return made


def best_scores(
    exam: Exam,
    texts: list[str],
    vectors: NDArray[np.float32],
    model: Model,
    weight: float,
    language: str | None,
    progress: Progress = SILENT,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The best score of each query of an exam, (q,), with its answers among the documents and without.

    Args:
        exam: whose documents are named by their places among the texts.
        texts: (n,) as they are in the index.
        vectors: (n, d) of these, of length 1.
        model: the encoder.
        weight: of words.
        language: of the stemmer.
        progress: receives the number of texts encoded.
    """
    places = np.array([int(document.name) for document in exam.documents])
    asked = sorted({answer for query in exam.queries for answer in query.answers})
    documents = [texts[place] for place in places.tolist()]
    for row in asked:
        documents[row] = exam.documents[row].body
    queries, held = [query.text for query in exam.queries], vectors[places]
    advance = progress.counting("encoding", len(queries) + len(asked))
    held[asked] = unit(encode(model, [documents[row] for row in asked], side="document"))
    advance(len(asked))
    dense = unit(encode(model, queries, side="query")) @ held.T
    advance(len(queries))
    lexical = np.zeros_like(dense)
    if weight:
        bm25 = BM25(queries, Analyzer(language))
        bm25.add(documents)
        lexical = bm25.scorer()(0, len(documents))
    scores = normalized(fuse(dense, lexical, weight), weight)
    answered = scores.max(axis=1)
    for row, query in enumerate(exam.queries):
        scores[row, list(query.answers)] = -1.0  # the least that a cosine can be
    return answered, scores.max(axis=1)
