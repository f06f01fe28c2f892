"""Search: nDCG@10 of an encoder's ranking of all documents, as in trec_eval.

The gain of a document is its grade, not 2 to the power of it. Ties are ranked by descending id, as in trec_eval, so
that figures agree with pytrec_eval's to rounding.

**Known items** need no judgements: in documents the first sentence (the title, if any) must find the rest, in pairs
one text its partner. All texts are searched, and a text is encoded as a whole, as in `search`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.vector_files import inner
from selfsent.display import counted
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.results import Score, has_read, measure, signature
from selfsent.models.texts_read import TextsRead
from selfsent.scorers.lexical import LEXICAL, LexicalScorer
from selfsent.scorers.scorer import Scorer
from selfsent.stats.duplicates import connected, near_duplicates
from selfsent.stats.metrics import mean
from selfsent.stats.resampling import Floats

NDCG_AT, MRR_AT, RECALL_AT, DEPTH = 10, 10, 100, 1000
"""Cutoff rank of each metric; DEPTH is for the mean average precision, as in BEIR."""
BLOCK = 1 << 24  # scores held at once: 64 MiB of float32
SEARCH = "search"  # name of the known-item score
MAX_TEXTS = 10_000  # texts to search from a corpus of pairs; answers are always included
_DISCOUNTS = 1 / np.log2(np.arange(2, 2 + NDCG_AT))
_TITLE = 4
"""Maximum length in words of a title that the rest may repeat; a longer repetition is a copy."""


class RetrievalTask:
    """Queries, documents and judgements, for paired scores of encoders.

    Args:
        name: of the score.
        queries: (q,) texts.
        documents: (n,) texts.
        grades: grades of each query's judged documents, by index; 0 or less is no answer. Indices from n on are missing
            documents, which count as not found.
        ids: (n,) ids of the documents, for ties; by default earlier documents rank first.
        groups: (q,) groups of queries resampled together, such as all of one document.
        itself: (q,) index of the document equal to the query, which is excluded; -1 for none.
        of: name of the set, such as `cranfield, test`, for titles and the signature.
        warnings: one line each.
        depth: last rank that counts, for the mean average precision.
        block: maximum number of scores in memory.

    Raises:
        DataError: no query has an answer, or fewer than two documents.

    Examples:
        >>> task = RetrievalTask("faq", ["red cars"], ["a blue car", "a red car"], [{1: 1}])
        >>> task.score(LexicalScorer("bm25")).score
        100.0
    """

    def __init__(
        self,
        name: str,
        queries: Sequence[str],
        documents: Sequence[str],
        grades: Sequence[Mapping[int, float]],
        ids: Sequence[str] | None = None,
        groups: NDArray[np.int64] | None = None,
        *,
        itself: Sequence[int] | None = None,
        of: str = "",
        warnings: tuple[str, ...] = (),
        depth: int = DEPTH,
        block: int = BLOCK,
    ) -> None:
        self.name, self.documents, self.of, self._warnings = name, documents, of, warnings
        self._depth, self._block = depth, block
        count = len(documents)
        if count < 2:
            raise DataError(f"{of or name}: {count} document{'s' * (not count)} to search in; at least two are needed")
        answered = [row for row, found in enumerate(grades) if any(grade > 0 for grade in found.values())]
        if not answered:
            raise DataError(f"{of or name}: no query has an answer, which is a document with a grade above 0")
        self.queries, self.grades = [queries[row] for row in answered], [grades[row] for row in answered]
        # By descending id, so that stable sorting breaks ties as trec_eval does.
        self._order = np.array(range(count) if ids is None else sorted(range(count), key=ids.__getitem__, reverse=True))
        self.itself = [-1 if itself is None else itself[row] for row in answered]
        self.groups = None if groups is None else np.asarray(groups)[answered]
        self._weights: Floats | None = None
        self._read_by: list[tuple[TextsRead, frozenset[int]]] = []

    def score(self, scorer: Scorer) -> Score:
        """nDCG@10 of a scorer, with its interval over queries, with MRR@10, recall@100 and MAP."""
        read = has_read(len(self.read_by(scorer.texts_read)), len(self.answers))
        return self.score_of(self.measured(scorer), scorer.measure, scorer.pooling, read)

    def measured(self, scorer: Scorer) -> Floats:
        """The metrics of each query, (q, 4): nDCG@10, MRR@10, recall@100 and average precision."""
        return np.array(list(self._measured(scorer)))

    def score_of(self, found: Floats, how: str, pooling: str, details: Mapping[str, Any] | None = None) -> Score:
        """The score of metrics that were measured before, see `measured`.

        Args:
            found: (q, 4).
            how: the scorer's `measure`, for the signature.
            pooling: of the scorer.
            details: other facts to keep.
        """
        ndcg, mrr, recall, precision = (mean(values, self._weights) for values in found.T)
        size = {"n": len(found), "c": len(self.documents), "data": self._data, "pool": pooling, "v": 1}
        size |= {} if self._weights is None else {"w": fingerprint({"w": [f"{each:.3f}" for each in self._weights]})}
        return measure(
            self.name,
            ndcg,
            len(found),
            signature=signature(*filter(None, (self.name, self.of)), f"ndcg@{NDCG_AT}", how, **size),
            metrics={f"mrr@{MRR_AT}": mrr, f"recall@{RECALL_AT}": recall, "map": precision},
            groups=self.groups,
            title=f"{self.name}: nDCG@{NDCG_AT}{' on ' * bool(self.of)}{self.of}",
            warnings=self._warnings,
            details=details,
        )

    @property
    def answers(self) -> list[int]:
        """The documents that answer a query, ascending; missing ones left out."""
        found = {index for grades in self.grades for index in _right(grades) if index < len(self.documents)}
        return sorted(found)

    def read_by(self, record: TextsRead) -> frozenset[int]:
        """The answers that a model has read, by its record."""
        for known, found in self._read_by:
            if known is record:
                return found
        answers = np.array(self.answers)
        read = record.of([self.documents[index] for index in answers]) if record else np.zeros(len(answers), bool)
        self._read_by.append((record, frozenset(answers[read].tolist())))
        return self._read_by[-1][1]

    def without(self, read: Collection[int]) -> RetrievalTask | None:
        """The task of the queries that none of these documents answers; None if there is none."""
        kept = [row for row, grades in enumerate(self.grades) if not any(index in read for index in _right(grades))]
        return self.part(kept) if kept else None

    def part(self, kept: Sequence[int]) -> RetrievalTask:
        """The task of some of the queries, by position, in this order."""
        found = copy(self)
        found._read_by = []
        found.queries, found.grades = [self.queries[row] for row in kept], [self.grades[row] for row in kept]
        found.itself = [self.itself[row] for row in kept]
        found.groups = None if self.groups is None else self.groups[kept]
        found._weights = None if self._weights is None else self._weights[list(kept)]
        return found._renewed()

    def weighted(self, weights: Floats, name: str) -> RetrievalTask:
        """The task in which each query counts by its weight (q,), under another name; see `selfsent.exam.likeness`."""
        found = copy(self)
        found._weights, found.name = np.asarray(weights, np.float64), name
        return found._renewed()

    def _renewed(self) -> RetrievalTask:
        """This copy without what was computed of its original."""
        for known in ("lexical", "_data"):
            self.__dict__.pop(known, None)
        return self

    @cached_property
    def lexical(self) -> dict[str, Score]:
        """The scores of `tfidf` and `bm25`."""
        return {kind: self.score(LexicalScorer(kind)) for kind in LEXICAL}

    def _measured(self, scorer: Scorer) -> Iterator[tuple[float, ...]]:
        """The metrics of each query."""
        texts, size = [self.documents[index] for index in self._order], max(1, self._block // len(self.documents))
        queries, documents = scorer.query_document_vectors(self.queries, texts, search=True)
        columns = np.argsort(self._order)
        for start in range(0, len(self.queries), size):
            for row, found in enumerate(inner(queries[start : start + size], documents), start):
                scores, itself, grades = np.array(found, np.float32), self.itself[row], self.grades[row]
                if itself >= 0:
                    scores[columns[itself]] = -np.inf
                ranks = {
                    _rank(scores, columns[index]): grade
                    for index, grade in grades.items()
                    if grade > 0 and index < len(columns) and index != itself
                }
                yield rank_metrics(ranks, grades, self._depth)

    @cached_property
    def _data(self) -> str:
        judged = [sorted(each.items()) for each in self.grades]
        return fingerprint({"query": self.queries, "document": list(self.documents), "grades": judged})


def _right(grades: Mapping[int, float]) -> list[int]:
    return [index for index, grade in grades.items() if grade > 0]


def _rank(scores: NDArray[np.float32], column: int) -> int:
    """The rank of a document among scores (n,), from 1: equal ones come in order. Much faster than sorting them."""
    own = scores[column]
    return 1 + int(np.count_nonzero(scores > own) + np.count_nonzero(scores[:column] == own))


def rank_metrics(ranks: Mapping[int, float], grades: Mapping[int, float], depth: int = DEPTH) -> tuple[float, ...]:
    """nDCG@10, MRR@10, recall@100 and average precision, by the grades of answers at their ranks, and of all."""
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    found = {rank: grade for rank, grade in ranks.items() if rank <= depth}
    hits = np.array(sorted(found))
    first = hits[0] if len(hits) and hits[0] <= MRR_AT else np.inf
    precision = np.sum(np.arange(1, len(hits) + 1) / hits) / len(ideal)
    gain = sum(grade * _DISCOUNTS[rank - 1] for rank, grade in found.items() if rank <= NDCG_AT)
    ndcg = gain / np.dot(ideal[:NDCG_AT], _DISCOUNTS[: len(ideal)])
    return ndcg, 1 / first, np.sum(hits <= RECALL_AT) / len(ideal), precision


class KnownItemTask(RetrievalTask):
    """Queries with answers known by position; queries that share an answer are resampled together.

    Args:
        relation: of answers to queries, in words.
        texts: (n,) texts to search.
        answers: indices of the answers of each query.

    Raises:
        DataError: no query has an answer, or fewer than two texts.
    """

    def __init__(self, relation: str, texts: Sequence[str], answers: Mapping[str, set[int]]) -> None:
        count = len(answers)
        query = np.repeat(np.arange(count), [len(found) for found in answers.values()])
        answer = [count + index for found in answers.values() for index in found]
        groups = connected(query, answer, count + len(texts))[:count]
        grades = [dict.fromkeys(found, 1.0) for found in answers.values()]
        super().__init__(SEARCH, [*answers], texts, grades, groups=groups)
        self.summary = f"{relation}: {counted(count, 'query', 'queries')} among {counted(len(texts), 'text')}"
        """The task, with the numbers of queries and texts, in words."""


def first_finds_rest(documents: Sequence[Sequence[str]]) -> KnownItemTask:
    """The first sentence of each document must find the rest, as one text, among all rests.

    Near-duplicate rests are searched once. First sentences without words are no queries, nor are those repeated
    verbatim in their rest, unless as short as a title.

    Args:
        documents: the sentences of each.

    Raises:
        DataError: fewer than two documents with a rest.
    """
    long = [(first, " ".join(rest)) for first, *rest in documents if rest]
    if not long:
        raise DataError(f"{SEARCH}: no document has two sentences")
    one, other = near_duplicates([rest for _, rest in long]).nonzero()
    _, kept, index = np.unique(connected(one, other, len(long)), return_index=True, return_inverse=True)
    answers: dict[str, set[int]] = {}
    for (first, rest), answer in zip(long, index.tolist(), strict=True):
        words, later = (re.findall(r"\w+", text.casefold()) for text in (first, rest))
        copied = len(words) > _TITLE and f" {' '.join(words)} " in f" {' '.join(later)} "
        if words and not copied:
            answers.setdefault(first, set()).add(answer)
    relation = "the first sentence of a document finds the rest of it"
    return KnownItemTask(relation, [long[row][1] for row in kept], answers)


def text_finds_partner(pairs: Corpus, rows: NDArray[np.int64], max_texts: int = MAX_TEXTS) -> KnownItemTask:
    """The first text of each given row must find its partners among the second texts of all rows.

    Args:
        pairs: rows of two or more texts.
        rows: rows of the queries. Texts of other rows are searched, too.
        max_texts: maximum number of texts to search, unless more are answers.

    Raises:
        DataError: fewer than two different partners.
    """
    one, other = pairs.input_columns[:2]
    others = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(len(pairs)), rows))[:max_texts]
    partners = pairs.texts(rows, other)
    index = {text: number for number, text in enumerate(dict.fromkeys([*partners, *pairs.texts(others, other)]))}
    answers: dict[str, set[int]] = {}
    for query, partner in zip(pairs.texts(rows, one), partners, strict=True):
        if query not in index:  # it would find itself
            answers.setdefault(query, set()).add(index[partner])
    texts = [*index][: max(max_texts, len(set(partners)))]
    return KnownItemTask(f"a text of “{one}” finds its “{other}”", texts, answers)
