"""Our figures beside the papers': the difference, and whether the published number lies within our interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.evaluation.datasets.published import AGGREGATION, DATASETS, DEFECTS, METRICS, Record
from selfsent.evaluation.results import MARK, MEANING
from selfsent.evaluation.suites import SUITES
from selfsent.files import read_json
from selfsent.recipes.parts import DIFFERS

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
"""By task, a score as `Score.to_json` gives it; over seeds with the values of each metric under `seeds`."""
SCORES = "evaluation.json"
"""The file with the scores of a stage, or of folds or an encoder."""
STAND_INS = "stand_ins"
"""Under which a run keeps what took the place of the paper's data."""


@dataclass(frozen=True)
class Beside:
    """A published number, and ours if there is one.

    Args:
        record: the published one.
        ours: times 100, None where it was not scored.
        low: lower end of our 95 % interval, None where there is none.
        high: its upper end.
        leaked: whether ours is no test.
        notes: what is known to be wrong with the published one, and how ours differs from it.
        stand_ins: what took the place of the paper's data for ours.
    """

    record: Record
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    leaked: bool = False
    notes: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()

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
        known = {"notes": list(self.notes), "stand_ins": list(self.stand_ins)}
        published = {key: value for key, value in self.record.items() if key != DIFFERS}
        return {"published": published, **own, "difference": self.difference, "within": self.within, **known}


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
    figures = _figures(record, records, scores)
    notes = tuple(_notes(record, records, figures))
    if not figures or any(name not in scores[task] for task, name in figures):
        return Beside(record, notes=notes)
    taken = [scores[task] for task, _ in figures]
    about: dict[str, Any] = {
        "leaked": any(score.get("leaked") for score in taken),
        "notes": notes,
        "stand_ins": tuple(dict.fromkeys(line for score in taken for line in score.get("stand_ins", ()))),
    }
    ours = np.array([float(score[name]) for score, (_, name) in zip(taken, figures, strict=True)])
    ends = [_ends(score, name) for score, (_, name) in zip(taken, figures, strict=True)]
    if all(score.get("seeds") for score in taken):  # an average has the interval of the averages of the seeds
        values = [score["seeds"][name] for score, (_, name) in zip(taken, figures, strict=True)]
        # Tasks of other runs may have lost a seed: then there are no averages of seeds.
        ends = [_of_mean(np.mean(values, axis=0)) if len(set(map(len, values))) == 1 else (None, None)]
    mean = float(ours.mean())
    if any(low is None or high is None for low, high in ends):
        return Beside(record, mean, **about)
    if len(ends) == 1:
        return Beside(record, mean, *ends[0], **about)
    # Items are drawn for each task by itself, so the squares of the spreads add up.
    low, high = (float(np.linalg.norm(ours - [pair[side] for pair in ends])) / len(ours) for side in (0, 1))
    return Beside(record, mean, mean - low, mean + high, **about)


def _figures(record: Record, records: Iterable[Record], scores: Scores) -> list[tuple[str, str]]:
    """What of our scores a published number is compared with, each as task and metric; an average with several.

    Nothing where a task of them was not scored.
    """
    if (averaged := _averaged(record, records)) is not None:
        found = [(task, _metric(one, task, scores)) for task, one in averaged.items()]
    else:
        task, part = _PARTS.get(record["dataset"], (_task(record), None))
        found = [(task, part or _metric(record, task, scores))]
    return found if all(task in scores and name for task, name in found) else []


def _metric(record: Record, task: str, scores: Scores) -> str:
    """The metric of our score that a number is compared with; empty where there is none."""
    if record["metric"] == "pearson":
        return "pearson"
    if AGGREGATION in _defects(record) and "wmean" in scores.get(task, ()):
        return "wmean"
    return "score" if record["metric"] in METRICS else ""


def _ends(score: Mapping[str, Any], name: str) -> tuple[float | None, float | None]:
    if name == "score":
        return score.get("low"), score.get("high")
    low, high = score.get("intervals", {}).get(name, (None, None))
    return low, high


def _task(record: Record) -> str:
    development = record["dataset"] == "STSb" and record.get("split") == "dev"
    return "stsb-dev" if development else _TASKS.get(record["dataset"], "")


def _averaged(record: Record, records: Iterable[Record]) -> dict[str, Record] | None:
    """The tasks that a published average is over, those of its row, each with its number; None for no average."""
    if record["dataset"] in _AVERAGES:
        return dict.fromkeys(_AVERAGES[record["dataset"]] or (), record)
    if record["dataset"] != "Avg" or record["metric"] not in (*METRICS, "pearson"):
        return None
    row = ("paper", "table", "method", "group")
    others = [other for other in records if all(other[key] == record[key] for key in row)]
    # An average of USEB is over four metrics, others are over one.
    alike = [other for other in others if record["metric"] in (other["metric"], METRICS[-1])]
    return {_TASKS[other["dataset"]]: other for other in alike if other["dataset"] in _TASKS}


def _defects(record: Record) -> list[str]:
    return [text for wrong, text in DEFECTS if wrong(record)]


def _notes(record: Record, records: Iterable[Record], figures: Iterable[tuple[str, str]]) -> list[str]:
    """What is known to be wrong with a published number, and how ours differs."""
    parts = [record, *(_averaged(record, records) or {}).values()]
    found = [record.get("note"), *(text for text in _defects(record) if text != AGGREGATION)]
    if any(name == "wmean" for _, name in figures):
        found.append("STS12-16 by weighted means over sub-sets (wmean), ours too")
    elif any(AGGREGATION in _defects(part) for part in parts if part["dataset"] != "STSb"):
        found.append(AGGREGATION)
    return [note for note in (*found, record.get(DIFFERS)) if note]


def over(seeds: Seeds, stage: str) -> dict[str, dict[str, Any]]:
    """The means over seeds of all metrics of a stage's scores, with the 95 % interval of the mean by Student's t.

    Args:
        seeds: of a recipe.
        stage: the stage, or what else the figures at the end are of.
    """
    places = [seeds.directory / "seeds" / str(seed) for seed in seeds.figures]
    stand_ins = [line for place in places for line in read_json(place / "run.json").get(STAND_INS, ())]
    runs = [scored(place, stage) for place in places]
    found = {}
    for task in [task for task in (runs[0] if runs else ()) if all(task in run for run in runs)]:
        scores = [run[task] for run in runs]
        names = [name for name, value in scores[0].items() if type(value) is float]
        values = {name: [score[name] for score in scores] for name in names if all(name in score for score in scores)}
        ends = {name: _of_mean(np.array(each)) for name, each in values.items()}
        score: dict[str, Any] = {name: float(np.mean(each)) for name, each in values.items()}
        score |= {"low": ends["score"][0], "high": ends["score"][1], "intervals": ends, "seeds": values}
        score |= {"leaked": any(each.get("leaked") for each in scores), STAND_INS: tuple(dict.fromkeys(stand_ins))}
        found[task] = score
    return found


def scored(run: Path, stage: str) -> dict[str, dict[str, Any]]:
    """The scores of a stage; they lie with the stage, or with the run, of folds and of an encoder. Empty: none."""
    files = (run / "stages" / stage / SCORES, run / SCORES)
    found: dict[str, Any] = next((read_json(file) for file in files if file.is_file()), {})
    return dict(found.get("scores", {}))


def _of_mean(values: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """The 95 % interval of a mean over seeds, by Student's t; none of a single seed."""
    from scipy.stats import t

    if len(values) < 2:
        return None, None
    half = float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)
    return float(values.mean()) - half, float(values.mean()) + half


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
        numbers: dict[str, int] = {}
        for row in group:
            notes, ours_notes = (_marked(lines, numbers) for lines in (row.notes, row.stand_ins))
            ours = ["" if row.ours is None else f"{row.ours:.2f}{MARK if row.leaked else ''}{ours_notes}"]
            ours += ["" if row.low is None else f"{row.low:.2f} to {row.high:.2f}"]
            ours += ["" if row.difference is None else f"{row.difference:+.2f}"]
            metric = f"{row.record['dataset']} ({row.record['metric']})"
            shown[-1].add_row(metric, f"{row.record['value']:g}{notes}", *ours, marks[row.within])
        shown[-1].caption = (
            Text("\n".join(f"({number}) {note}" for note, number in numbers.items())) if numbers else None
        )
        shown[-1].caption_justify = "left"
    below = [MEANING] if any(row.leaked for row in rows) else []
    if any(row.within is not None for row in rows):
        below.append("within: whether the published number lies within our interval")
    if below:
        shown[-1].caption = Text("\n".join(filter(None, (str(shown[-1].caption or ""), *below))))
    return shown


def _marked(notes: Iterable[str], numbers: dict[str, int]) -> str:
    """The marks of notes, ` (1,2)`; new ones get the next numbers."""
    marks = ",".join(str(numbers.setdefault(note, len(numbers) + 1)) for note in notes)
    return f" ({marks})" if marks else ""
