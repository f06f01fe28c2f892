"""Search with judged answers: nDCG@10 of what an encoder ranks first among all documents, as trec_eval computes it.

The gain of a document is its grade, not 2 to the power of it. Documents with the same score are ranked by falling id,
as trec_eval does, so that figures agree with pytrec_eval's to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.lexical import LEXICAL, LexicalEncoder
from selfsent.evaluation.results import Score, measure, signature
from selfsent.evaluation.stats.metrics import mean
from selfsent.evaluation.vectors import inner

VERSION = 1
NDCG_AT, MRR_AT, RECALL_AT, DEPTH = 10, 10, 100, 1000
"""Ranks that each metric looks at; DEPTH those of the mean average precision, as BEIR has it."""
BLOCK = 1 << 24
"""Scores held at once: 64 MiB of float32."""


class RetrievalTask:
    """Queries, documents and judgements, on which any number of encoders can be scored and paired.

    Args:
        name: of the score.
        queries: (q,) texts.
        documents: (n,) texts.
        grades: for each query the places of its judged documents and their grades; 0 and less are no answers.
        ids: (n,) ids of the documents, which settle ties; by default their places.
        groups: (q,) queries that are drawn together for the interval, such as those of one document.

    Raises:
        DataError: no query has an answer, or there are fewer than two documents.
    """

    def __init__(
        self,
        name: str,
        queries: Sequence[str],
        documents: Sequence[str],
        grades: Sequence[Mapping[int, float]],
        ids: Sequence[str] | None = None,
        groups: NDArray[np.int64] | None = None,
    ) -> None:
        answered = [place for place, found in enumerate(grades) if any(grade > 0 for grade in found.values())]
        if not answered or len(documents) < 2:
            raise DataError(f"{name}: there is no query with an answer among two documents or more")
        self.name, self.documents = name, documents
        self.queries, self.grades = [queries[place] for place in answered], [grades[place] for place in answered]
        names = [f"{place:020}" for place in range(len(documents))][::-1] if ids is None else ids
        self._by_id = np.argsort(np.array(names, dtype=object), kind="stable")[::-1]
        self._groups = None if groups is None else np.asarray(groups)[answered]

    def score(self, encoder: Encoder) -> Score:
        """nDCG@10 of an encoder, with its interval over queries; beside it MRR@10, recall@100 and MAP."""
        found = np.array([each for block in self._ranked(encoder) for each in block], np.float64)
        ndcg, mrr, recall, precision = found.T
        size = {"n": len(found), "c": len(self.documents), "data": self._data, "pool": encoder.pooling, "v": VERSION}
        return measure(
            self.name,
            mean(ndcg),
            len(found),
            signature=signature(self.name, f"ndcg@{NDCG_AT}", encoder.measure, **size),
            metrics={f"mrr@{MRR_AT}": mean(mrr), f"recall@{RECALL_AT}": mean(recall), "map": mean(precision)},
            groups=self._groups,
        )

    @cached_property
    def lexical(self) -> dict[str, Score]:
        """The scores of `tfidf` and `bm25`."""
        return {kind: self.score(LexicalEncoder(kind)) for kind in LEXICAL}

    def _ranked(self, encoder: Encoder) -> Iterator[list[tuple[float, ...]]]:
        """The metrics of each query, some queries at a time."""
        queries, documents = encoder.sides(self.queries, self.documents)
        size, order = max(1, BLOCK // len(self.documents)), self._by_id
        for start in range(0, len(self.queries), size):
            scores = inner(queries[start : start + size], documents)[:, order]
            # By falling id first: what is stable afterwards settles ties as trec_eval does.
            best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
            grades = self.grades[start : start + size]
            yield [_metrics(order[row].tolist(), each) for row, each in zip(best, grades, strict=True)]

    @cached_property
    def _data(self) -> str:
        judged = [sorted(each.items()) for each in self.grades]
        return fingerprint({"query": self.queries, "document": list(self.documents), "grades": judged})


def _metrics(ranking: Sequence[int], grades: Mapping[int, float]) -> tuple[float, ...]:
    """nDCG@10, MRR@10, recall@100 and average precision of one ranking."""
    gains = [max(0.0, grades.get(place, 0.0)) for place in ranking]
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    hits = [rank for rank, gain in enumerate(gains, 1) if gain > 0]
    first = hits[0] if hits and hits[0] <= MRR_AT else 0
    precision = sum(count / rank for count, rank in enumerate(hits, 1)) / len(ideal)
    return (
        _dcg(gains) / _dcg(ideal),
        1 / first if first else 0.0,
        sum(rank <= RECALL_AT for rank in hits) / len(ideal),
        precision,
    )


def _dcg(gains: Sequence[float]) -> float:
    return float(sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains[:NDCG_AT], 1)))
