"""A recipe with several seeds, and a summary of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from selfsent.display import table_of, text_of
from selfsent.distributed import rank, wait
from selfsent.errors import SettingsError, TrainingError
from selfsent.evaluation.results import MARK, MEANING
from selfsent.files import read_json, write_json
from selfsent.progress import Progress, shown
from selfsent.recipes.recipe import read_recipe
from selfsent.recipes.run import check_data, read_by, train_stages
from selfsent.training.run_set import RunSet


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


@dataclass(repr=False)
class Seeds:
    """Runs with several seeds.

    Args:
        directory: of the runs, each in `seeds/SEED/`.
        figures: scores of the finished runs, by seed.
        failures: reasons of the failed ones, by seed.
        leaked: names of contaminated scores, of the runs.
    """

    directory: Path
    figures: dict[int, dict[str, float]] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    leaked: tuple[str, ...] = ()

    @classmethod
    def read(cls, directory: Path) -> Seeds:
        """The runs in `seeds.json` of a directory; none without the file."""
        known = read_json(directory / "seeds.json")
        figures = {int(seed): values for seed, values in known.get("seeds", {}).items()}
        failures = {int(seed): reason for seed, reason in known.get("failures", {}).items()}
        return cls(directory, figures, failures, tuple(known.get("leaked", ())))

    @property
    def summary(self) -> dict[str, Spread]:
        """Mean and deviation of the scores common to all finished runs."""
        runs = list(self.figures.values())
        names = [name for name in runs[0] if all(name in run for run in runs)] if runs else []
        return {name: Spread.of([run[name] for run in runs]) for name in names}

    def table(self) -> Table:
        """A row for each score: mean and deviation, then the finished seeds."""
        summary, rows = self.summary, []
        for name, spread in summary.items():
            mark = MARK if name in self.leaked else ""
            rows.append([name, f"{spread}{mark}", *(f"{run[name]:.2f}{mark}" for run in self.figures.values())])
        headings = ["", "mean ± deviation", *(f"seed {seed}" for seed in self.figures)]
        return table_of(headings, rows, caption=MEANING if {*self.leaked} & {*summary} else "")

    def __str__(self) -> str:
        """The table as text, and the reasons of failed seeds."""
        return text_of(self.table(), self.complaints)

    __repr__ = __str__

    @property
    def complaints(self) -> list[str]:
        """Reasons of failed seeds, a line each."""
        lines = [f"seed {seed} failed: {reason}" for seed, reason in self.failures.items()]
        count = len(self.figures) + len(lines)
        return [f"{len(lines)} of {count} seeds failed, and are not in the mean:", *lines] if lines else []

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "seeds": {str(seed): figures for seed, figures in self.figures.items()},
            "failures": {str(seed): reason for seed, reason in self.failures.items()},
            "leaked": list(self.leaked),
            "summary": {
                name: {"mean": spread.mean, "deviation": spread.deviation if spread.seeds > 1 else None}
                for name, spread in self.summary.items()
            },
        }


def train_seeds(
    recipe: str | Path,
    count: int,
    output: str | Path = "run",
    *,
    variant: str | None = None,
    base: str | Path | None = None,
    seed: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    data: str | Path | None = None,
    progress: Progress | None = None,
    quiet: bool = False,
) -> Seeds:
    """Train a recipe with several seeds in turn; the reason of a failed one is recorded.

    Args:
        recipe: its file.
        count: number of seeds.
        output: the directory: a run in `seeds/SEED/` for each, and `seeds.json`.
        variant: one of the variants of the file.
        base: the encoder to start from instead of the file's.
        seed: the first seed, 0 by default; the others follow.
        resume: continue in `output`; finished and failed seeds are not run again.
        overwrite: delete what is in `output`.
        data: a mirror of the data sets; SELFSENT_DATA by default.
        progress: receives the progress of all runs; by default it is shown.
        quiet: shows nothing.

    Raises:
        SettingsError: fewer than two seeds, or a fault of the recipe, with file and line.
        RunError: the directory cannot be used.
        TrainingError: all seeds failed.
    """
    if count < 2:
        raise SettingsError(f"seeds is {count}; a standard deviation needs 2 or more")
    given: dict[str, Any] = {"variant": variant, "base": base, "data": data}
    numbers = range(seed or 0, (seed or 0) + count)
    read_recipe(recipe, variant, base, numbers[0])  # an encoder that is only scored has no seeds
    plain = read_recipe(recipe, variant, base, seed)
    with shown(progress, quiet) as progress:
        runs = RunSet(output, resume, overwrite, read_by(plain), progress, TrainingError)
        check_data(plain, data)
        runs.match({"seeds": list(numbers), **plain.to_json()})
        wait()  # before the first process begins a run
        runs.begin(steps=False)
        done = Seeds.read(runs.path) if runs.resumed else Seeds(runs.path)
        for number in numbers:
            if number in done.figures or number in done.failures:
                continue
            name, train = f"seed {number}", partial(train_stages, recipe, seed=number, **given)
            if run := runs.run(name, runs.path / "seeds" / str(number), train):
                done.figures[number], done.leaked = run.figures, tuple(dict.fromkeys((*done.leaked, *run.leaked)))
            else:
                done.failures[number] = runs.failures[name]
            wait()
            if rank() == 0:
                write_json(runs.path / "seeds.json", done.to_json())
    runs.update(status="finished")
    if not done.figures:
        why = next(iter(done.failures.values()))
        problem = f"all {count} seeds failed; the first one: {why}; give `overwrite` and a lower learning rate"
        raise TrainingError(problem)
    return done
