"""Several results side by side: models with paired p-values, or seeds of one run with mean and standard deviation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent.display import counted, span, table_of, text_of
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
        """Below each task a row for each model: score, interval, and the difference to the first."""
        rows: list[list[str]] = []
        ends, headings = [], {}
        for task, differences in self.differences.items():
            heading = self._average_label if task == AVERAGE else self.results[0].scores[task].title or task
            headings[heading] = "bold"
            rows.append([heading])
            for result, found in zip(self.results, (None, *differences), strict=True):
                cells = [result.model, self._shown(result, task), span(*self._interval(result, task))]
                rows.append(cells + ([found.shown, f"{found.p:.3f}"] if found else []))
            ends.append(len(rows) - 1)
        below = [f"differences are to {self.results[0].model}, on the same items"]
        below += dict.fromkeys(line for each in self.results for line in each.meanings)
        columns = ("model", "score", "95 % interval", "difference [95 %]", "p")
        return table_of(columns, rows, caption="\n".join(below), styles=headings, sections=ends)

    def beside(self) -> list[Table]:
        """Tables of the metrics beside the accuracy of labelled texts, and beside nDCG@10."""
        found = []
        for headings in _BESIDE:
            rows: list[list[str]] = []
            for task in self.tasks:
                if all(headings.keys() <= each.scores[task].metrics.keys() for each in self.results):
                    rows.append([self.results[0].scores[task].title or task])
                    rows += [[each.model, *map(each.scores[task].shown, headings)] for each in self.results]
            styles = {cells[0]: "bold" for cells in rows if len(cells) == 1}
            found += [table_of(["model", *headings.values()], rows, styles=styles)] if rows else []
        return found

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
    tasks = _shared(results)
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


def mean_over_seeds(results: Sequence[Result]) -> Result:
    """One result for several seeds of a run: mean scores, with their standard deviations.

    The intervals, and p-values against other models, say how far the mean hangs on the test items and on the seeds.
    How far a single run hangs on its seed is what the deviations say.

    Raises:
        SettingsError: fewer than two seeds, or no task in common.
    """
    if len(results) < 2:
        raise SettingsError("a standard deviation needs two seeds or more")
    first, tasks = results[0], _shared(results)
    if not tasks:
        raise SettingsError("these seeds have no task in common")
    values = {task: [result.scores[task].score for result in results] for task in tasks}
    if len(averaged := [task for task in first.averaged if task in tasks]) > 1:
        values[AVERAGE] = np.mean([values[task] for task in averaged], axis=0).tolist()
    return replace(
        first,
        model=f"{first.model} and {counted(len(results) - 1, 'more seed')}",
        scores={task: mean_score([result.scores[task] for result in results]) for task in tasks},
        seeds=tuple(result.model for result in results),
        deviations={name: Spread.of(each).deviation for name, each in values.items()},
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


def _shared(results: Sequence[Result]) -> tuple[str, ...]:
    """The tasks that all of some results have, over the same items."""

    def items(score: Score) -> tuple[int, str | None]:
        return score.n, dict(part.partition(":")[::2] for part in score.signature.split("|")).get("data")

    first, *others = results
    return tuple(
        task
        for task, score in first.scores.items()
        if all(task in other.scores and items(other.scores[task]) == items(score) for other in others)
    )


def _average_difference(a: Result, b: Result, tasks: Sequence[str]) -> Difference:
    samples = [np.mean([result.scores[task].samples for task in tasks], axis=0) for result in (a, b)]
    return paired(_average(a, tasks), _average(b, tasks), samples[0], samples[1])


def _average(result: Result, tasks: Sequence[str]) -> float:
    return float(np.mean([result.scores[task].score for task in tasks]))
