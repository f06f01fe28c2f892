"""Which model finds most in an exam: weights of words chosen on its dev queries, models compared on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from selfsent.display import listed
from selfsent.errors import SettingsError
from selfsent.evaluation.exam import NAME, SPLITS
from selfsent.evaluation.lexical import Hybrid, LexicalScorer
from selfsent.evaluation.results import Result, Score, best_minus
from selfsent.evaluation.scorer import Scorer
from selfsent.evaluation.side_by_side import Comparison, side_by_side
from selfsent.evaluation.tasks.beir import read_task
from selfsent.evaluation.tasks.retrieval import RetrievalTask

WEIGHTS = (0.2, 0.5, 1.0, 1.5, 3.0)
"""Weights of words that are tried beside the cosine."""


@dataclass(frozen=True)
class Ranking:
    """A way to rank documents, with its scores on the two halves of an exam."""

    name: str
    dev: Score
    test: Score


def rankings_of(encoder: Scorer, dev: RetrievalTask, test: RetrievalTask) -> list[Ranking]:
    """The cosine of an encoder, and with words at the weight that the dev queries choose; BM25 as it is.

    Args:
        encoder: one with vectors, or lexical.
        dev: the queries to choose by.
        test: the queries to compare on.

    Raises:
        SettingsError: a cross-encoder, or a hybrid whose words would count twice.
    """
    if not (encoder.has_vectors or isinstance(encoder, LexicalScorer)):
        raise SettingsError(f"{encoder.name} has no vectors to search by: give the encoder alone")
    found = [Ranking(encoder.name, dev.score(encoder), test.score(encoder))]
    if encoder.has_vectors and (weight := chosen_weight(encoder, dev)):
        hybrid = Hybrid(encoder, weight)
        found.append(Ranking(f"{encoder.name}+words at {weight:g}", dev.score(hybrid), test.score(hybrid)))
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
    """Which ranking is best, and against which others that is not decided.

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


def compare_on_exam(
    folder: Path, encoders: Sequence[Callable[[], Scorer]], progress: Callable[[str], None] = lambda text: None
) -> Comparison:
    """Compare encoders, each by its cosine and with words, on the test queries of an exam; see `verdict`.

    Args:
        folder: written by `Exam.write`.
        encoders: functions that load one each, so that only one is in memory.
        progress: called with what is being scored.

    Raises:
        SettingsError: an encoder cannot rank documents; or fewer than two rankings.
        DataError: no exam, or one mended wrongly.
    """
    dev, test = (read_task(folder, NAME, split) for split in SPLITS)
    found = list[Ranking]()
    for load in encoders:
        encoder = load()
        progress(encoder.name)
        found += rankings_of(encoder, dev, test)
    best = max(found, key=lambda ranking: ranking.dev.score)
    found.sort(key=lambda ranking: (ranking is not best, -ranking.test.score))
    return side_by_side([Result(ranking.name, {NAME: ranking.test}) for ranking in found])
