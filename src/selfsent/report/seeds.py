"""The same training with several seeds, and a summary of the scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent.display import table_of, text_of
from selfsent.distributed import join, rank, wait
from selfsent.errors import SelfsentError, SettingsError, TrainingError
from selfsent.evaluation.results import MARK, MEANING
from selfsent.files import read_json, write_json
from selfsent.progress import Progress, Shown
from selfsent.training.run_directory import RunDirectory

if TYPE_CHECKING:
    from rich.table import Table


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
        leaked: names of contaminated scores, from `run.json` of the runs.
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


def over_seeds(
    count: int,
    output: str | Path,
    train_one: Callable[[int, Path, bool], Mapping[str, float]],
    *,
    first: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    check: Callable[[], Mapping[str, Any] | None] = lambda: None,
    read: Iterable[str | Path] = (),
    progress: Progress | None = None,
    quiet: bool = False,
) -> Seeds:
    """Train with several seeds in turn; the reason of a failed one is recorded.

    Args:
        count: number of seeds.
        output: the directory: a run in `seeds/SEED/` for each, and `seeds.json`.
        train_one: trains, given a seed, a run directory and whether to resume; returns scores. Those named in `leaked`
            of the run's `run.json` are marked.
        first: the first seed; the others follow.
        resume: continue in `output`; finished and failed seeds are not run again.
        overwrite: delete what is in `output`.
        check: raises errors of the training before an old run is deleted; returns the common configuration, as JSON,
            which a resumed run must share.
        read: inputs of the training, which a deleted run must not contain.
        progress: receives the seeds; by default they are shown.
        quiet: shows nothing.

    Raises:
        SettingsError: fewer than two seeds.
        RunError: the directory cannot be used.
        TrainingError: all seeds failed.
    """
    if count < 2:
        raise SettingsError(f"seeds is {count}; a standard deviation needs 2 or more")
    notice = (progress or (Progress() if quiet else Shown())).notice
    join()
    directory = RunDirectory(Path(output))
    directory.check(resume, overwrite, read)
    directory.match({"seeds": list(range(first, first + count)), **(check() or {})})
    wait()  # before the first process begins a run
    directory.begin(steps=False)
    done = Seeds.read(directory.path) if directory.resumed else Seeds(directory.path)
    for seed in range(first, first + count):
        if seed in done.figures or seed in done.failures:
            continue
        path = directory.path / "seeds" / str(seed)
        notice(f"seed {seed}")
        try:
            done.figures[seed] = dict(train_one(seed, path, (path / "run.json").is_file() and directory.resumed))
            done.leaked = tuple(dict.fromkeys((*done.leaked, *read_json(path / "run.json").get("leaked", ()))))
        except TrainingError as error:
            done.failures[seed] = error.reason
            notice(f"seed {seed} failed: {error.reason}")
        except SelfsentError:
            if not (directory.path / "seeds").exists():  # no run was begun
                directory.abandon()
            raise
        wait()
        if rank() == 0:
            write_json(directory.path / "seeds.json", done.to_json())
    if rank() == 0:
        directory.update(status="finished")
    if not done.figures:
        why = next(iter(done.failures.values()))
        raise TrainingError(
            f"all {count} seeds failed; the first one: {why}; give `overwrite` and a lower learning rate"
        )
    return done
