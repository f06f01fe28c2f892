"""Several results side by side, with paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from selfsent.display import span, table_of, text_of
from selfsent.errors import SettingsError
from selfsent.evaluation.results import AVERAGE, Result, Score
from selfsent.stats.resampling import Difference

_SECONDARY = (
    {"nearest_neighbour": "nearest neighbour", "v_measure": "V-measure"},
    {"mrr@10": "MRR@10", "recall@100": "recall@100", "map": "MAP"},
)
"""Secondary metrics with separate tables, and their headings."""


@dataclass(frozen=True)
class Comparison:
    """Models on their common tasks, each against the first.

    Args:
        results: one per model.
        shared: the results restricted to the common tasks.
        differences: by task, and for the average of a suite, one per further model: that model minus the first.
    """

    results: tuple[Result, ...]
    shared: tuple[Result, ...]
    differences: dict[str, tuple[Difference, ...]]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The common tasks, with the same items."""
        return tuple(self.shared[0].scores)

    def to_json(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        models = [result.model for result in self.results]
        plain = {
            task: [
                {"model": result.model, **vars(found)}
                for result, found in zip(self.shared[1:], differences, strict=True)
                if self._is_fair(task, result)
            ]
            for task, differences in self.differences.items()
        }
        found = {"against": models[0], "results": [each.to_json() for each in self.results], "differences": plain}
        return found | ({"average_over": list(self.shared[0].average_over)} if AVERAGE in plain else {})

    def _is_fair(self, task: str, result: Result) -> bool:
        """Whether neither this result nor the first one is of a model that has read what the task asks about."""
        return not any(score and score.has_read for score in (result.score_of(task), self.shared[0].score_of(task)))

    def table(self) -> Table:
        """For each task, a row per model: score, interval, and the difference to the first."""
        first, rows, sections, headings = self.shared[0], list[list[str]](), list[int](), dict[str, str]()
        for task, differences in self.differences.items():
            heading = first.average_label if task == AVERAGE else first.scores[task].title or task
            headings[heading] = "bold"
            rows.append([heading])
            for result, found in zip(self.shared, (None, *differences), strict=True):
                ends = span(score.low, score.high) if (score := result.score_of(task)) else ""
                less = [found.shown, f"{found.p:.3f}"] if found and self._is_fair(task, result) else []
                rows.append([result.model, result.shown(task), ends, *less])
            sections.append(len(rows) - 1)
        below = [f"differences are to {first.model}, on the same items"]
        below += dict.fromkeys(line for each in self.results for line in each.meanings)
        columns = ("model", "score", "95 % interval", "difference [95 %]", "p")
        return table_of(columns, rows, caption="\n".join(below), styles=headings, sections=sections)

    def secondary_tables(self) -> list[Table]:
        """Tables of secondary metrics of labelled texts and of search."""
        found = []
        for headings in _SECONDARY:
            rows: list[list[str]] = []
            for task in self.tasks:
                if all(headings.keys() <= each.scores[task].metrics.keys() for each in self.shared):
                    rows.append([self.shared[0].scores[task].title or task])
                    rows += [[each.model, *map(each.scores[task].shown, headings)] for each in self.shared]
            styles = {cells[0]: "bold" for cells in rows if len(cells) == 1}
            found += [table_of(["model", *headings.values()], rows, styles=styles)] if rows else []
        return found

    def __str__(self) -> str:
        """The table as text."""
        return text_of(self.table())


def side_by_side(results: Sequence[Result]) -> Comparison:
    """Compare models task by task, paired over the same resamples.

    Args:
        results: two or more, of the same suite or tasks.

    Raises:
        SettingsError: fewer than two results, or no task in common.
    """
    if len(results) < 2:
        raise SettingsError("a comparison needs two models or more")
    shared = _shared(results)
    first, *others = shared
    if not first.scores:
        raise SettingsError("these models have no task in common that was scored on the same items")
    differences = {
        task: tuple(other.scores[task].minus(score) for other in others) for task, score in first.scores.items()
    }
    if len(first.average_over) > 1:
        mean, *means = filter(None, (each.average_score for each in shared))
        differences[AVERAGE] = tuple(each.minus(mean) for each in means)
    return Comparison(tuple(results), shared, differences)


def _shared(results: Sequence[Result]) -> tuple[Result, ...]:
    """The results restricted to common tasks over the same items."""

    def items(score: Score) -> tuple[int, str | None]:
        return score.n, dict(part.partition(":")[::2] for part in score.signature.split("|")).get("data")

    first = results[0]
    common = set.intersection(*({(task, items(score)) for task, score in each.scores.items()} for each in results))
    tasks = [task for task, score in first.scores.items() if (task, items(score)) in common]
    kept = [{task: each.scores[task] for task in tasks} for each in results]
    return tuple(replace(each, scores=own, averaged=first.averaged) for each, own in zip(results, kept, strict=True))
