"""Comparison of models on an exam: weights of words chosen on its dev queries, models compared on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from selfsent.display import counted, listed, span, table_of
from selfsent.errors import SettingsError
from selfsent.evaluation.results import Result, Score, best_minus, has_read
from selfsent.evaluation.side_by_side import Comparison, side_by_side
from selfsent.evaluation.tasks.beir import read_task
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.doubts import doubts
from selfsent.exam.exam import NAME, SPLITS
from selfsent.progress import SILENT, Progress
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.scorer import PairScorer, Scorer

WEIGHTS = (0.2, 0.5, 1.0, 1.5, 3.0)
"""Weights of words that are tried beside the cosine."""


MIN_QUERIES = 30
"""Queries about texts that a model has not read, in either half, that its score needs."""


@dataclass(frozen=True)
class Ranking:
    """A way to rank documents, with its scores on the two halves of an exam.

    Args:
        name: of the encoder, with the weight of words if there is one.
        dev: the score to choose by.
        test: the score to compare.
        weight: of words beside the cosine; None for the encoder as it is.
    """

    name: str
    dev: Score
    test: Score
    weight: float | None = None

    def of(self, scorer: Scorer) -> Scorer:
        """The scorer of this ranking, made of its encoder."""
        return scorer if self.weight is None else Hybrid(scorer, self.weight)


@dataclass(frozen=True)
class Apart:
    """A model that has read answers of an exam, and so takes no part in the verdict.

    Args:
        name: of the model.
        read: how many of the answers it has read.
        asked: how many there are.
        ranking: its best ranking on the queries about other texts; None where these are too few.
        over: the score of the verdict's ranking on the same test queries; None where there is none.
        best: the name of that ranking.
    """

    name: str
    read: int
    asked: int
    ranking: Ranking | None = None
    over: Score | None = None
    best: str = ""

    @property
    def line(self) -> str:
        """The number of answers read, and the basis of the score, in a sentence."""
        fact = f"{self.name} has read {self.read:,} of the {self.asked:,} texts asked about: no part in the verdict"
        if self.ranking is None:
            return f"{fact}, and too few other queries for a score."
        rest = f"{fact}. Its score is of the {counted(self.ranking.test.n, 'query', 'queries')} about others"
        return f"{rest}, where {self.best} has {self.over.score:.2f}." if self.over else f"{rest}."

    @property
    def row(self) -> list[str]:
        """Row of the table: name, score, interval, and the difference to the verdict's ranking."""
        if self.ranking is None:
            return [self.name]
        test = self.ranking.test
        less = test.minus(self.over) if self.over else None
        return [
            self.ranking.name,
            f"{test.score:.2f}",
            span(test.low, test.high),
            *([less.shown, f"{less.p:.3f}"] if less else []),
        ]

    def to_json(self) -> dict[str, Any]:
        """The model and its score as JSON data."""
        plain: dict[str, Any] = {"model": self.name, "read": self.read, "asked": self.asked}
        return plain | ({"ranking": self.ranking.name, "score": self.ranking.test.to_json()} if self.ranking else {})


@dataclass(frozen=True)
class Examined:
    """Models compared on an exam.

    Args:
        comparison: of the rankings of models that have read no answer, on the test queries; the first is the best on
            the dev queries. None if there is no such model.
        apart: the other models.
        doubts: reasons not to believe the verdict, in sentences.
    """

    comparison: Comparison | None
    apart: tuple[Apart, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The best ranking, the others from which it cannot be told, and reasons to doubt that."""
        if self.comparison is None:
            advice = "compare others too, such as bundled or bm25, or draw an exam with `trained`"
            return f"No verdict: every model has read what is asked about. To have one, {advice}."
        first, *others = self.comparison.results
        if not others:
            return f"{first.model} alone has not read what is asked about: there is nothing to compare it with."
        return " ".join((verdict(self.comparison), *self.doubts))

    def table(self) -> Table:
        """The rankings, the best first, and below them the models that have read answers."""
        rows = list[list[str]]()
        below, title = list[str](), ""
        if self.comparison is not None:
            first, *others = self.comparison.results
            title = first.scores[NAME].title
            found = zip(others, self.comparison.differences[NAME], strict=True)
            pairs = [(first, list[str]()), *((other, [less.shown, f"{less.p:.3f}"]) for other, less in found)]
            pairs.sort(key=lambda each: -each[0].scores[NAME].score)
            for result, less in pairs:
                ends = span(result.scores[NAME].low, result.scores[NAME].high)
                rows.append([result.model, result.shown(NAME), ends, *less])
            below = [f"differences are to {first.model}, on the same queries"] if others or self.apart else []
        end = len(rows) - 1
        rows += [each.row for each in self.apart]
        below += [each.line for each in self.apart]
        headings = ("model", "score", "95 % interval", "difference [95 %]", "p")
        styles = {self.comparison.results[0].model: "bold"} if self.comparison else {}
        caption = "\n".join(below)
        return table_of(headings, rows, title=title, caption=caption, styles=styles, sections=(end,))

    def to_json(self) -> dict[str, Any]:
        """The verdict, the comparison and the models apart as JSON data."""
        plain = {} if self.comparison is None else self.comparison.to_json()
        others = {"apart": [one.to_json() for one in self.apart]} if self.apart else {}
        return {"verdict": self.verdict, **plain, **others}


def rankings_of(encoder: Scorer, dev: RetrievalTask, test: RetrievalTask) -> list[Ranking]:
    """The cosine of an encoder, and with words at the weight that the dev queries choose; others as they rank.

    Args:
        encoder: one with vectors, lexical, hybrid, or with a reranker.
        dev: the queries to choose by.
        test: the queries to compare on.

    Raises:
        SettingsError: a cross-encoder.
    """
    if isinstance(encoder, PairScorer):
        raise SettingsError(f"{encoder.name} has no vectors to search by: give FIRST+rerank:{encoder.name}")
    found = [Ranking(encoder.name, dev.score(encoder), test.score(encoder))]
    if encoder.has_vectors and (weight := chosen_weight(encoder, dev)):
        hybrid = Hybrid(encoder, weight)
        found.append(Ranking(f"{encoder.name}+words at {weight:g}", dev.score(hybrid), test.score(hybrid), weight))
    return found


def chosen_weight(encoder: Scorer, task: RetrievalTask) -> float:
    """The weight of words that is best in an exam; the encoder's own, unless another one is ahead by more than chance.

    Args:
        encoder: one with vectors.
        task: of an `Exam`.
    """
    own = encoder.lexical_weight
    scores = {weight: task.score(Hybrid(encoder, weight)) for weight in sorted({0.0, own, *WEIGHTS})}
    best = max(scores, key=lambda weight: scores[weight].score)
    return best if best_minus(list(scores.values()), scores[own]).low > 0 else own


def verdict(comparison: Comparison) -> str:
    """The best ranking, and the others from which it cannot be told.

    Args:
        comparison: of rankings on the test queries; the first is the best on the dev queries.
    """
    first, *others = comparison.results
    behind, open_, ahead = list[str](), list[str](), list[str]()
    for other, less in zip(others, comparison.differences[NAME], strict=True):
        (behind if less.high < 0 else ahead if less.low > 0 else open_).append(other.model)
    parts = [f"On half of the queries {first.model} was best."]
    parts += [f"On the other half it is ahead of {listed(behind)}."] if behind else []
    if ahead:
        parts.append(f"On the other half it is behind {listed(ahead)}: take that.")
    elif open_:
        parts.append(f"Undecided between it and {listed(open_)}: take the cheaper one, or ask more queries.")
    return " ".join(parts)


def compare_on_exam(folder: Path, encoders: Sequence[Callable[[], Scorer]], progress: Progress = SILENT) -> Examined:
    """Compare encoders, each by its cosine and with words, on the test queries of an exam.

    A model that has read answers, by the record that it carries, is scored apart, on the queries about other texts.

    Args:
        folder: written by `Exam.write`.
        encoders: functions that load one each, so that only one is in memory.
        progress: receives the name of each encoder, and how many of its outputs were not finite.

    Raises:
        SettingsError: an encoder cannot rank documents; or fewer than two rankings.
        DataError: no exam, or one mended wrongly.
    """
    dev, test = (read_task(folder, NAME, split) for split in SPLITS)
    answers = len({*dev.answers, *test.answers})
    found, apart = list[tuple[Ranking, Callable[[], Scorer]]](), list[tuple[Apart, frozenset[int]]]()
    for load in encoders:
        encoder = load()
        progress.notice(encoder.name)
        read = dev.read_by(encoder.texts_read) | test.read_by(encoder.texts_read)
        if not has_read(len(read), answers):
            found += [(ranking, load) for ranking in rankings_of(encoder, dev, test)]
            for line in encoder.warnings:
                progress.notice(line)
            continue
        halves, ranking = (dev.without(read), test.without(read)), None
        if all(half is not None and len(half.queries) >= MIN_QUERIES for half in halves):
            ranking = max(rankings_of(encoder, *filter(None, halves)), key=lambda each: each.dev.score)
        apart.append((Apart(encoder.name, len(read), answers, ranking), read))
    if not found:
        return Examined(None, tuple(each for each, _ in apart))
    best, load = max(found, key=lambda each: each[0].dev.score)
    if any(each.ranking for each, _ in apart):
        ranker = best.of(load())
        apart = [(_beside(each, best.name, ranker, test, read), read) for each, read in apart]
    rankings = sorted((each for each, _ in found), key=lambda ranking: (ranking is not best, -ranking.test.score))
    results = [Result(ranking.name, {NAME: ranking.test}) for ranking in rankings]
    alone = Comparison((results[0],), (results[0],), {NAME: ()})
    comparison = alone if apart and len(results) == 1 else side_by_side(results)
    return Examined(
        comparison, tuple(each for each, _ in apart), doubts(dev.documents, max(each.test.score for each, _ in found))
    )


def _beside(apart: Apart, best: str, ranker: Scorer, test: RetrievalTask, read: frozenset[int]) -> Apart:
    """A model apart with the score of the best ranking on the same queries."""
    rest = test.without(read) if apart.ranking else None
    return apart if rest is None else replace(apart, over=rest.score(ranker), best=best)
