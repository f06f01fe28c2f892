"""Results of an evaluation as tables, JSON and a page, for one or several models, with the papers' rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from rich.table import Table

from selfsent.display import cells_of
from selfsent.errors import SettingsError
from selfsent.evaluation.results import Result
from selfsent.evaluation.side_by_side import Comparison, side_by_side
from selfsent.exam.beside import Beside
from selfsent.report.pages import dots, render
from selfsent.scorers.lexical import LEXICAL

EARLY = "published scores are those of a classifier that is stopped early; classifier=senteval does the same here"


class PublishedRows(Protocol):
    """Published rows of a suite, of an extension; `rows` are plain data."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """For JSON."""

    def table(self, results: Sequence[Result]) -> Table:
        """Results above the published rows."""


@dataclass(frozen=True)
class Report:
    """Results in all output formats.

    Args:
        results: one per model.
        published: the papers' rows to show below, or None.
        beside: exams beside judged queries.
    """

    results: Sequence[Result]
    published: PublishedRows | None = None
    beside: Sequence[Beside] = ()

    @cached_property
    def comparison(self) -> Comparison | None:
        """The models side by side; None for one model, or without common items."""
        try:
            return side_by_side(self.results) if len(self.results) > 1 else None
        except SettingsError:
            return None

    @property
    def tables(self) -> list[Table]:
        """The tables for the terminal."""
        if self.comparison is None:
            tables = [result.table() for result in self.results]
        else:
            tables = [self.comparison.table(), *self.comparison.secondary_tables()]
        tables += [each.table() for each in self.beside]
        return tables + ([self.published.table(self.results)] if self.published else [])

    @property
    def signatures(self) -> list[str]:
        """The distinct signatures."""
        every = (score.signature for result in self.results for score in result.scores.values())
        return list(dict.fromkeys(every))

    @property
    def remarks(self) -> list[str]:
        """Absent tasks, warnings, and tasks that could not be compared, one line each."""
        several = len(self.results) > 1
        early = self.published is not None and any("|logreg|" in line for line in self.signatures)
        lacking: dict[tuple[str, str], list[str]] = {}
        for result in self.results:
            for absence in result.absent.items():
                lacking.setdefault(absence, []).append(result.model)
        lines = [
            f"{name} is absent{'' if len(models) == len(self.results) else ' for ' + ' and '.join(models)}: {reason}"
            for (name, reason), models in lacking.items()
        ]
        lines += [EARLY] if early else []
        for result in self.results:
            tasks = ", ".join(name for name in result.leaked if name in result.scores)
            lines += [f"{result.model} was trained on STSb, which holds pairs of {tasks}: no test"] if tasks else []
        # The data, and so the remarks on it, are the same for every model.
        lines = list(dict.fromkeys(lines + [f"warning: {w}" for result in self.results for w in result.warnings]))
        if several and self.comparison is None:
            return [*lines, "no task was scored on the same items by all models, so they are not compared"]
        shared = self.comparison.tasks if self.comparison else ()
        apart = {task for result in self.results for task in result.scores if several and task not in shared}
        return [*lines, *(f"{task} is not compared: not all models were scored on it" for task in sorted(apart))]

    def to_json(self) -> dict[str, Any]:
        """One object: the result of one model, or `against`, `results` and `differences` for several."""
        several: dict[str, Any] = {"results": [result.to_json() for result in self.results]}
        plain = self.results[0].to_json() if len(self.results) == 1 else several
        plain = plain if self.comparison is None else self.comparison.to_json()
        plain |= {"beside": [each.to_json() for each in self.beside]} if self.beside else {}
        return plain | ({"published": self.published.rows} if self.published else {})

    def to_page(self) -> str:
        """One HTML file: the scores of each task as dots with intervals, then the tables."""
        names = [result.model for result in self.results]
        return render(
            "evaluation.html",
            headline=f"Scores of {names[0] if len(names) == 1 else f'{len(names)} models'}",
            drawings=[
                (heading, _drawing(self.results, task))
                for task, heading in {t: s.title or t for r in self.results for t, s in r.scores.items()}.items()
            ],
            tables=[cells_of(table) for table in self.tables],
            remarks=self.remarks,
            signatures=self.signatures,
        )


def _drawing(results: Sequence[Result], task: str) -> dict[str, Any]:
    """The dots of a task, best first, including TF-IDF and BM25 if available."""
    scored = [(result.model, result.scores[task]) for result in results if task in result.scores]
    rows = [(model, score.to_json(), model in LEXICAL) for model, score in scored]
    line, first = scored[0]
    for kind, name in LEXICAL.items():
        if kind in first.metrics and kind not in dict(scored):
            value = first.metrics[kind]
            rows.append((name, dict.fromkeys(("score", "low", "high"), value), True))
    models = [each for each in scored if each[0] not in LEXICAL]
    return dots(rows, max(models, key=lambda each: each[1].score)[0] if models else None, line)
