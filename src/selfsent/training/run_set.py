"""Several runs in one directory: the seeds and stages of a recipe, the methods of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from selfsent.distributed import join
from selfsent.errors import SelfsentError
from selfsent.files import read_json
from selfsent.progress import Progress
from selfsent.training.run_directory import RunDirectory

R = TypeVar("R")


class RunSet(RunDirectory):
    """The directory of several runs, in turn: each is begun, gone on with, or read if it is finished.

    Args:
        output: the directory.
        resume: take up the runs that are there.
        overwrite: throw away the runs that are there.
        read: inputs of the runs.
        progress: receives all runs.
        recorded: errors that do not end the set.

    Raises:
        SelfsentError: as `RunDirectory.check`.
    """

    def __init__(
        self,
        output: str | Path,
        resume: bool,
        overwrite: bool,
        read: Iterable[str | Path | None],
        progress: Progress,
        *recorded: type[SelfsentError],
    ) -> None:
        join()
        super().__init__(Path(output))
        self.check(resume, overwrite, read)
        self.progress, self.recorded, self._empty = progress, recorded, not self.resumed
        self.failures = dict[str, str]()
        """Reasons of failed runs, by name."""

    def run(
        self, name: str, path: Path, train: Callable[..., R], load: Callable[[Path], R] | None = None, title: str = ""
    ) -> R | None:
        """One finished run; None if it failed.

        Args:
            name: of the run.
            path: its directory.
            train: called with `output`, `resume` and `progress`.
            load: reads a finished run; by default it is trained to its end again, silently.
            title: shown before it, in place of the name.
        """
        found = read_json(path / "run.json")
        finished = found.get("status") == "finished"
        if finished and load:
            self.progress.notice(f"{name} is finished already")
            return load(path)
        progress = Progress() if finished else self.progress
        progress.notice(title or name)
        try:
            return train(output=path, resume=bool(found), progress=progress)
        except self.recorded as error:
            self.failures[name] = getattr(error, "reason", str(error))
            self.progress.notice(f"{name} failed: {self.failures[name]}")
            return None
        except SelfsentError:
            if self._empty and not path.exists():
                self.abandon()
            raise
        finally:
            self._empty = False
