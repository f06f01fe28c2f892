"""Asks an index and its copy in a database the same queries, and compares what they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.sentences import split_sentences
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.tasks.retrieval import rank_metrics
from selfsent.exam.draw import draw_exam
from selfsent.exam.exam import Text
from selfsent.index import Index
from selfsent.index.files import SENTENCE_BITS
from selfsent.index.scan import key_of
from selfsent.push.target import KEY, Address, Target, told
from selfsent.stats.metrics import mean
from selfsent.stats.resampling import Difference, bootstrap, paired

TOP = 10
QUERIES, SEARCHED = 200, 2000
"""Queries, and texts of an index that they are drawn from, at most."""
_WORDS = 12
"""Words of a query that is the beginning of a text, where an exam has too few."""
_PASSAGES = 10
"""Rows asked for each hit where a text has several passages."""


@dataclass(frozen=True)
class Checked:
    """The hits of two sides for the same queries.

    Args:
        queries: their number.
        same: share of queries whose first ten are the same.
        overlap: mean share of the first ten that both found.
        judged: number of queries with a known answer.
        ndcg: nDCG@10 of the index and of the database.
        difference: of the database to the index, with its paired interval.
    """

    queries: int
    same: float
    overlap: float
    judged: int
    ndcg: tuple[float, float]
    difference: Difference


def exam_of(index: Index) -> tuple[list[str], list[dict[int, float]]]:
    """Queries drawn from the texts of an index, and the grades of the rows that answer each, by key.

    They are those of an exam, then beginnings of texts, for which no answer is known.

    Raises:
        DataError: the index is empty.
    """
    step, place = max(1, len(index.keys()) // SEARCHED), 0
    texts = list[Text]()
    for rows in index.scan():
        for row in rows[-place % step :: step]:
            if not row.repeats and (sentences := split_sentences(row.text)):
                texts.append(Text(str(row.key), (), tuple(sentences)))
        place += len(rows)
    if not texts:
        raise DataError(f"{index.path} holds no text to ask for")
    queries, answers = list[str](), list[dict[int, float]]()
    with suppress(DataError):  # no text has enough sentences
        exam = draw_exam(texts, QUERIES, searched=SEARCHED)
        queries = [query.text for query in exam.queries]
        answers = [{int(exam.documents[each].name): 1.0 for each in query.answers} for query in exam.queries]
    for text in texts[: QUERIES - len(queries)]:
        queries.append(" ".join(text.body.split()[:_WORDS]))
        answers.append({})
    return queries, answers


def check(
    index: Index,
    target: Target,
    address: Address,
    queries: Sequence[str],
    vectors: NDArray[np.float32],
    answers: Sequence[Mapping[int, float]],
) -> Checked:
    """Ask both sides.

    Args:
        index: one side.
        target: the other.
        address: of the other, for errors.
        queries: (q,) texts.
        vectors: (q, d) of length 1.
        answers: grades of the rows that answer each query, by key.

    Raises:
        SettingsError: the database holds nothing.
        OutputError: it cannot be reached.
    """
    with index.snapshot(), told(target, address):
        if next(iter(target.stamps()), None) is None:
            raise SettingsError(f"{address} holds no row: push the index first, without `check`")
        ours = [[_key(index, hit) for hit in hits] for hits in index.search(vectors, TOP, queries)]
        theirs = [_asked(index, target, vector, query) for query, vector in zip(queries, vectors, strict=True)]
    pairs = [(set(one), set(other)) for one, other in zip(ours, theirs, strict=True)]
    judged = [row for row, grades in enumerate(answers) if any(grade > 0 for grade in grades.values())]
    scores = [np.array([_ndcg(side[row], answers[row]) for row in judged]) for side in (ours, theirs)]
    figures = [float(each.mean()) if judged else 0.0 for each in scores]
    samples = [bootstrap(mean(each), len(judged)) for each in scores]
    return Checked(
        len(queries),
        float(np.mean([mine == yours for mine, yours in pairs])),
        float(np.mean([len(mine & yours) / max(1, len(mine)) for mine, yours in pairs])),
        len(judged),
        (figures[0], figures[1]),
        paired(figures[1], figures[0], samples[1], samples[0]),
    )


def _key(index: Index, hit: Any) -> int:
    return key_of(hit.row << SENTENCE_BITS | (hit.sentence or 0), hit.id)


def _asked(index: Index, target: Target, vector: NDArray[np.float32], query: str) -> list[int]:
    """The keys that a database finds: a text once, by its best passage."""
    limit = TOP * _PASSAGES if index.part == "passage" else TOP
    found = target.search(vector, index.query_weights(query), index.lexical_weight, limit)
    if index.part == "passage":
        best = dict[Any, dict[str, Any]]()
        for row in found:
            best.setdefault(row.get(index.id_column or "row", row[KEY]), row)
        found = list(best.values())
    return [row[KEY] for row in found[:TOP]]


def _ndcg(found: Sequence[int], grades: Mapping[int, float]) -> float:
    """nDCG@10 of a query, in percent."""
    ranks = {rank: grades[key] for rank, key in enumerate(found, 1) if grades.get(key, 0) > 0}
    return float(100 * rank_metrics(ranks, grades)[0])
