"""Our scores compared with the papers': difference, and whether the published number is within our interval."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from selfsent.display import span, table_of
from selfsent.errors import RunError
from selfsent.evaluation.results import MARK, MEANING
from selfsent.evaluation.suites import SUITES
from selfsent.files import read_json
from selfsent.recipes.recipe import Recipe, read_recipe
from selfsent.recipes.run import SCORES, STAND_INS
from selfsent.recipes.seeds import Seeds, Spread
from selfsent.run_record import read_record
from selfsent_papers.published import AGGREGATION, DATASETS, METRICS, ROW, Record, defects, marked, records

Scores = Mapping[str, Mapping[str, Any]]
"""Scores by task, from `Score.to_json`; over seeds with the values of each metric under `seeds`."""

_TASKS = {theirs: task for names in DATASETS.values() for task, theirs in names.items()} | {"STSb (GLUE)": "stsb-dev"}
_METRICS = {
    "TwitterPara/TURL": ("twitterpara", "twitterurl"),
    "TwitterPara/PIT": ("twitterpara", "pit"),
    **{f"SciDocs/{name}": ("scidocs", name.lower()) for name in ("Cite", "CoCite", "CoRead", "CoView")},
}
_AVERAGES = {"Avg (7 STS)": SUITES["sts"].averaged, "USEB Avg": SUITES["useb"].tasks}
_SAID = {True: "yes", False: "no", None: ""}
_DIFFERS = "differs"
"""Key of a recipe's published row: the recipe's deviation from it."""


@dataclass(frozen=True)
class Reproduction:
    """A published number and ours.

    Args:
        published: record of the published number.
        ours: times 100; None without a score.
        low: lower end of our 95 % interval, or None.
        high: its upper end.
        leaked: whether ours is contaminated.
        notes: known defects of the published number, and deviations of ours.
        stand_ins: replacements of the paper's data in ours.
    """

    published: Record
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    leaked: bool = False
    notes: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()

    @property
    def difference(self) -> float | None:
        """Ours minus the published one."""
        return None if self.ours is None else self.ours - float(self.published["value"])

    @property
    def within(self) -> bool | None:
        """Whether the published one is within our interval; None without one."""
        if self.low is None or self.high is None:
            return None
        return self.low <= float(self.published["value"]) <= self.high

    @property
    def in_spread(self) -> bool | None:
        """Whether ours is within two standard deviations of the published one; None where the paper has none."""
        if self.difference is None or self.published.get("std") is None:
            return None
        return abs(self.difference) <= 2 * float(self.published["std"])

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        published = {key: value for key, value in self.published.items() if key != _DIFFERS}
        verdict = {"difference": self.difference, "within": self.within, "in_spread": self.in_spread}
        return {**asdict(self), "published": published, **verdict}


def records_of(recipe: Recipe) -> list[Record]:
    """The published numbers reproduced by a recipe.

    Raises:
        SettingsError: a row of the recipe matches none, with file and line.
    """
    found: list[Record] = []
    for entry in recipe.published:
        entry.only((*ROW, "dataset", "metric", _DIFFERS), "a published row")
        wanted = {key: str(value) for key, value in entry.items() if key != _DIFFERS}
        rows = [record for record in records() if all(str(record.get(key)) == value for key, value in wanted.items())]
        if not rows:
            entry.fail(f"there is no published number with {', '.join(f'{k} {v}' for k, v in wanted.items())}")
        differs = {_DIFFERS: str(entry[_DIFFERS])} if entry.get(_DIFFERS) else {}
        found += [row | differs for row in rows]
    return found


def reproduced(published: Sequence[Record], scores: Scores) -> list[Reproduction]:
    """The published numbers for which we have a score; without any, all of them.

    Args:
        published: from `records_of`.
        scores: of the last model of a recipe.
    """
    found = [_reproduction(record, published, scores) for record in published]
    return [each for each in found if each.ours is not None] or found


def _reproduction(record: Record, published: Sequence[Record], scores: Scores) -> Reproduction:
    parts = _parts(record, published)
    taken = [(scores[task], metric or _metric(part, scores[task])) for task, metric, part in parts if task in scores]
    complete = len(taken) == len(parts) and all(metric for _, metric in taken)
    notes = [record.get("note"), *(text for text in defects(record) if text != AGGREGATION)]
    if complete and any(metric == "wmean" for _, metric in taken):
        notes.append("STS12-16 by weighted means over sub-sets (wmean), ours too")
    elif any(
        AGGREGATION in defects(each) for each in (record, *(part for *_, part in parts)) if each["dataset"] != "STSb"
    ):
        notes.append(AGGREGATION)
    kept = tuple(note for note in (*notes, record.get(_DIFFERS)) if note)
    if not taken or not complete or any(metric not in score for score, metric in taken):
        return Reproduction(record, notes=kept)
    ours = np.array([float(score[metric]) for score, metric in taken])
    leaked = any(score.get("leaked") for score, _ in taken)
    stand_ins = tuple(dict.fromkeys(line for score, _ in taken for line in score.get(STAND_INS, ())))
    return Reproduction(record, float(ours.mean()), *_interval(taken, ours), leaked, kept, stand_ins)


def _parts(record: Record, published: Sequence[Record]) -> list[tuple[str, str, Record]]:
    """Our scores for a published number: task, metric (empty for the matching one) and record of that task.

    An average has the tasks of its row.
    """
    dataset = record["dataset"]
    if dataset in _AVERAGES:
        return [(task, "", record) for task in _AVERAGES[dataset] or ()]
    if dataset == "Avg" and record["metric"] in (*METRICS, "pearson"):
        others = (other for other in published if all(other[key] == record[key] for key in ROW))
        # An average of USEB is over four metrics, others over one.
        alike = [other for other in others if record["metric"] in (other["metric"], METRICS[-1])]
        return [(_TASKS[other["dataset"]], "", other) for other in alike if other["dataset"] in _TASKS]
    if dataset == "STSb" and record.get("split") == "dev":
        return [("stsb-dev", "", record)]
    return [(*_METRICS.get(dataset, (_TASKS.get(dataset, ""), "")), record)]


def _metric(record: Record, score: Mapping[str, Any]) -> str:
    """The metric of our score to compare a number with; empty without one."""
    if record["metric"] == "pearson":
        return "pearson"
    if AGGREGATION in defects(record) and "wmean" in score:
        return "wmean"
    return "score" if record["metric"] in METRICS else ""


def _interval(taken: Sequence[tuple[Mapping[str, Any], str]], ours: Any) -> tuple[float | None, float | None]:
    """The 95 % interval of the mean of several scores; (None, None) if one has none."""
    if all(score.get("seeds") for score, _ in taken):  # interval over the seeds' averages
        values = [score["seeds"][metric] for score, metric in taken]
        # If a task lacks a seed, there are no averages by seed.
        return Spread.of(np.mean(values, axis=0)).interval if len(set(map(len, values))) == 1 else (None, None)
    ends = [
        (score.get("low"), score.get("high")) if metric == "score" else score.get("intervals", {}).get(metric, (None,))
        for score, metric in taken
    ]
    if any(None in pair for pair in ends):
        return None, None
    # Tasks are resampled independently, so variances add up.
    low, high = (float(np.linalg.norm(ours - [pair[side] for pair in ends])) / len(ours) for side in (0, 1))
    return float(ours.mean()) - low, float(ours.mean()) + high


def scores_of(directory: Path, last: str) -> dict[str, dict[str, Any]]:
    """The scores of the last model of a run; over several seeds their means, and the values of each seed.

    Args:
        directory: of the run, or of several seeds.
        last: the stage, the protocol of the folds, or `encoder`.
    """
    if seeds := Seeds.read(directory).figures:
        return mean_scores([scores_of(directory / "seeds" / str(seed), last) for seed in seeds])
    found = read_json(directory / "stages" / last / SCORES) or read_json(directory / SCORES)
    about = {STAND_INS: read_json(directory / "run.json").get(STAND_INS, [])}
    return {task: {**score, **about} for task, score in found.get("scores", {}).items()}


def mean_scores(runs: Sequence[Scores]) -> dict[str, dict[str, Any]]:
    """The means of all metrics over runs with different seeds, and the values of each seed."""
    found: dict[str, dict[str, Any]] = {}
    for task in [task for task in runs[0] if all(task in run for run in runs)]:
        scores = [run[task] for run in runs]
        names = [name for name, value in scores[0].items() if type(value) is float]
        values = {name: [score[name] for score in scores] for name in names if all(name in score for score in scores)}
        found[task] = {name: float(np.mean(each)) for name, each in values.items()}
        found[task] |= {"seeds": values, "leaked": any(score.get("leaked") for score in scores)}
        found[task][STAND_INS] = list(dict.fromkeys(line for score in scores for line in score[STAND_INS]))
    return found


def join_runs(directories: Iterable[str | Path]) -> list[Reproduction]:
    """The published rows of finished runs of recipes, each with the scores of all runs that reproduce it.

    TSDAE's tables average over four domains in each row, and each domain is a run: with all four, the average is
    compared, too.

    Args:
        directories: of runs of recipes, or of several seeds of one.

    Returns:
        The rows in the order of the runs.

    Raises:
        RunError: no finished run of a recipe, or two with the same task in one row.

    Examples:
        >>> directories = ["runs/askubuntu", "runs/cqadupstack", "runs/twitterpara", "runs/scidocs"]
        >>> rows = join_runs(directories)  # doctest: +SKIP
    """
    rows: dict[str, tuple[list[Record], dict[str, dict[str, Any]]]] = {}
    come_from: dict[tuple[str, str], Path] = {}
    for directory in map(Path, directories):
        seeds = Seeds.read(directory).figures
        run = directory / "seeds" / str(next(iter(seeds))) if seeds else directory
        if read_json(directory / "run.json").get("status") != "finished" or not (run / "recipe.yaml").is_file():
            raise RunError(f"{directory} holds no finished run of a recipe")
        config = read_record(run).config
        recipe = read_recipe(run / "recipe.yaml", config.get("variant"), config.get("base"), planned=False)
        if not (published := records_of(recipe)):
            raise RunError(f"{directory} repeats no row of the papers: its recipe names none under published")
        row = json.dumps([recipe.base, published], sort_keys=True)
        scores = scores_of(directory, recipe.last)
        for task in scores:
            if (other := come_from.setdefault((row, task), directory)) is not directory:
                raise RunError(f"{other} and {directory} both score {task} in one row: give one of them")
        rows.setdefault(row, (published, {}))[1].update(scores)
    return [found for published, scores in rows.values() for found in reproduced(published, scores)]


def tables_of_runs(directories: Iterable[str | Path]) -> list[Table]:
    """The tables of finished runs beside the published rows; see `join_runs` and `tables`."""
    return tables(join_runs(directories))


def tables(rows: Sequence[Reproduction]) -> list[Table]:
    """A table for each published row, with our score for each number."""
    below = [MEANING] if any(row.leaked for row in rows) else []
    spread = any(row.in_spread is not None for row in rows)
    if spread or any(row.within is not None for row in rows):
        below.append("within: whether the published number is within our interval")
    if spread:
        below.append("after /: whether ours is within two standard deviations of the published one")
    shown: list[Table] = []
    for (paper, table, method, group), found in groupby(rows, lambda row: tuple(row.published[key] for key in ROW)):
        cells, numbers = [], dict[str, int]()
        for row in found:
            std = f" ± {row.published['std']:g}" if row.published.get("std") is not None else ""
            published = f"{row.published['value']:g}{std}{marked(row.notes, numbers)}"
            mark = f"{MARK if row.leaked else ''}{marked(row.stand_ins, numbers)}"
            cells.append([f"{row.published['dataset']} ({row.published['metric']})", published])
            if row.ours is not None:
                ends = "" if row.low is None or row.high is None else span(row.low, row.high)
                verdict = _SAID[row.within] + ("" if row.in_spread is None else f" / {_SAID[row.in_spread]}")
                cells[-1] += [f"{row.ours:.2f}{mark}", ends, f"{row.difference:+.2f}", verdict]
        headings = ["data", "published", "ours", "95 % interval", "difference", "within"]
        title, notes = f"{paper} table {table}: {method} ({group})", [f"({n}) {note}" for note, n in numbers.items()]
        shown.append(table_of(headings, cells, left=(0, 5), title=title, caption="\n".join(notes)))
    if below:
        shown[-1].caption = "\n".join(filter(None, (str(shown[-1].caption), *below)))
    return shown
