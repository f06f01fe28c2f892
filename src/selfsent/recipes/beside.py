"""Our figures beside the papers': the difference, and whether the published number lies within our interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent.evaluation.datasets.published import DATASETS, METRICS, Record
from selfsent.evaluation.results import MARK
from selfsent.evaluation.suites import SUITES

if TYPE_CHECKING:
    from rich.table import Table

    from selfsent.recipes.seeds import Seeds

_TASKS = {theirs: task for names in DATASETS.values() for task, theirs in names.items()} | {"STSb (GLUE)": "stsb-dev"}
_PARTS = {
    "TwitterPara/TURL": ("twitterpara", "twitterurl"),
    "TwitterPara/PIT": ("twitterpara", "pit"),
    **{f"SciDocs/{name}": ("scidocs", name.lower()) for name in ("Cite", "CoCite", "CoRead", "CoView")},
}
_AVERAGES = {"Avg (7 STS)": SUITES["sts"].averaged, "USEB Avg": SUITES["useb"].tasks}
Scores = Mapping[str, Mapping[str, Any]]
"""By task, a score as `Score.to_json` gives it."""


@dataclass(frozen=True)
class Beside:
    """A published number, and ours if there is one.

    Args:
        record: the published one.
        ours: times 100, None where it was not scored.
        low: lower end of our 95 % interval, None where there is none.
        high: its upper end.
        leaked: whether ours is no test.
    """

    record: Record
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    leaked: bool = False

    @property
    def difference(self) -> float | None:
        """Ours less the published one."""
        return None if self.ours is None else self.ours - float(self.record["value"])

    @property
    def within(self) -> bool | None:
        """Whether the published one lies within our interval; None where there is none."""
        if self.low is None or self.high is None:
            return None
        return self.low <= float(self.record["value"]) <= self.high

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        own = {"ours": self.ours, "low": self.low, "high": self.high, "leaked": self.leaked}
        return {"published": self.record, **own, "difference": self.difference, "within": self.within}


def beside(published: Iterable[Record], scores: Scores) -> list[Beside]:
    """The published numbers that we have a figure for; where we have none at all, all of them.

    Args:
        published: of a recipe.
        scores: of its last model.
    """
    records = list(published)
    found = [_beside(record, records, scores) for record in records]
    return [each for each in found if each.ours is not None] or found


def _beside(record: Record, records: Iterable[Record], scores: Scores) -> Beside:
    if (tasks := _averaged(record, records)) is not None:
        return _average(record, tasks, scores)
    task, part = _PARTS.get(record["dataset"], (_task(record), None))
    score = scores.get(task)
    if score is None:
        return Beside(record)
    leaked = bool(score.get("leaked"))
    name = "pearson" if record["metric"] == "pearson" else part
    if name is None and record["metric"] in METRICS:
        return Beside(record, score["score"], score.get("low"), score.get("high"), leaked)
    if name is None or name not in score:
        return Beside(record)
    low, high = score.get("intervals", {}).get(name, (None, None))
    return Beside(record, float(score[name]), low, high, leaked)


def _task(record: Record) -> str:
    development = record["dataset"] == "STSb" and record.get("split") == "dev"
    return "stsb-dev" if development else _TASKS.get(record["dataset"], "")


def _averaged(record: Record, records: Iterable[Record]) -> tuple[str, ...] | None:
    """The tasks that a published average is over: those of its row; None for what is no average."""
    if record["dataset"] in _AVERAGES:
        return _AVERAGES[record["dataset"]]
    if record["dataset"] != "Avg" or record["metric"] not in (*METRICS, "pearson"):
        return None
    row = ("paper", "table", "method", "group")
    others = [other for other in records if all(other[key] == record[key] for key in row)]
    # An average of USEB is over four metrics, others are over one.
    alike = [other for other in others if record["metric"] in (other["metric"], METRICS[-1])]
    return tuple(dict.fromkeys(_TASKS[other["dataset"]] for other in alike if other["dataset"] in _TASKS))


def _average(record: Record, tasks: tuple[str, ...], scores: Scores) -> Beside:
    name = "pearson" if record["metric"] == "pearson" else "score"
    if not tasks or any(task not in scores or name not in scores[task] for task in tasks):
        return Beside(record)
    leaked = any(scores[task].get("leaked") for task in tasks)
    return Beside(record, float(np.mean([scores[task][name] for task in tasks])), leaked=leaked)


def over(seeds: Seeds, stage: str) -> dict[str, dict[str, Any]]:
    """The means over seeds of a stage's figures, with the 95 % interval of the mean by Student's t."""
    from scipy.stats import t

    count, found = len(seeds.figures), {}
    for name in seeds.names:
        if name.startswith(f"{stage}: "):
            mean, deviation = seeds.mean(name), seeds.deviation(name)
            score: dict[str, Any] = {"score": mean, "leaked": name in seeds.leaked}
            if deviation is not None:
                half = float(t.ppf(0.975, count - 1)) * deviation / count**0.5
                score |= {"low": mean - half, "high": mean + half}
            found[name.partition(": ")[2]] = score
    return found


def tables(rows: Sequence[Beside]) -> list[Table]:
    """The published numbers with ours: a table for each published row, a line for each of its numbers."""
    from itertools import groupby

    from rich.table import Column, Table
    from rich.text import Text

    def row_of(row: Beside) -> str:
        record = row.record
        return f"{record['paper']} table {record['table']}: {record['method']} ({record['group']})"

    shown = []
    marks = {True: "yes", False: "no", None: ""}
    for title, group in groupby(rows, row_of):
        headings = [Column(name, justify="right") for name in ("published", "ours", "95 % interval", "difference")]
        shown.append(Table("data", *headings, "within", title=Text(title), title_justify="left"))
        for row in group:
            ours = ["" if row.ours is None else f"{row.ours:.2f}{MARK if row.leaked else ''}"]
            ours += ["" if row.low is None else f"{row.low:.2f} to {row.high:.2f}"]
            ours += ["" if row.difference is None else f"{row.difference:+.2f}"]
            metric = f"{row.record['dataset']} ({row.record['metric']})"
            shown[-1].add_row(metric, f"{row.record['value']:g}", *ours, marks[row.within])
    if any(row.within is not None for row in rows):
        shown[-1].caption = "within: whether the published number lies within our interval"
        shown[-1].caption_justify = "left"
    return shown
