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
from selfsent.evaluation.lexical import WITH_WORDS, without_words
from selfsent.evaluation.results import AVERAGE, Result, Score
from selfsent.evaluation.stats.resampling import Difference, interval, mean_of_few, paired

if TYPE_CHECKING:
    from rich.table import Table

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
            task: [{"model": model, **vars(found)} for model, found in zip(models[1:], differences, strict=True)]
            for task, differences in self.differences.items()
        }
        found = {"against": models[0], "results": [each.to_json() for each in self.results], "differences": plain}
        return found | ({"average_over": list(self.shared[0].average_over)} if AVERAGE in plain else {})

    def table(self) -> Table:
        """For each task, a row per model: score, interval, and the difference to the first."""
        first, rows, sections, headings = self.shared[0], list[list[str]](), list[int](), dict[str, str]()
        for task, differences in self.differences.items():
            heading = first.average_label if task == AVERAGE else first.scores[task].title or task
            headings[heading] = "bold"
            rows.append([heading])
            for result, found in zip(self.shared, (None, *differences), strict=True):
                ends = span(score.low, score.high) if (score := result.score_of(task)) else ""
                less = [found.shown, f"{found.p:.3f}"] if found else []
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
        means = [(mean.score, mean.samples) for each in shared if (mean := each.average_score)]
        differences[AVERAGE] = tuple(paired(score, means[0][0], samples, means[0][1]) for score, samples in means[1:])
    return Comparison(tuple(results), shared, differences)


@dataclass(frozen=True)
class Spread:
    """The aggregation over seeds: mean, standard deviation (n - 1; 0 for one seed) and number of seeds."""

    mean: float
    deviation: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of scores, one per seed."""
        return cls(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))

    @property
    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """The 95 % interval of the mean by Student's t: (low, high); none for a single seed."""
        from scipy.stats import t

        if self.seeds < 2:
            return None, None
        half = float(t.ppf(0.975, self.seeds - 1)) * self.deviation / self.seeds**0.5
        return self.mean - half, self.mean + half

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + (f" ± {self.deviation:.2f}" if self.seeds > 1 else "")


def mean_over_seeds(results: Sequence[Result]) -> Result:
    """One result for several seeds of a run: mean scores, with their standard deviations.

    Intervals and p-values cover test items and seeds; deviations are those of a single run.

    Raises:
        SettingsError: fewer than two seeds, or no task in common.
    """
    if len(results) < 2:
        raise SettingsError("a standard deviation needs two seeds or more")
    shared = _shared(results)
    first = shared[0]
    if not first.scores:
        raise SettingsError("these seeds have no task in common")
    values = {task: [each.scores[task].score for each in shared] for task in first.scores}
    if len(first.average_over) > 1:
        values[AVERAGE] = np.mean([values[task] for task in first.average_over], axis=0).tolist()
    return replace(
        first,
        model=f"{first.model} and {counted(len(results) - 1, 'more seed')}",
        scores={task: mean_score([each.scores[task] for each in shared]) for task in first.scores},
        seeds=tuple(result.model for result in results),
        deviations={name: Spread.of(each).deviation for name, each in values.items()},
    )


def seeds_of_runs(models: Sequence[str]) -> list[list[str]]:
    """Models in groups of runs that differ only in the seed, ordered by seed.

    Args:
        models: run directories, their `model/` directories, or other models, each in a group of its own.

    Raises:
        SettingsError: no two runs differ only in the seed.
    """
    groups: dict[str, dict[Any, str]] = {}
    for model in models:
        alone = without_words(model)
        config, seed = _config(Path(alone or model))
        group = groups.setdefault(f"{config}{WITH_WORDS if alone else ''}" if config else model, {})
        if seed in group:
            raise SettingsError(f"{group[seed]} and {model} are the same run with the same seed: give one of them")
        group[seed] = model
    if len(groups) == len(models):
        raise SettingsError("no two of these models are runs that differ in nothing but their seed")
    return [[group[seed] for seed in sorted(group)] for group in groups.values()]


def _config(model: Path) -> tuple[str | None, Any]:
    """The config of a run without the seed, and the seed."""
    for path in (model / "run.json", model.parent / "run.json"):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if "methods" in record:  # a comparison: its model may be of any method
                continue
            config = record["asked"]
            seed = config["settings"].pop("seed")
            for stage in config.get("stages", {}).values():  # every stage of a recipe has it
                stage.pop("seed", None)
        except (OSError, ValueError, KeyError, TypeError):
            continue
        return json.dumps(config, sort_keys=True), seed
    return None, None


def mean_score(scores: Sequence[Score]) -> Score:
    """The mean of one task's scores over the seeds of a run, with an interval over items and seeds.

    Seeds add Student's t with n − 1 degrees of freedom times the standard error. Runs with equal numbers of seeds are
    paired in order.

    Args:
        scores: (n,) of runs with different seeds, over the same items.
    """
    first, of_seeds = scores[0], np.stack([score.samples for score in scores])
    samples = mean_of_few(of_seeds) if len(scores) > 1 else of_seeds[0]
    metrics = [key for key in first.metrics if all(key in score.metrics for score in scores)]
    marks = [mark for mark in ("leaked", "aimed") if any(score.details.get(mark) for score in scores)]
    return Score(
        first.name,
        float(np.mean([score.score for score in scores])),
        *interval(samples),
        first.n,
        f"{first.signature}|seeds:{len(scores)}",
        {key: float(np.mean([score.metrics[key] for score in scores])) for key in metrics},
        {"of_seeds": [score.score for score in scores]} | dict.fromkeys(marks, True),
        first.warnings,
        samples,
        title=first.title,
    )


def _shared(results: Sequence[Result]) -> tuple[Result, ...]:
    """The results restricted to common tasks over the same items."""

    def items(score: Score) -> tuple[int, str | None]:
        return score.n, dict(part.partition(":")[::2] for part in score.signature.split("|")).get("data")

    first, *others = results
    tasks = [
        task
        for task, score in first.scores.items()
        if all(task in other.scores and items(other.scores[task]) == items(score) for other in others)
    ]
    found = []
    for each in results:
        lost = not set(each.average_over) <= set(tasks)
        deviations = {name: value for name, value in each.deviations.items() if name != AVERAGE or not lost}
        scores = {task: each.scores[task] for task in tasks}
        found.append(replace(each, scores=scores, averaged=first.averaged, deviations=deviations))
    return tuple(found)
