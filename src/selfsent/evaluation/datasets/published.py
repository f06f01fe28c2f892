"""The rows of the papers' tables that belong to a suite, with their known defects as footnotes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from selfsent.evaluation.results import AVERAGE, MEANING, Result

if TYPE_CHECKING:
    from rich.table import Table

Record = dict[str, Any]

AGGREGATION = "its STS12-16 scores are weighted means over sub-sets, not `all`: not comparable with the other rows"

_STS = {"sts12": "STS12", "sts13": "STS13", "sts14": "STS14", "sts15": "STS15", "sts16": "STS16", "stsb": "STSb"}
_STS17 = ("en-en", "es-es", "ar-ar", "en-ar", "en-de", "en-tr")
DATASETS: dict[str, dict[str, str]] = {
    "sts": _STS | {"sickr-test": "SICK-R"},
    "transfer": {"sst2": "SST"} | {name: name.upper() for name in ("mr", "cr", "subj", "mpqa", "trec", "mrpc")},
    "useb": {
        "askubuntu": "AskUbuntu",
        "cqadupstack": "CQADupStack",
        "twitterpara": "TwitterPara",
        "scidocs": "SciDocs",
    },
    "afs": {"afs": "AFS"},
    "sts17": {f"sts17-{pair}": f"STS17 {pair.upper()}" for pair in _STS17}
    | {"sts17-es-en": "STS17 EN-ES", "sts17-fr-en": "STS17 EN-FR"},
}
"""By suite: our task -> the data set's name in the papers."""

TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "sts": (("IS-BERT", "1"), ("BSL", "1"), ("BSL", "4"), ("SALBERT", "3"), ("TSDAE", "11")),
    "transfer": (("IS-BERT", "3"), ("BSL", "2")),
    "useb": (("TSDAE", "2"), ("TSDAE", "9")),
    "afs": (("IS-BERT", "2"), ("BSL", "10")),
    "sts17": (("BSL", "3"),),
}
"""By suite: (paper, table). Only these report the protocol of the suite on test data."""

METRICS = ("spearman", "accuracy", "MAP", "MAP@100", "AP", "mean of the four")

DEFECTS: tuple[tuple[Callable[[Record], bool], str], ...] = (
    (lambda r: r.get("source") == "Li et al. 2020" and r["dataset"].startswith("STS"), AGGREGATION),
    (
        lambda r: r["method"] == "Avg. BERT" and r["dataset"] in (*_STS.values(), "SICK-R"),
        "made with an embedding server's own layer pooling; mean pooling of the last layer gives 52.57 on average",
    ),
    (
        lambda r: r.get("source") == "Hill et al. 2016" and r["metric"] == "spearman",
        "two digits, and the aggregation over sub-sets is not known",
    ),
    (
        lambda r: r["dataset"] == "TREC" and abs(r["value"] * 5 - round(r["value"] * 5)) > 1e-6,
        "500 questions move the accuracy in steps of 0.2: this must be a mean over runs",
    ),
)
"""What is known to be wrong with published numbers, beyond the notes of the records."""


@dataclass(frozen=True)
class PublishedRow:
    """One method of one table.

    Args:
        paper: short name of the paper.
        table: its number.
        method: as the paper calls it.
        group: the paper's heading over the row.
        source: the paper that measured it, when it is quoted.
        values: by task, times 100; `average` is the printed one.
        footnotes: known defects, each once.
    """

    paper: str
    table: str
    method: str
    group: str
    source: str | None
    values: Mapping[str, float]
    footnotes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The row as plain data, ready for `json.dumps`."""
        return {**asdict(self), "values": dict(self.values), "footnotes": list(self.footnotes)}


@cache
def records() -> tuple[Record, ...]:
    """Every number of every table of the four papers."""
    file = resources.files("selfsent.evaluation.datasets") / "published_results.json"
    return tuple(json.loads(file.read_text(encoding="utf-8")))


def published_rows(suite: str) -> list[PublishedRow]:
    """The published rows that stand beside a suite; none for a suite of no paper."""
    task_of = {name: task for task, name in DATASETS.get(suite, {}).items()} | {"Avg": AVERAGE}
    rows: dict[tuple[str, ...], list[Record]] = {}
    for record in records():
        place = record["paper"], record["table"]
        if place in TABLES.get(suite, ()) and record["dataset"] in task_of and record["metric"] in METRICS:
            rows.setdefault((*place, record["method"], record["group"]), []).append(record)
    return [_row(key, found, task_of) for key, found in rows.items()]


def beside(*results: Result) -> Table:
    """Results over the published rows of their suite; which table a row is from, and its defects, stand below.

    Args:
        results: one per model, all of one suite.
    """
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    suite = results[0].suite or ""
    tasks = [task for task in DATASETS.get(suite, {}) if any(task in each.scores for each in results)]
    averages = list(dict.fromkeys(each.average_label for each in results if each.average is not None))
    origins: dict[str, str] = {}
    notes: dict[str, int] = {}
    # Without lines between the columns, names need not be broken on a terminal of 100 columns.
    table = Table(caption_justify="left", box=SIMPLE, pad_edge=False)
    for heading in ("model", "from"):
        table.add_column(heading, overflow="fold")
    for heading in (*(task.removeprefix(f"{suite}-") for task in tasks), *averages):
        table.add_column(heading, justify="right", overflow="fold")
    for each in results:
        own = [each.shown(AVERAGE) if label == each.average_label else "" for label in averages]
        table.add_row(Text(each.model), "here", *map(each.shown, tasks), *own, end_section=each is results[-1])
    for row in published_rows(suite):
        origin = origins.setdefault(f"{row.paper} table {row.table}, {row.group}", ascii_lowercase[len(origins)])
        marks = ",".join(str(notes.setdefault(note, len(notes) + 1)) for note in row.footnotes)
        # The papers' average is over their whole table: beside an average over less, it would mislead.
        last = [_cell(row, AVERAGE) if label == AVERAGE else "" for label in averages]
        table.add_row(row.method, f"{origin} ({marks})" if marks else origin, *(_cell(row, t) for t in tasks), *last)
    below = [MEANING] if any(each.leaked for each in results) else []
    below += [*(f"{key}: {origin}" for origin, key in origins.items()), *(f"({n}) {note}" for note, n in notes.items())]
    table.caption = "\n".join(below)
    return table


def _cell(row: PublishedRow, task: str) -> str:
    return f"{row.values[task]:.2f}" if task in row.values else ""


def _row(key: tuple[str, ...], found: list[Record], task_of: Mapping[str, str]) -> PublishedRow:
    paper, table, method, group = key
    notes = [record["note"] for record in found if record.get("note")]
    notes += [text for record in found for wrong, text in DEFECTS if wrong(record)]
    values = {task_of[record["dataset"]]: float(record["value"]) for record in found}
    return PublishedRow(paper, table, method, group, found[0].get("source"), values, tuple(dict.fromkeys(notes)))
