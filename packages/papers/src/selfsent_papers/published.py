"""The numbers of the papers' tables, and the rows that belong to a suite, known defects as footnotes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import resources
from string import ascii_lowercase
from typing import Any

from rich.table import Table

from selfsent.display import table_of
from selfsent.errors import SettingsError
from selfsent.evaluation.results import AVERAGE, MEANING, Result

Record = dict[str, Any]
ROW = ("paper", "table", "method", "group")
"""Fields that identify a row of a table."""

AGGREGATION = "its STS12-16 scores are weighted means over sub-sets, not `all`: not comparable with the other rows"

_STS = {"sts12": "STS12", "sts13": "STS13", "sts14": "STS14", "sts15": "STS15", "sts16": "STS16", "stsb": "STSb"}
_USEB = {"askubuntu": "AskUbuntu", "cqadupstack": "CQADupStack", "twitterpara": "TwitterPara", "scidocs": "SciDocs"}
_STS17 = ("en-en", "es-es", "ar-ar", "en-ar", "en-de", "en-tr")
DATASETS: dict[str, dict[str, str]] = {
    "sts": _STS | {"sickr-test": "SICK-R"},
    "transfer": {"sst2": "SST"} | {name: name.upper() for name in ("mr", "cr", "subj", "mpqa", "trec", "mrpc")},
    "useb": _USEB,
    "afs": {"afs": "AFS"},
    "sts17": {f"sts17-{pair}": f"STS17 {pair.upper()}" for pair in _STS17}
    | {"sts17-es-en": "STS17 EN-ES", "sts17-fr-en": "STS17 EN-FR"},
}
"""By suite: our task -> name of the data set in the papers."""

TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "sts": (("IS-BERT", "1"), ("BSL", "1"), ("BSL", "4"), ("SALBERT", "3"), ("TSDAE", "11")),
    "transfer": (("IS-BERT", "3"), ("BSL", "2")),
    "useb": (("TSDAE", "2"), ("TSDAE", "9")),
    "afs": (("IS-BERT", "2"), ("BSL", "10")),
    "sts17": (("BSL", "3"),),
}
"""By suite: (paper, table). Only these use the protocol of the suite on test data."""

METRICS = ("spearman", "accuracy", "MAP", "MAP@100", "AP", "mean of the four")

_DEFECTS: tuple[tuple[Callable[[Record], bool], str], ...] = (
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
"""Known errors in published numbers, beyond the notes of the records."""


@cache
def records() -> tuple[Record, ...]:
    """Every number of every table of the four papers."""
    file = resources.files("selfsent_papers") / "published_results.json"
    return tuple(json.loads(file.read_text(encoding="utf-8")))


def defects(record: Record) -> list[str]:
    """Known errors in a published number, beyond its own note."""
    return [text for wrong, text in _DEFECTS if wrong(record)]


def published_rows(suite: str) -> list[Record]:
    """The published rows for a suite, one per method of a table; none if no paper has it.

    Returns:
        For each row `paper`, `table`, `method`, `group`, the `source` it is quoted from, `values` by task (times 100;
        `average` is the printed one), and known defects as `footnotes`.
    """
    task_of = {name: task for task, name in DATASETS.get(suite, {}).items()} | {"Avg": AVERAGE}
    rows: dict[tuple[str, ...], Record] = {}
    for record in records():
        table = record["paper"], record["table"]
        if table in TABLES.get(suite, ()) and record["dataset"] in task_of and record["metric"] in METRICS:
            new = {key: record.get(key) for key in (*ROW, "source")} | {"values": {}, "footnotes": []}
            row = rows.setdefault(tuple(record[key] for key in ROW), new)
            row["values"][task_of[record["dataset"]]] = float(record["value"])
            notes = [*filter(None, [record.get("note")]), *defects(record)]
            row["footnotes"] = list(dict.fromkeys([*row["footnotes"], *notes]))
    return list(rows.values())


class Published:
    """The published rows of a suite, to show below results.

    Args:
        suite: its name.

    Raises:
        SettingsError: no suite, or one in no paper.
    """

    def __init__(self, suite: str | None) -> None:
        self.rows = published_rows(suite or "")
        if not self.rows:
            reason = f"no table of the papers belongs to {suite}" if suite else "published rows belong to a suite"
            raise SettingsError(f"`published`: {reason}; give suite=sts, sts17, transfer, useb or afs")

    def table(self, results: Sequence[Result]) -> Table:
        """Results above the published rows, with their tables and defects as footnotes.

        Args:
            results: one per model, all of the suite.
        """
        from rich.box import SIMPLE

        suite = results[0].suite or ""
        tasks = [task for task in DATASETS[suite] if any(task in each.scores for each in results)]
        averages = list(dict.fromkeys(each.average_label for each in results if each.average is not None))
        # The papers' average is over their whole table: it is not comparable with an average over less.
        columns = [*tasks, *(label if label == AVERAGE else "" for label in averages)]
        cells = []
        for each in results:
            own = [each.shown(AVERAGE) if label == each.average_label else "" for label in averages]
            cells.append([each.model, "here", *map(each.shown, tasks), *own])
        origins: dict[str, str] = {}
        notes: dict[str, int] = {}
        for row in self.rows:
            where = f"{row['paper']} table {row['table']}, {row['group']}"
            origin = origins.setdefault(where, ascii_lowercase[len(origins)])
            values = (f"{row['values'][task]:.2f}" if task in row["values"] else "" for task in columns)
            cells.append([row["method"], origin + marked(row["footnotes"], notes), *values])
        below = [MEANING] if any(each.leaked for each in results) else []
        below += [f"{key}: {origin}" for origin, key in origins.items()]
        below += [f"({number}) {note}" for note, number in notes.items()]
        headings = ["model", "from", *(task.removeprefix(f"{suite}-") for task in tasks), *averages]
        # Without lines between columns, names fit on a terminal of 100 columns.
        table = table_of(headings, cells, left=(0, 1), caption="\n".join(below), box=SIMPLE, pad_edge=False)
        for column in table.columns:
            column.overflow = "fold"
        table.rows[len(results) - 1].end_section = True
        return table


def marked(notes: Iterable[str], numbers: dict[str, int]) -> str:
    """The marks of footnotes, ` (1,2)`; new notes get the next numbers."""
    marks = ",".join(str(numbers.setdefault(note, len(numbers) + 1)) for note in notes)
    return f" ({marks})" if marks else ""
