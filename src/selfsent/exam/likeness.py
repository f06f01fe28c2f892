"""An exam weighted by how real queries look: drawn queries that resemble them count more.

Queries drawn from texts are longer or shorter than people's, more often sentences, and share other amounts of words
with their answers. Each drawn query gets a weight by which the exam has the real queries' shares of lengths, kinds and
words in common: raking, or iterative proportional fitting (Deming and Stephan, 1940, doi:10.1214/aoms/1177731829).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.lexical import Analyzer, language_of
from selfsent.lexical.analyzer import words_of

MIN_QUERIES = 20
"""Real queries that a weighting needs."""
_LENGTHS, _SHARES = (3, 8), (1 / 3, 2 / 3)
"""Upper ends, in words and as shares, of all classes but the last."""
_ROUNDS, _CLOSE = 200, 1e-9
Look = tuple[str, str, str]
"""The classes of a query: its length, its kind, and the words in common with its answer."""


def look_of(query: str, answers: Sequence[str], analyzer: Analyzer) -> Look:
    """How a query looks, in three coarse classes.

    Args:
        query: its text.
        answers: texts that are right; the one with the most words in common counts.
        analyzer: of their language. Without stop words every query is one of keywords, or a question.

    Examples:
        >>> look_of("why is the printer dead?", ["The printer is dead."], Analyzer("english"))
        ('4 to 8 words', 'question', 'more than 2/3 in common')
    """
    words, terms = words_of(query), set(analyzer(query))
    count = len(query.split())
    length = "1 to 3 words" if count <= _LENGTHS[0] else "4 to 8 words" if count <= _LENGTHS[1] else "9 words or more"
    asks = query.rstrip().endswith(("?", "？", "؟"))
    kind = "question" if asks else "keywords" if len(analyzer(query)) == len(words) else "sentence"
    common = max((len(terms & {*analyzer(answer)}) for answer in answers), default=0) / max(1, len(terms))
    share = "at most 1/3" if common <= _SHARES[0] else "at most 2/3" if common <= _SHARES[1] else "more than 2/3"
    return length, kind, f"{share} in common"


def looks_of(task: RetrievalTask, analyzer: Analyzer) -> list[Look]:
    """How each query of a task looks; answers that are not among the documents are left out."""
    held = task.documents
    right = ([held[row] for row, grade in grades.items() if grade > 0 and row < len(held)] for grades in task.grades)
    return [look_of(query, answers, analyzer) for query, answers in zip(task.queries, right, strict=True)]


def weights_like(drawn: Sequence[Look], real: Sequence[Look]) -> NDArray[np.float64]:
    """Weights of drawn queries, (q,), of mean 1, with which they have the real ones' share of each class.

    The real shares are drawn towards the drawn ones as by one query more for each class that there is, so that few real
    queries forbid nothing. Real queries that no drawn query looks like cannot be made up for, and are left out.

    Args:
        drawn: of the exam's queries.
        real: of people's.

    Examples:
        >>> short, long = ("short", "", ""), ("long", "", "")
        >>> weights_like([short, long, long, long], [short] * 8).round(2).tolist()
        [3.4, 0.2, 0.2, 0.2]
    """
    count, columns = len(drawn), []
    for place in range(3):
        names = [look[place] for look in drawn]
        own, wanted = Counter(names), Counter(look[place] for look in real)
        known = sum(wanted[name] for name in own)
        share = {name: (wanted[name] + len(own) * own[name] / count) / (known + len(own)) for name in own}
        columns.append([(np.array([each == name for each in names]), share[name]) for name in own])
    weights = np.ones(count)
    for _ in range(_ROUNDS):
        before = weights.copy()
        for column in columns:
            for members, wished in column:
                weights[members] *= wished * count / weights[members].sum()
        if np.abs(weights - before).max() < _CLOSE:
            break
    return weights


def effective_size(weights: NDArray[np.float64]) -> float:
    """How many queries of equal weight would have a mean as sure: (Σw)² / Σw² (Kish, 1965).

    Examples:
        >>> effective_size(np.array([1.0, 1.0, 0.0, 0.0]))
        2.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum())


@dataclass(frozen=True)
class Weighted:
    """An exam's task, weighted.

    Args:
        task: its queries count by their weights.
        real: the number of real queries.
        size: of the exam, as `effective_size` has it.
        unlike: real queries of a class that no drawn one has.
    """

    task: RetrievalTask
    real: int
    size: float
    unlike: int

    @property
    def line(self) -> str:
        """The weighting in a sentence."""
        count = len(self.task.queries)
        fact = f"weighted by how your {self.real:,} queries look (length, kind, words in common)"
        rest = f"; queries that look like none of the exam's: {self.unlike:,}" if self.unlike else ""
        return f"{fact}, the exam's {count:,} tell as much as {self.size:,.0f} of equal weight{rest}"


def weighted_like(exam: RetrievalTask, real: RetrievalTask) -> Weighted | None:
    """An exam weighted by how real queries look; None of fewer than `MIN_QUERIES`.

    Args:
        exam: queries drawn from texts.
        real: people's queries, judged.
    """
    if len(real.queries) < MIN_QUERIES:
        return None
    analyzer = Analyzer(language_of(exam.documents))
    drawn, wanted = looks_of(exam, analyzer), looks_of(real, analyzer)
    weights = weights_like(drawn, wanted)
    classes = [{look[place] for look in drawn} for place in range(3)]
    unlike = sum(any(name not in own for name, own in zip(look, classes, strict=True)) for look in wanted)
    task = exam.weighted(weights, f"{exam.name}-like-{real.name}")
    return Weighted(task, len(wanted), effective_size(weights), unlike)
