"""Several results side by side: models with paired p-values, or seeds of one run with mean and standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent.errors import SettingsError
from selfsent.evaluation.bootstrap import Difference, paired
from selfsent.evaluation.results import Result

if TYPE_CHECKING:
    from rich.table import Table

AVERAGE = "average"


@dataclass(frozen=True)
class Comparison:
    """Models on the tasks that all of them have, each against the first.

    Args:
        results: one per model.
        tasks: the tasks all of them have, with the same items.
        differences: by task, and for the average of a suite, one per further model: that model minus the first.
    """

    results: tuple[Result, ...]
    tasks: tuple[str, ...]
    differences: dict[str, tuple[Difference, ...]]

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data, ready for `json.dumps`."""
        plain = {
            task: [
                {"model": result.model, "difference": d.difference, "low": d.low, "high": d.high, "p": d.p}
                for result, d in zip(self.results[1:], differences, strict=True)
            ]
            for task, differences in self.differences.items()
        }
        return {
            "against": self.results[0].model,
            "results": [result.to_json() for result in self.results],
            "differences": plain,
        }

    def table(self) -> Table:
        """Scores side by side; beside each further model's, its difference to the first with the p-value."""
        from rich.table import Table

        table = Table("task", self.results[0].model)
        for result in self.results[1:]:
            table.add_column(result.model, justify="right")
            table.add_column("difference (p)", justify="right")
        for task, differences in self.differences.items():
            values = [_value(result, task, self.tasks) for result in self.results]
            cells = [f"{values[0]:.2f}"]
            for value, d in zip(values[1:], differences, strict=True):
                cells += [f"{value:.2f}", f"{d.difference:+.2f} [{d.low:+.2f}, {d.high:+.2f}] ({d.p:.3f})"]
            table.add_row(task, *cells)
        return table


def side_by_side(results: Sequence[Result]) -> Comparison:
    """Compare models task by task, paired over the same resamples.

    Args:
        results: two or more, of the same suite or tasks.

    Raises:
        SettingsError: fewer than two results, or no task in common.
    """
    if len(results) < 2:
        raise SettingsError("a comparison needs two models or more")
    shared = (task for task in results[0].scores if all(_same_items(other, results[0], task) for other in results))
    tasks = tuple(shared)
    if not tasks:
        raise SettingsError("these models have no task in common that was scored on the same items")
    first = results[0]
    differences = {task: tuple(other.scores[task].minus(first.scores[task]) for other in results[1:]) for task in tasks}
    averaged = [task for task in first.averaged if task in tasks]
    if len(averaged) > 1:
        differences[AVERAGE] = tuple(_average_difference(other, first, averaged) for other in results[1:])
    return Comparison(tuple(results), tasks, differences)


@dataclass(frozen=True)
class Spread:
    """A score over several seeds: mean, standard deviation (n - 1) and number of seeds."""

    mean: float
    deviation: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.deviation:.2f}"


def over_seeds(results: Sequence[Result]) -> dict[str, Spread]:
    """Mean and standard deviation of every task, and of the average, over the seeds of one run.

    Raises:
        SettingsError: fewer than two seeds, or no task in common.
    """
    if len(results) < 2:
        raise SettingsError("a standard deviation needs two seeds or more")
    tasks = [task for task in results[0].scores if all(task in result.scores for result in results)]
    if not tasks:
        raise SettingsError("these seeds have no task in common")
    values = {task: [result.scores[task].score for result in results] for task in tasks}
    averaged = [task for task in results[0].averaged if task in tasks]
    if len(averaged) > 1:
        values[AVERAGE] = np.mean([values[task] for task in averaged], axis=0).tolist()
    return {name: Spread(float(np.mean(v)), float(np.std(v, ddof=1)), len(v)) for name, v in values.items()}


def _same_items(result: Result, first: Result, task: str) -> bool:
    if task not in result.scores:
        return False
    a, b = result.scores[task], first.scores[task]
    return a.n == b.n and _field(a.signature, "data") == _field(b.signature, "data")


def _field(signature: str, name: str) -> str | None:
    return dict(part.partition(":")[::2] for part in signature.split("|")).get(name)


def _average_difference(a: Result, b: Result, tasks: Sequence[str]) -> Difference:
    samples = [np.mean([result.scores[task].samples for task in tasks], axis=0) for result in (a, b)]
    means = [float(np.mean([result.scores[task].score for task in tasks])) for result in (a, b)]
    return paired(means[0], means[1], samples[0], samples[1])


def _value(result: Result, task: str, tasks: Sequence[str]) -> float:
    if task != AVERAGE:
        return result.scores[task].score
    return float(np.mean([result.scores[name].score for name in result.averaged if name in tasks]))
