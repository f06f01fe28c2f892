"""Several results side by side: models with paired p-values, or seeds of one run with mean and standard deviation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent.display import counted, text_of
from selfsent.errors import SettingsError
from selfsent.evaluation.hybrid import WITH_WORDS, without_words
from selfsent.evaluation.results import AVERAGE, MARK, Result, Score
from selfsent.evaluation.stats.resampling import Difference, interval, mean_of_few, paired

if TYPE_CHECKING:
    from rich.table import Table


_BESIDE = (
    {"nearest_neighbour": "nearest neighbour", "v_measure": "V-measure"},
    {"mrr@10": "MRR@10", "recall@100": "recall@100", "map": "MAP"},
)
"""The metrics that every model has beside its score, and how they are shown."""


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
            **({"average_over": self._averaged} if AVERAGE in self.differences else {}),
        }

    def table(self) -> Table:
        """Below each task a row for every model: score and interval, and beside them the difference to the first."""
        from rich.table import Column, Table
        from rich.text import Text

        right = ("score", "95 % interval", "difference [95 %]", "p")
        first = Column("model", overflow="fold")
        table = Table(first, *(Column(name, justify="right", no_wrap=True) for name in right))
        for task, differences in self.differences.items():
            heading = self._average_label if task == AVERAGE else self.results[0].scores[task].title or task
            table.add_row(Text(heading, style="bold"))
            for result, found in zip(self.results, (None, *differences), strict=True):
                low, high = self._interval(result, task)
                cells = [self._shown(result, task), f"{low:.2f} to {high:.2f}"]
                if found:
                    cells += [f"{found.difference:+z.2f} [{found.low:+z.2f}, {found.high:+z.2f}]", f"{found.p:.3f}"]
                table.add_row(Text(result.model), *cells)
            table.add_section()
        told = [f"differences are to {self.results[0].model}, on the same items"]
        told += dict.fromkeys(line for each in self.results for line in each.meanings)
        table.caption, table.caption_justify = Text("\n".join(told)), "left"
        return table

    def beside(self) -> list[Table]:
        """What stands beside the accuracy of labelled texts, and beside nDCG@10, for every model: a table for each."""
        return [table for headings in _BESIDE if (table := self._beside(headings))]

    def _beside(self, headings: Mapping[str, str]) -> Table | None:
        from rich.table import Column, Table
        from rich.text import Text

        tasks = [
            t for t in self.tasks if all(headings.keys() <= each.scores[t].metrics.keys() for each in self.results)
        ]
        if not tasks:
            return None
        table = Table(Column("model", overflow="fold"), *(Column(name, justify="right") for name in headings.values()))
        for task in tasks:
            table.add_row(Text(self.results[0].scores[task].title or task, style="bold"))
            for result in self.results:
                table.add_row(Text(result.model), *map(result.scores[task].shown, headings))
        return table

    def __str__(self) -> str:
        """What the terminal shows."""
        return text_of(self.table())

    @property
    def _average_label(self) -> str:
        total = len(self.results[0].averaged)
        return AVERAGE if len(self._averaged) == total else f"average of {len(self._averaged)} of {total}"

    @property
    def _averaged(self) -> list[str]:
        return [task for task in self.results[0].averaged if task in self.tasks]

    def _interval(self, result: Result, task: str) -> tuple[float, float]:
        if task != AVERAGE:
            return result.scores[task].low, result.scores[task].high
        return interval(np.mean([result.scores[each].samples for each in self._averaged], axis=0))

    def _shown(self, result: Result, task: str) -> str:
        if task != AVERAGE or set(result.average_over) <= set(self.tasks):
            return result.shown(task)
        leaked = set(result.leaked) & set(self._averaged)
        return f"{_average(result, self._averaged):.2f}{MARK if leaked else ''}"


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
    """A score over seeds: mean, standard deviation (n - 1; 0 for one seed) and number of seeds."""

    mean: float
    deviation: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of one score for each seed."""
        return cls(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))

    @property
    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """The 95 % interval of the mean by Student's t: (low, high); none of a single seed."""
        from scipy.stats import t

        if self.seeds < 2:
            return None, None
        half = float(t.ppf(0.975, self.seeds - 1)) * self.deviation / self.seeds**0.5
        return self.mean - half, self.mean + half

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + (f" ± {self.deviation:.2f}" if self.seeds > 1 else "")


def over_seeds(results: Sequence[Result]) -> dict[str, Spread]:
    """Mean and standard deviation of every task, and of the average, over the seeds of one run.

    Raises:
        SettingsError: fewer than two seeds, or no task in common.
    """
    if len(results) < 2:
        raise SettingsError("a standard deviation needs two seeds or more")
    tasks = [task for task in results[0].scores if all(_same_items(other, results[0], task) for other in results)]
    if not tasks:
        raise SettingsError("these seeds have no task in common")
    values = {task: [result.scores[task].score for result in results] for task in tasks}
    averaged = [task for task in results[0].averaged if task in tasks]
    if len(averaged) > 1:
        values[AVERAGE] = np.mean([values[task] for task in averaged], axis=0).tolist()
    return {name: Spread.of(scores) for name, scores in values.items()}


def mean_over_seeds(results: Sequence[Result]) -> Result:
    """One result for several seeds of a run: mean scores, with their standard deviations.

    The intervals, and p-values against other models, say how far the mean hangs on the test items and on the seeds.
    How far a single run hangs on its seed is what the deviations say.

    Raises:
        SettingsError: fewer than two seeds, or no task in common.
    """
    spreads = over_seeds(results)
    first = results[0]
    scores = {task: mean_score([result.scores[task] for result in results]) for task in spreads if task != AVERAGE}
    return replace(
        first,
        model=f"{first.model} and {counted(len(results) - 1, 'more seed')}",
        scores=scores,
        seeds=tuple(result.model for result in results),
        deviations={name: spread.deviation for name, spread in spreads.items()},
    )


def seeds_of_runs(models: Sequence[str]) -> list[list[str]]:
    """Models grouped: run directories that were asked for the same but for the seed stand together, by their seeds.

    Args:
        models: run directories, their `model/` directories, or anything else, which stays by itself.

    Raises:
        SettingsError: no two runs differ in their seed alone.
    """
    groups: dict[str, dict[Any, str]] = {}
    for model in models:
        alone = without_words(model)
        asked, seed = _asked(Path(alone or model))
        group = groups.setdefault(f"{asked}{WITH_WORDS if alone else ''}" if asked else model, {})
        if seed in group:
            raise SettingsError(f"{group[seed]} and {model} are the same run with the same seed: give one of them")
        group[seed] = model
    if len(groups) == len(models):
        raise SettingsError("no two of these models are runs that differ in nothing but their seed")
    return [[group[seed] for seed in sorted(group)] for group in groups.values()]


def _asked(model: Path) -> tuple[str | None, Any]:
    """What a run was asked for, without the seed, and the seed."""
    for path in (model / "run.json", model.parent / "run.json"):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if "methods" in record:  # a comparison: what was chosen may be of any method
                continue
            asked = record["asked"]
            seed = asked["settings"].pop("seed")
            for stage in asked.get("stages", {}).values():  # of a recipe, which all have it
                stage.pop("seed", None)
        except (OSError, ValueError, KeyError, TypeError):
            continue
        return json.dumps(asked, sort_keys=True), seed
    return None, None


def mean_score(scores: Sequence[Score]) -> Score:
    """The mean of one task's scores over the seeds of a run, with an interval over its items and over seeds.

    What seeds add is Student's t with n − 1 degrees of freedom times the standard error. Runs with as many seeds are
    paired by the order of their seeds.

    Args:
        scores: (n,) of runs that differ in their seeds, over the same items.
    """
    of_seeds, count = np.stack([score.samples for score in scores]), len(scores)
    samples = mean_of_few(of_seeds, of_seeds.shape[1]) if count > 1 else of_seeds[0]
    low, high = interval(samples)
    shared = set.intersection(*(set(score.metrics) for score in scores))
    marks = [mark for mark in ("leaked", "aimed") if any(score.details.get(mark) for score in scores)]
    return Score(
        scores[0].name,
        float(np.mean([score.score for score in scores])),
        low,
        high,
        scores[0].n,
        f"{scores[0].signature}|seeds:{len(scores)}",
        {key: float(np.mean([score.metrics[key] for score in scores])) for key in scores[0].metrics if key in shared},
        {"of_seeds": [score.score for score in scores]} | dict.fromkeys(marks, True),
        scores[0].warnings,
        samples,
        title=scores[0].title,
    )


def _same_items(result: Result, first: Result, task: str) -> bool:
    if task not in result.scores:
        return False
    a, b = result.scores[task], first.scores[task]
    return a.n == b.n and _field(a.signature, "data") == _field(b.signature, "data")


def _field(signature: str, name: str) -> str | None:
    return dict(part.partition(":")[::2] for part in signature.split("|")).get(name)


def _average_difference(a: Result, b: Result, tasks: Sequence[str]) -> Difference:
    samples = [np.mean([result.scores[task].samples for task in tasks], axis=0) for result in (a, b)]
    return paired(_average(a, tasks), _average(b, tasks), samples[0], samples[1])


def _average(result: Result, tasks: Sequence[str]) -> float:
    return float(np.mean([result.scores[task].score for task in tasks]))
