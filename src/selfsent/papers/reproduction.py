"""Our figures beside the papers': the difference, and whether the published number lies within our interval."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent.display import table_of
from selfsent.distributed import rank
from selfsent.errors import RunError
from selfsent.evaluation.results import MARK, MEANING
from selfsent.evaluation.side_by_side import Spread
from selfsent.evaluation.suites import SUITES
from selfsent.files import read_json, write_json
from selfsent.papers.published import AGGREGATION, DATASETS, METRICS, ROW, Record, defects, marked, records
from selfsent.recipes.recipe import Recipe, read_recipe
from selfsent.recipes.run import STAND_INS
from selfsent.recipes.runner import SCORES
from selfsent.recipes.seeds import Seeds, seeds_of

if TYPE_CHECKING:
    from rich.table import Table

_TASKS = {theirs: task for names in DATASETS.values() for task, theirs in names.items()} | {"STSb (GLUE)": "stsb-dev"}
_PARTS = {
    "TwitterPara/TURL": ("twitterpara", "twitterurl"),
    "TwitterPara/PIT": ("twitterpara", "pit"),
    **{f"SciDocs/{name}": ("scidocs", name.lower()) for name in ("Cite", "CoCite", "CoRead", "CoView")},
}
_AVERAGES = {"Avg (7 STS)": SUITES["sts"].averaged, "USEB Avg": SUITES["useb"].tasks}
_DIFFERS = "differs"
"""What a recipe says of a published row: how it differs from that."""
Scores = Mapping[str, Mapping[str, Any]]
"""By task, a score as `Score.to_json` gives it; over seeds with the values of each metric under `seeds`."""


@dataclass(frozen=True)
class Reproduction:
    """A published number, and ours if there is one.

    Args:
        published: the published one.
        ours: times 100, None where it was not scored.
        low: lower end of our 95 % interval, None where there is none.
        high: its upper end.
        leaked: whether ours is no test.
        notes: what is known to be wrong with the published one, and how ours differs from it.
        stand_ins: what took the place of the paper's data for ours.
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
        """Ours less the published one."""
        return None if self.ours is None else self.ours - float(self.published["value"])

    @property
    def within(self) -> bool | None:
        """Whether the published one lies within our interval; None where there is none."""
        if self.low is None or self.high is None:
            return None
        return self.low <= float(self.published["value"]) <= self.high

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        published = {key: value for key, value in self.published.items() if key != _DIFFERS}
        return {**asdict(self), "published": published, "difference": self.difference, "within": self.within}


def records_of(recipe: Recipe) -> list[Record]:
    """The published numbers that a recipe repeats.

    Raises:
        SettingsError: there is none as it names one, with file and line.
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
    """The published numbers that we have a figure for; where we have none at all, all of them.

    Args:
        published: as `records_of` finds them.
        scores: of the last model of a recipe.
    """
    found = [_reproduction(record, published, scores) for record in published]
    return [each for each in found if each.ours is not None] or found


def _reproduction(record: Record, published: Sequence[Record], scores: Scores) -> Reproduction:
    parts = _parts(record, published)
    taken = [
        (scores[task], name or _metric(part, scores[task])) for task, (name, part) in parts.items() if task in scores
    ]
    if len(taken) < len(parts) or not all(name for _, name in taken):
        taken = []
    notes = tuple(_notes(record, [part for _, part in parts.values()], [name for _, name in taken]))
    if not taken or any(name not in score for score, name in taken):
        return Reproduction(record, notes=notes)
    ours = np.array([float(score[name]) for score, name in taken])
    leaked = any(score.get("leaked") for score, _ in taken)
    stand_ins = tuple(dict.fromkeys(line for score, _ in taken for line in score.get(STAND_INS, ())))
    return Reproduction(record, float(ours.mean()), *_interval(taken, ours), leaked, notes, stand_ins)


def _parts(record: Record, published: Sequence[Record]) -> dict[str, tuple[str, Record]]:
    """What of our scores a number is compared with, by task: a metric where it is a certain one, and the number.

    An average is compared with several tasks, those of its row.
    """
    if record["dataset"] in _AVERAGES:
        return dict.fromkeys(_AVERAGES[record["dataset"]] or (), ("", record))
    if record["dataset"] == "Avg" and record["metric"] in (*METRICS, "pearson"):
        others = (other for other in published if all(other[key] == record[key] for key in ROW))
        # An average of USEB is over four metrics, others are over one.
        alike = [other for other in others if record["metric"] in (other["metric"], METRICS[-1])]
        return {_TASKS[other["dataset"]]: ("", other) for other in alike if other["dataset"] in _TASKS}
    if record["dataset"] in _PARTS:
        task, name = _PARTS[record["dataset"]]
        return {task: (name, record)}
    development = record["dataset"] == "STSb" and record.get("split") == "dev"
    return {"stsb-dev" if development else _TASKS.get(record["dataset"], ""): ("", record)}


def _metric(record: Record, score: Mapping[str, Any]) -> str:
    """The metric of our score that a number is compared with; empty where there is none."""
    if record["metric"] == "pearson":
        return "pearson"
    if AGGREGATION in defects(record) and "wmean" in score:
        return "wmean"
    return "score" if record["metric"] in METRICS else ""


def _interval(taken: Sequence[tuple[Mapping[str, Any], str]], ours: Any) -> tuple[float | None, float | None]:
    """The 95 % interval of the mean of some metrics of scores, as far as they have one."""
    if all(score.get("seeds") for score, _ in taken):  # an average has the interval of the averages of the seeds
        values = [score["seeds"][name] for score, name in taken]
        # Tasks of other runs may have lost a seed: then there are no averages of seeds.
        return Spread.of(np.mean(values, axis=0)).interval if len(set(map(len, values))) == 1 else (None, None)
    ends = [
        (score.get("low"), score.get("high")) if name == "score" else score.get("intervals", {}).get(name, (None, None))
        for score, name in taken
    ]
    if any(None in pair for pair in ends):
        return None, None
    if len(ends) == 1:
        return ends[0][0], ends[0][1]
    # Items are drawn for each task by itself, so the squares of the spreads add up.
    low, high = (float(np.linalg.norm(ours - [pair[side] for pair in ends])) / len(ours) for side in (0, 1))
    return float(ours.mean()) - low, float(ours.mean()) + high


def _notes(record: Record, parts: Iterable[Record], metrics: Iterable[str]) -> list[str]:
    """What is known to be wrong with a published number, and how ours differs."""
    found = [record.get("note"), *(text for text in defects(record) if text != AGGREGATION)]
    if "wmean" in metrics:
        found.append("STS12-16 by weighted means over sub-sets (wmean), ours too")
    elif any(AGGREGATION in defects(part) for part in (record, *parts) if part["dataset"] != "STSb"):
        found.append(AGGREGATION)
    return [note for note in (*found, record.get(_DIFFERS)) if note]


def reproductions(recipe: Recipe, place: Path) -> list[Reproduction]:
    """The published numbers that a recipe names, beside those of a run of it.

    Args:
        recipe: what was run.
        place: the directory of the run, or of several seeds.

    Raises:
        SettingsError: there is no such published number, with file and line.
    """
    return reproduced(records_of(recipe), _scores(recipe, place))


def _scores(recipe: Recipe, place: Path) -> dict[str, dict[str, Any]]:
    seeds = seeds_of(place)
    return mean_scores(seeds, recipe.last) if seeds.figures else scores_of(place, recipe.last)


def keep(recipe: Recipe, place: Path) -> None:
    """Write the published numbers beside those of a run to its `beside.json`."""
    if rank() == 0:
        write_json(place / "beside.json", [row.to_json() for row in reproductions(recipe, place)])


def scores_of(run: Path, last: str) -> dict[str, dict[str, Any]]:
    """The scores of a run's last model; they lie with the stage, or with the run, of folds and of an encoder."""
    found = read_json(run / "stages" / last / SCORES) or read_json(run / SCORES)
    about = {STAND_INS: read_json(run / "run.json").get(STAND_INS, [])}
    return {task: {**score, **about} for task, score in found.get("scores", {}).items()}


def mean_scores(seeds: Seeds, last: str) -> dict[str, dict[str, Any]]:
    """The means over seeds of all metrics of a recipe's last model, with the values of the seeds."""
    runs = [scores_of(seeds.directory / "seeds" / str(seed), last) for seed in seeds.figures]
    found = {}
    for task in [task for task in (runs[0] if runs else ()) if all(task in run for run in runs)]:
        scores = [run[task] for run in runs]
        names = [name for name, value in scores[0].items() if type(value) is float]
        values = {name: [score[name] for score in scores] for name in names if all(name in score for score in scores)}
        about = {"seeds": values, "leaked": any(score.get("leaked") for score in scores)}
        stand_ins = dict.fromkeys(line for score in scores for line in score[STAND_INS])
        found[task] = (
            {name: float(np.mean(each)) for name, each in values.items()} | about | {STAND_INS: list(stand_ins)}
        )
    return found


def join_runs(places: Iterable[str | Path]) -> list[Reproduction]:
    """The published rows of finished runs of recipes, each row with the scores of all the runs that repeat it.

    TSDAE's tables have an average over four domains in each row, and a domain is a run: with all four of them here the
    average is compared, too.

    Args:
        places: run directories of recipes, or of several seeds of one.

    Returns:
        The rows in the order of the runs.

    Raises:
        RunError: a directory holds no finished run of a recipe, or two of them score the same task in one row.

    Example:
        rows = join_runs(["runs/askubuntu", "runs/cqadupstack", "runs/twitterpara", "runs/scidocs"])
    """
    rows: dict[str, tuple[list[Record], dict[str, dict[str, Any]]]] = {}
    come_from: dict[tuple[str, str], Path] = {}
    for place in map(Path, places):
        seeds = seeds_of(place)
        run = place / "seeds" / str(next(iter(seeds.figures))) if seeds.figures else place
        if read_json(place / "run.json").get("status") != "finished" or not (run / "recipe.yaml").is_file():
            raise RunError(f"{place} holds no finished run of a recipe")
        asked = read_json(run / "run.json").get("asked", {})
        recipe = read_recipe(run / "recipe.yaml", asked.get("variant"), asked.get("base"), planned=False)
        if not (published := records_of(recipe)):
            raise RunError(f"{place} repeats no row of the papers: its recipe names none under published")
        row = json.dumps([recipe.base, published], sort_keys=True)
        scores = _scores(recipe, place)
        for task in scores:
            if (other := come_from.setdefault((row, task), place)) is not place:
                raise RunError(f"{other} and {place} both score {task} in one row: give one of them")
        rows.setdefault(row, (published, {}))[1].update(scores)
    return [found for published, scores in rows.values() for found in reproduced(published, scores)]


def tables(rows: Sequence[Reproduction]) -> list[Table]:
    """The published numbers with ours: a table for each published row, a line for each of its numbers."""
    headings = ["data", "published", "ours", "95 % interval", "difference", "within"]
    words = {True: "yes", False: "no", None: ""}
    below = [MEANING] if any(row.leaked for row in rows) else []
    if any(row.within is not None for row in rows):
        below.append("within: whether the published number lies within our interval")
    shown: list[Table] = []
    for (paper, table, method, group), found in groupby(rows, lambda row: tuple(row.published[key] for key in ROW)):
        cells, numbers = [], dict[str, int]()
        for row in found:
            published = f"{row.published['value']:g}{marked(row.notes, numbers)}"
            stand_ins = marked(row.stand_ins, numbers)
            ours = "" if row.ours is None else f"{row.ours:.2f}{MARK if row.leaked else ''}{stand_ins}"
            between = "" if row.low is None else f"{row.low:.2f} to {row.high:.2f}"
            difference = "" if row.difference is None else f"{row.difference:+.2f}"
            data = f"{row.published['dataset']} ({row.published['metric']})"
            cells.append([data, published, ours, between, difference, words[row.within]])
        title, notes = f"{paper} table {table}: {method} ({group})", [f"({n}) {note}" for note, n in numbers.items()]
        shown.append(table_of(headings, cells, left=(0, 5), title=title, caption="\n".join(notes)))
    if below:
        shown[-1].caption = "\n".join(filter(None, (str(shown[-1].caption), *below)))
    return shown
