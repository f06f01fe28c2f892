"""Which model finds most in an exam: weights of words chosen on its dev queries, models compared on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.errors import SettingsError
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.exam import NAME, SPLITS
from selfsent.evaluation.lexical import Hybrid, LexicalEncoder
from selfsent.evaluation.results import Result, Score
from selfsent.evaluation.side_by_side import Comparison, side_by_side
from selfsent.evaluation.stats.resampling import paired_best
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


def rankings_of(encoder: Encoder, dev: RetrievalTask, test: RetrievalTask) -> list[Ranking]:
    """The cosine of an encoder, and with words at the weight that the dev queries choose; BM25 as it is.

    Args:
        encoder: one with vectors, or lexical.
        dev: the queries to choose by.
        test: the queries to compare on.

    Raises:
        SettingsError: a cross-encoder, or a hybrid whose words would count twice.
    """
    if not (encoder.has_vectors or isinstance(encoder, LexicalEncoder)):
        raise SettingsError(f"{encoder.name} has no vectors to search by: give the encoder alone")
    found = [Ranking(encoder.name, dev.score(encoder), test.score(encoder))]
    if encoder.has_vectors and (weight := chosen_weight(encoder, dev)):
        hybrid = Hybrid(encoder, weight)
        found.append(Ranking(f"{encoder.name}+words at {weight:g}", dev.score(hybrid), test.score(hybrid)))
    return found


def chosen_weight(encoder: Encoder, task: RetrievalTask) -> float:
    """The weight of words that is best in an exam; the encoder's own, unless another one is ahead by more than chance.

    Args:
        encoder: one with vectors.
        task: of an `Exam`.
    """
    own = encoder.lexical_weight
    weights = sorted({0.0, own, *WEIGHTS})
    scores = [task.score(Hybrid(encoder, weight)) for weight in weights]
    at = scores[weights.index(own)]
    means, samples = np.array([score.score for score in scores]), np.stack([score.samples for score in scores])
    return weights[int(means.argmax())] if paired_best(means, at.score, samples, at.samples).low > 0 else own


@dataclass(frozen=True)
class Verdict:
    """Rankings compared on the test queries; the first is the best on the dev queries."""

    comparison: Comparison

    @property
    def line(self) -> str:
        """Which is best, and against which others that is not decided."""
        first, *others = self.comparison.results
        differences = self.comparison.differences[NAME]
        behind, open_, ahead = list[str](), list[str](), list[str]()
        for other, less in zip(others, differences, strict=True):
            (behind if less.high < 0 else ahead if less.low > 0 else open_).append(other.model)
        parts = [f"On half of the queries {first.model} was best."]
        parts += [f"On the other half it is ahead of {_listed(behind)}."] if behind else []
        if ahead:
            parts.append(f"On the other half it is behind {_listed(ahead)}: take that.")
        elif open_:
            parts.append(f"Undecided between it and {_listed(open_)}: take the cheaper one, or ask more queries.")
        return " ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The comparison as JSON data, with the verdict."""
        return {"verdict": self.line, **self.comparison.to_json()}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


def compare_on_exam(
    folder: Path, encoders: Sequence[Callable[[], Encoder]], progress: Callable[[str], None] = lambda text: None
) -> Verdict:
    """Compare encoders, each by its cosine and with words, on an exam.

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
    return Verdict(side_by_side([Result(ranking.name, {NAME: ranking.test}) for ranking in found]))
