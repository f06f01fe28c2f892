"""Hits of real queries for human judgement, in the order that decides most between rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from selfsent.data.judgements import Judgements
from selfsent.data.vector_files import inner
from selfsent.lexical.hybrid import top_k
from selfsent.scorers.scorer import Scorer

DEPTH = 10
"""Hits of each ranking that may be judged: as many as nDCG@10 looks at."""
TOGETHER = 5
"""Hits of a query that are judged in one go, before the next query's."""
KEYS = {"y": True, "1": True, "n": False, "0": False}
"""Keys of an answer: whether the text answers the query."""


@dataclass(frozen=True)
class Hit:
    """A text found for a query, by their positions, and the weight of its judgement.

    Args:
        query: position.
        text: position.
        weight: the largest difference between two rankings' gains of this text, if it is relevant, before nDCG is
            divided by that of the ideal ranking; of a single ranking its gain. 0 to 1.
    """

    query: int
    text: int
    weight: float


def hits_to_judge(
    queries: Sequence[str],
    texts: Sequence[str],
    scorers: Sequence[Scorer],
    depth: int = DEPTH,
    scores_at_once: int = 1 << 24,
) -> list[Hit]:
    """The best hits of all rankings for each query, by how far their judgement can move the compared scores apart.

    If a text at rank r is relevant, it adds 1 / log₂(1 + r) to the DCG of a ranking, and nothing beyond `depth`. Where
    two rankings have it at one rank, nothing between them hangs on it. A minimal test collection is judged in such an
    order (Carterette, Allan and Sitaraman, 2006, for average precision). Queries come in rounds of `TOGETHER` hits, so
    that a reader stays with one query for a while, and a few answers already cover many queries.

    Args:
        queries: (q,) texts.
        texts: (n,) texts.
        scorers: the rankings.
        depth: hits of each.
        scores_at_once: maximum number of scores in memory.

    Returns:
        Each hit of any ranking once.
    """
    found: list[list[Hit]] = [[] for _ in queries]
    size = max(1, scores_at_once // max(1, len(texts)))
    vectors = [scorer.query_document_vectors(queries, texts, search=True) for scorer in scorers]
    for start in range(0, len(queries), size):
        ranked = [top_k(inner(asked[start : start + size], held), depth) for asked, held in vectors]
        for query in range(start, min(start + size, len(queries))):
            found[query] = _hits_of(query, [rows[query - start] for rows in ranked])
    rounds = list[Hit]()
    for place in range(0, max(map(len, found), default=0), TOGETHER):
        parts = [hits[place : place + TOGETHER] for hits in found]
        parts.sort(key=lambda part: -sum(hit.weight for hit in part))
        rounds += [hit for part in parts for hit in part]
    return rounds


def _hits_of(query: int, rankings: Sequence[NDArray[np.int64]]) -> list[Hit]:
    """The hits of one query, the most decisive first; among equals the better ranked."""
    gains = dict[int, list[float]]()
    for number, rows in enumerate(rankings):
        for rank, text in enumerate(rows.tolist(), 1):
            gains.setdefault(text, [0.0] * len(rankings))[number] = 1 / float(np.log2(1 + rank))
    least = {text: min(each) if len(each) > 1 else 0.0 for text, each in gains.items()}
    hits = [Hit(query, text, max(each) - least[text]) for text, each in gains.items()]
    return sorted(hits, key=lambda hit: (-round(hit.weight, 9), -sum(gains[hit.text]), hit.text))


class HitsToJudge:
    """The hits left to judge in a session.

    Args:
        judgements: the file of answers.
        queries: (q,) texts.
        texts: (n,) texts.
        names: (n,) ids of the texts; a text without one is not asked about.
        hits: in order; those that are judged already are skipped.
    """

    keys = tuple(KEYS)

    def __init__(
        self,
        judgements: Judgements,
        queries: Sequence[str],
        texts: Sequence[str],
        names: Sequence[str],
        hits: list[Hit],
    ) -> None:
        self.judgements, self._queries, self._texts, self._names = judgements, queries, texts, names
        self._todo = [hit for hit in hits if names[hit.text] and self._of(hit) is None]
        self._given: list[Hit] = []

    def __len__(self) -> int:
        return len(self.judgements)

    @property
    def next(self) -> tuple[str, str] | None:
        """The query and the text to judge; None if all are done."""
        return (self._queries[self._todo[0].query], self._texts[self._todo[0].text]) if self._todo else None

    def answer(self, key: str) -> None:
        """Write the answer to the next hit: one of `keys`."""
        hit = self._todo[0]
        self._judge(hit, KEYS[key])
        self._given.append(self._todo.pop(0))

    def undo(self) -> bool:
        """Take the last answer of the session back, and its hit is next again; returns whether there was one."""
        if not self._given:
            return False
        self._judge(self._given[-1], None)
        self._todo.insert(0, self._given.pop())
        return True

    def skip(self) -> None:
        """Skip the next hit in this session."""
        self._todo.pop(0)

    def _of(self, hit: Hit) -> bool | None:
        return self.judgements.of(self._queries[hit.query], self._names[hit.text])

    def _judge(self, hit: Hit, relevant: bool | None) -> None:
        self.judgements.judge(self._queries[hit.query], self._names[hit.text], relevant)
