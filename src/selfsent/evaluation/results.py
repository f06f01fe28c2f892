"""The result of an evaluation: scores with intervals and signatures, and their output formats."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from selfsent.display import literal, markdown, span, table_of, text_of
from selfsent.stats.resampling import (
    Difference,
    Floats,
    Statistic,
    bootstrap,
    interval,
    paired,
    paired_best,
    point,
)

AVERAGE = "average"
SCALE = 100.0
"""Scores are printed times 100, as in the papers."""
MARK, MEANING = "†", "† trained on STSb, which holds pairs of this set: no test"
READ, READ_MEANING = "§", "§ {} has read {:,} of the {:,} texts asked about: no part in the comparison"
BY_CHANCE = 0.01
"""Share of texts that may look read: short ones recur, and hashes of others agree."""
AIMED, AIMED_MEANING = "‡", "‡ the model was trained to do just this: believe the other scores first"


@dataclass(frozen=True)
class Score:
    """One number of one task, times 100, with its 95 % interval.

    Args:
        name: the task, for example `stsb`.
        score: the main metric.
        low: lower end of the interval.
        high: upper end of the interval.
        n: number of items.
        signature: of the measurement, for example `sts12|spearman|cos|all|n:3108|data:1a2b3c|pool:cls|v:1`.
        metrics: other metrics of the same task, times 100.
        details: other facts: label counts, the layer, the classifier's settings.
        warnings: one line each.
        samples: (resamples,) bootstrap samples of the score, for paired comparisons; not saved.
        intervals: of some of the other metrics.
        title: heading of the number, if not the name of the task.
    """

    name: str
    score: float
    low: float
    high: float
    n: int
    signature: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    samples: Floats = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    title: str = ""

    def to_json(self) -> dict[str, Any]:
        """The score as JSON data."""
        plain: dict[str, Any] = {"score": self.score, "low": self.low, "high": self.high, "n": self.n}
        plain |= {"signature": self.signature, **self.metrics, **self.details}
        plain |= {"title": self.title} if self.title else {}
        plain |= {"intervals": {key: list(ends) for key, ends in self.intervals.items()}} if self.intervals else {}
        return plain | ({"warnings": list(self.warnings)} if self.warnings else {})

    @property
    def has_read(self) -> tuple[int, int] | None:
        """How many of the texts asked about the model has read, and of how many; None if none but by chance."""
        return (found[0], found[1]) if (found := self.details.get("has_read")) else None

    def shown(self, metric: str) -> str:
        """Another metric as printed:  `71.20`, or `71.20 (70.11 to 72.30)`."""
        low, high = self.intervals.get(metric, (None, None))
        return f"{self.metrics[metric]:.2f}" + ("" if low is None or high is None else f" ({span(low, high)})")

    def minus(self, other: Score, looks: int = 1) -> Difference:
        """The paired difference to another system on the same task: difference, 95 % interval and p-value.

        `looks` corrects for stopping early, see `selfsent.stats.resampling.interval`.

        Raises:
            ValueError: different items.
        """
        if self.n != other.n:
            raise ValueError(f"{self.name} over {self.n} items cannot be paired with {other.name} over {other.n}")
        return paired(self.score, other.score, self.samples, other.samples, looks)


def has_read(read: int, asked: int) -> dict[str, Any]:
    """The details of a score whose model has read so many of the texts asked about; empty where that may be chance."""
    return {"has_read": [read, asked]} if read > BY_CHANCE * asked else {}


def best_minus(scores: Sequence[Score], other: Score) -> Difference:
    """The best of several systems minus another one on the same task, corrected for picking it there.

    See `paired_best`.
    """
    samples = np.stack([score.samples for score in scores])
    return paired_best(np.array([score.score for score in scores]), other.score, samples, other.samples)


def measure(
    name: str,
    statistic: Statistic,
    n: int,
    *,
    signature: str,
    metrics: Mapping[str, Statistic] | None = None,
    groups: NDArray[np.int64] | None = None,
    strata: Sequence[NDArray[np.int64]] | None = None,
    intervals: Mapping[str, tuple[float, float]] | None = None,
    details: Mapping[str, Any] | None = None,
    warnings: tuple[str, ...] = (),
    title: str = "",
) -> Score:
    """Score a statistic over n items, with its bootstrap interval, and secondary statistics.

    Args:
        name: the task; it also seeds the resamples, so that two systems on one task are paired.
        statistic: the main metric, as weights (b, n) -> values (b,).
        n: number of items.
        signature: see `signature`.
        metrics: other metrics over the same items.
        groups: (n,) units of resampling, such as documents.
        strata: the items of each part, if the score is a mean over parts.
        intervals: of other metrics, if any.
        details: other facts to keep.
        warnings: one line each.
        title: heading of the number, if not the name.
    """
    samples = SCALE * bootstrap(statistic, n, groups=groups, strata=strata, seed=_seed(name))
    secondary = {key: SCALE * point(other, n) for key, other in (metrics or {}).items()}
    low, high = interval(samples)
    about = secondary, details or {}, warnings, samples, intervals or {}, title
    return Score(name, SCALE * point(statistic, n), low, high, n, signature, *about)


def bounds(name: str, statistic: Statistic, n: int, strata: Sequence[NDArray[np.int64]]) -> tuple[float, float]:
    """The interval, times 100, of a mean over parts: (low, high).

    Args:
        name: the task.
        statistic: as weights (b, n) -> values (b,).
        n: number of items.
        strata: the items of each part.
    """
    return interval(SCALE * bootstrap(statistic, n, strata=strata, seed=_seed(name)))


def _seed(name: str) -> int:
    return zlib.crc32(name.encode(errors="surrogateescape"))  # a file's name may be invalid UTF-8


def signature(*parts: str, **fields: object) -> str:
    """A line that is equal for comparable numbers: `sts12|spearman|cos|all|n:3108|data:1a2b3c|v:1`.

    Separators in the name of a user's file become `_`.
    """
    plain = [*parts, *(f"{key}:{value}" for key, value in fields.items())]
    return "|".join(re.sub(r"[|`\x00-\x1f]", "_", part) for part in plain)


@dataclass(frozen=True, repr=False)
class Result:
    """The scores of one model.

    Args:
        model: its name.
        scores: by task.
        suite: the suite they belong to, or None.
        averaged: the tasks in the suite's average; empty if there is none.
        absent: reasons of tasks that could not be scored.
    """

    model: str
    scores: Mapping[str, Score]
    suite: str | None = None
    averaged: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def average(self) -> float | None:
        """The mean of the available scores of the suite, or None; see `missing` for the others."""
        return self.average_score.score if self.average_score else None

    @cached_property
    def average_score(self) -> Score | None:
        """The mean of the available scores of the suite; None without scores, its interval NaN without samples."""
        scores = [self.scores[name] for name in self.average_over]
        if not scores:
            return None
        whole = all(len(each.samples) and each.samples.shape == scores[0].samples.shape for each in scores)
        samples = np.mean([each.samples for each in scores], axis=0) if whole else np.zeros(0)
        low, high = interval(samples) if whole else (float("nan"), float("nan"))
        return Score(AVERAGE, float(np.mean([each.score for each in scores])), low, high, 0, AVERAGE, samples=samples)

    @property
    def missing(self) -> tuple[str, ...]:
        """The tasks of the average without a score."""
        return tuple(name for name in self.averaged if name not in self.scores)

    @property
    def average_over(self) -> tuple[str, ...]:
        """The tasks the average is over."""
        return tuple(name for name in self.averaged if name in self.scores)

    @property
    def average_label(self) -> str:
        """Heading of the average: `average`, or `average of 5 of 7`."""
        total = len(self.averaged)
        return f"average of {total - len(self.missing)} of {total}" if self.missing else AVERAGE

    def score_of(self, task: str) -> Score | None:
        """The score of a task, or the average; None if there is none."""
        return self.average_score if task == AVERAGE else self.scores.get(task)

    def shown(self, task: str) -> str:
        """The score of a task, or the average, as printed: `72.03`, with marks."""
        if (score := self.score_of(task)) is None:
            return ""
        marks = MARK * (task in self.leaked) + AIMED * (task in self.aimed) + READ * bool(score.has_read)
        return f"{score.score:.2f}{marks}"

    @property
    def leaked(self) -> tuple[str, ...]:
        """The contaminated tasks: the model was trained on their pairs. An average over them is contaminated, too."""
        tasks = tuple(name for name, score in self.scores.items() if score.details.get("leaked"))
        return (*tasks, AVERAGE) if set(tasks) & set(self.average_over) else tasks

    @property
    def aimed(self) -> tuple[str, ...]:
        """The tasks with the model's training objective."""
        return tuple(name for name, score in self.scores.items() if score.details.get("aimed"))

    @property
    def meanings(self) -> list[str]:
        """Explanations of the marks of this result, a line each."""
        lines = [MEANING] * bool(self.leaked) + [AIMED_MEANING] * bool(self.aimed)
        read = dict.fromkeys(score.has_read for score in self.scores.values() if score.has_read)
        return lines + [READ_MEANING.format(self.model, *each) for each in read]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all scores, each once."""
        return tuple(dict.fromkeys(line for score in self.scores.values() for line in score.warnings))

    def to_json(self) -> dict[str, Any]:
        """The result as JSON data: model, scores, average and absent tasks."""
        plain: dict[str, Any] = {"model": self.model}
        plain |= {"suite": self.suite} if self.suite else {}
        plain["scores"] = {name: score.to_json() for name, score in self.scores.items()}
        if self.averaged:
            plain |= {"average": self.average, "average_over": list(self.average_over)}
            plain |= {"average_complete": not self.missing}
            if (mean := self.average_score) and len(mean.samples):
                plain |= {"average_low": mean.low, "average_high": mean.high}
            plain |= {"average_leaked": True} if AVERAGE in self.leaked else {}
        return plain | ({"absent": dict(self.absent)} if self.absent else {})

    def to_markdown(self) -> str:
        """The result as a Markdown table, with signatures and remarks."""
        lines = [*(f"`{score.signature}`" for score in self.scores.values()), *map(literal, self._remarks)]
        return markdown(self.table()) + "\n" + "".join(f"* {line}\n" for line in lines)

    _repr_markdown_ = to_markdown

    def table(self) -> Table:
        """The result as a table for the terminal."""
        rows = []
        for name, score in self.scores.items():
            metrics = "  ".join(f"{key} {score.shown(key)}" for key in score.metrics)
            rows.append([score.title or name, self.shown(name), span(score.low, score.high), f"{score.n:,}", metrics])
        rows += [[name, "absent"] for name in self.absent]
        if mean := self.average_score:
            ends = span(mean.low, mean.high) if len(mean.samples) else ""
            rows.append([self.average_label, self.shown(AVERAGE), ends])
        headings = ("task", "score", "95 % interval", "n", "beside it")
        return table_of(headings, rows, left=(0, 4), title=self.model, caption="\n".join(self.meanings))

    def __str__(self) -> str:
        """The table as text."""
        return text_of(self.table(), [*(score.signature for score in self.scores.values()), *self._remarks])

    __repr__ = __str__

    @property
    def _remarks(self) -> list[str]:
        return [*(f"{name} is absent: {reason}" for name, reason in self.absent.items()), *self.warnings]
