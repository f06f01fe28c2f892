"""The same training with several seeds: every run is kept, and their figures are summarised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.display import table_of, text_of
from selfsent.distributed import join, rank, wait
from selfsent.errors import SelfsentError, SettingsError, TrainingError
from selfsent.evaluation.results import MARK, MEANING
from selfsent.evaluation.side_by_side import Spread
from selfsent.files import read_json, write_json
from selfsent.progress import Progress, Shown
from selfsent.training.run_directory import RunDirectory

if TYPE_CHECKING:
    from rich.table import Table

TrainOne = Callable[[int, Path, bool], Mapping[str, float]]
"""From a seed, a run directory and whether to go on with the run in it, to the figures of the run."""


@dataclass(repr=False)
class Seeds:
    """What came of several seeds.

    Args:
        directory: where the runs lie, each in `seeds/SEED/`.
        figures: by seed, the figures of the runs that ended well.
        failures: by seed, why the others did not.
        leaked: figures that are no test, as `run.json` of the runs says.
    """

    directory: Path
    figures: dict[int, dict[str, float]] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    leaked: tuple[str, ...] = ()

    @property
    def summary(self) -> dict[str, Spread]:
        """Mean and deviation of the figures that every good run has."""
        runs = list(self.figures.values())
        names = [name for name in runs[0] if all(name in run for run in runs)] if runs else []
        return {name: Spread.of([run[name] for run in runs]) for name in names}

    def table(self) -> Table:
        """A line for every figure: mean and deviation, then the seeds that ended well."""
        rows = []
        for name, spread in self.summary.items():
            mark = MARK if name in self.leaked else ""
            rows.append([name, f"{spread}{mark}", *(f"{run[name]:.2f}{mark}" for run in self.figures.values())])
        headings = ["", "mean ± deviation", *(f"seed {seed}" for seed in self.figures)]
        return table_of(headings, rows, caption=MEANING if {*self.leaked} & {*self.summary} else "")

    def __str__(self) -> str:
        """What the terminal shows."""
        return text_of(self.table(), self.complaints)

    __repr__ = __str__

    @property
    def complaints(self) -> list[str]:
        """Why some seeds failed, a line for each."""
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
    train_one: TrainOne,
    *,
    first: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    check: Callable[[], Mapping[str, Any] | None] = lambda: None,
    read: Iterable[str | Path] = (),
    progress: Progress | None = None,
    quiet: bool = False,
) -> Seeds:
    """Train with several seeds, one after the other; one that fails is kept, with its reason, and the next one begins.

    Args:
        count: how many seeds.
        output: the directory: a run in `seeds/SEED/` for each, and `seeds.json`.
        train_one: trains with one seed; figures that the run's `run.json` names under `leaked` are marked.
        first: the first seed; the others follow.
        resume: go on in `output`; seeds that ended, well or not, are not run again.
        overwrite: throw away what is in `output`.
        check: raises what is wrong with the training, before an old run is thrown away; and says what is asked for
            with every seed, as JSON, which a run that is gone on with must have in common.
        read: what the training reads, and an old run that is thrown away must not hold.
        progress: hears what the seeds are; by default it is shown.
        quiet: nothing is shown.

    Raises:
        SettingsError: fewer than two seeds.
        RunError: the directory cannot be used.
        TrainingError: all seeds failed.
    """
    if count < 2:
        raise SettingsError(f"--seeds is {count}; a standard deviation needs 2 or more")
    notice = (progress or (Progress() if quiet else Shown())).notice
    join()
    directory = RunDirectory(Path(output))
    directory.check(resume, overwrite, read)
    directory.match({"seeds": list(range(first, first + count)), **(check() or {})})
    wait()  # or a slow process would find the run that the first one begins
    directory.begin(steps=False)
    done = seeds_of(directory.path) if directory.resumed else Seeds(directory.path)
    for seed in range(first, first + count):
        if seed in done.figures or seed in done.failures:
            continue
        place = directory.path / "seeds" / str(seed)
        notice(f"seed {seed}")
        try:
            done.figures[seed] = dict(train_one(seed, place, (place / "run.json").is_file() and directory.resumed))
            done.leaked = tuple(dict.fromkeys((*done.leaked, *read_json(place / "run.json").get("leaked", ()))))
        except TrainingError as error:
            done.failures[seed] = error.reason
            notice(f"seed {seed} failed: {error.reason}")
        except SelfsentError:
            if rank() == 0 and not (directory.path / "seeds").exists():  # nothing was begun
                (directory.path / "run.json").unlink()
                if not any(directory.path.iterdir()):
                    directory.path.rmdir()
            raise
        wait()
        if rank() == 0:
            write_json(directory.path / "seeds.json", done.to_json())
    if rank() == 0:
        directory.update(status="finished")
    if not done.figures:
        why = next(iter(done.failures.values()))
        raise TrainingError(
            f"all {count} seeds failed; the first one: {why}; give --overwrite and a lower learning rate"
        )
    return done


def seeds_of(place: Path) -> Seeds:
    """What `seeds.json` says of the runs that ended; no seeds where there is none."""
    known = read_json(place / "seeds.json")
    figures = {int(seed): values for seed, values in known.get("seeds", {}).items()}
    failures = {int(seed): reason for seed, reason in known.get("failures", {}).items()}
    return Seeds(place, figures, failures, tuple(known.get("leaked", ())))
