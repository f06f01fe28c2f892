"""The run directory: config and record of a run, its log, its checkpoints, and the model that came out."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from selfsent.distributed import by_first, gathered, rank, together
from selfsent.errors import RunError
from selfsent.files import is_half_written, output_errors, remove, sweep_half_written, write_json, write_text
from selfsent.integrity import is_signed, signed
from selfsent.locks import PathLock, lock_directory
from selfsent.progress import Progress
from selfsent.run_record import Record, upgraded
from selfsent.training.agreement import check_agreement, first_difference
from selfsent.training.checkpoint import progress_in
from selfsent.version import __version__

_FILES = (
    *("run.json", "checkpoints", "model", "best", "metrics.jsonl", "scores.json", "report.html"),
    *("prepared", "stages", "folds", "seeds", "seeds.json", "evaluation.json", "beside.json", "recipe.yaml"),
    *("methods", "comparison.json", "trained"),
)
"""Files of a run, or of several runs, in its directory."""
_DISCARDED = "discarded"
_WATCHED = ("torch", "transformers", "sentence-transformers", "tokenizers", "accelerate", "numpy")


def versions() -> dict[str, str]:
    """The versions of everything a result may depend on."""
    found = {name: metadata.version(name) for name in _WATCHED}
    return {"selfsent": __version__, "python": platform.python_version(), **found}


class RunDirectory:
    """`run.json`, `metrics.jsonl`, `checkpoints/` and `model/`.

    Args:
        path: the directory; `check` tests whether it may be used, `match` sets the config, and `begin` writes first.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = path / "model"
        """Directory of the trained model."""
        self.checkpoints = path / "checkpoints"
        self.record = Record()
        self.resumed = False
        self._lock: PathLock | None = None
        self._seen: str | None = None
        """Content of `run.json` at `check`."""

    @property
    def status(self) -> str:
        """`running`, `trained` or `finished`."""
        return str(self.record.get("status", "running"))

    def check(self, resume: bool, overwrite: bool, read: Iterable[str | Path | None] = ()) -> None:
        """Reject a directory that cannot be used, before anything is written.

        Args:
            resume: take up the run that is there.
            overwrite: throw away the run that is there.
            read: inputs of the new run, such as encoders or a recipe; and None.

        Raises:
            RunError: there is a run and neither option is set, or an input of the new run would be deleted, or the
                directory holds something else, or cannot be written.
            OutputError: another process works in it.
        """
        mine: list[Record | None] = []

        def checked() -> Record | None:
            mine.append(self._checked(resume, overwrite, read))
            return mine[0]

        found = together(checked)
        self.record, self.resumed = found or Record(), found is not None
        there = [] if self.resumed else gathered(mine[0] is not None)
        if any(there):
            raise RunError(
                f"process {there.index(True)} has the run in {self.path}, and the first process, which goes on with it,"
                " has none: put it into a folder that all machines see, or copy it there"
            )

    def _checked(self, resume: bool, overwrite: bool, read: Iterable[str | Path | None]) -> Record | None:
        """The record of the run to resume, or None."""
        if resume and overwrite:
            raise RunError("resume=True and overwrite=True contradict each other: give one")
        try:
            self.path.name.encode()
        except UnicodeEncodeError:
            raise RunError(f"{str(self.path)!a} is not UTF-8: choose another `output`") from None
        for needed in read if overwrite else ():
            path = None if needed is None else Path(needed).resolve()
            if path and self.path.resolve() in (path, *path.parents):
                raise RunError(f"overwrite=True would throw away {needed}, which is read: choose another `output`")
        try:
            self._seen = self._text()
            old = None if self._seen is None else json.loads(self._seen)
            old = old if self._seen is None or isinstance(old, dict) else {}
            ours = old is not None and {"asked", "status"} & old.keys()
            if not ours and self.path.is_dir() and not all(map(is_half_written, self.path.iterdir())):
                raise RunError(f"{self.path} exists and is not a run of selfsent: choose another `output`")
        except NotADirectoryError:
            raise RunError(f"{self.path} is a file, or inside one: choose another `output`") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{self.path / 'run.json'} cannot be read: {error}") from None
        parent = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not os.access(parent, os.W_OK | os.X_OK):
            raise RunError(f"{parent} cannot be written to: choose another `output`")
        if self.path.is_dir():
            self._hold()
        if old is None or old.get("status") == _DISCARDED or overwrite:
            return None
        if not resume:
            problem = f"{self.path} already holds a run"
            advice = "give resume=True to go on, overwrite=True to start again, or another `output`"
            raise RunError(f"{problem}: {advice}")
        if not is_signed(old):
            problem = f"{self.path / 'run.json'} is not as it was written"
            advice = "it is damaged, or was changed by hand (then take its line checksum out, and it is believed)"
            raise RunError(f"{problem}: {advice}")
        return upgraded({name: value for name, value in old.items() if name != "checksum"})

    def _hold(self) -> None:
        """Lock out other processes while this object exists."""
        if rank() == 0 and self._lock is None:
            busy = f"another selfsent works in {self.path}: wait for it, or choose another `output`"
            self._lock = lock_directory(self.path, busy)
            if self._text() != self._seen:
                raise RunError(f"another selfsent has written to {self.path} meanwhile: give the command again")

    def _text(self) -> str | None:
        try:
            return (self.path / "run.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def match(
        self, config: dict[str, Any], defaults: Mapping[str, Any] | None = None, free: Collection[str] = ()
    ) -> None:
        """Set the config of the run; a resumed run must have had the same.

        The learning rate may change where the run went wrong and was stopped, in a run of several stages that of the
        stage that went wrong: `run.json` keeps both.

        Args:
            config: everything that decides the result, as JSON.
            defaults: values of names in its sections that a run of an older version did not know.
            free: names, such as `stages NAME`, that may still change.

        Raises:
            RunError: the old run, or another process, has another config.
        """
        self._config = json.loads(json.dumps(config))
        check_agreement(self._config)
        if self.record.get("stopped"):
            stage = self.record.get("stopped_in")
            free = (*free, f"stages {stage} learning_rate" if stage else "settings learning_rate")
        before = dict(self.record.get("config", {}))
        for section, values in json.loads(json.dumps(defaults or {})).items():
            if section in before:
                before[section] = {**values, **before[section]}
        if not self.record:
            return
        self.record["config"] = before
        if difference := first_difference(before, self._config, exclude=free):
            if self.status == "finished":
                problem = f"{self.path} is finished, and nothing of it can be done otherwise: {difference}"
                advice = f"name {self.model} as `base` with another `output`, or overwrite=True to start again"
                raise RunError(f"{problem}; to train its model on, {advice}")
            advice = "use the old value, overwrite=True, or another `output`"
            raise RunError(f"{self.path} cannot be resumed: {difference}; {advice}")

    def begin(self, steps: bool = True) -> None:
        """Write the first files of a new run, replacing an old one; a resumed run keeps its files.

        Args:
            steps: whether it takes steps itself, and has checkpoints.

        Raises:
            OutputError: the directory cannot be written.
        """
        self._hold()
        if rank() == 0:
            self.sweep()
            if not self.resumed:
                # First, so that a process killed half-way leaves no run that could be resumed.
                write_json(self.path / "run.json", {"status": _DISCARDED})
                for name in _FILES[1:]:
                    remove(self.path / name)
        self.path.mkdir(parents=True, exist_ok=True)  # on other machines for temporary files
        if rank() == 0 and steps:
            self.checkpoints.mkdir(exist_ok=True)
        if not self.resumed:
            started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            self.update(status="running", config=self._config, command=sys.argv, versions=versions(), started=started)
        elif change := first_difference(self.record["config"], self._config):
            changes = [*self.record.get("changes", []), {"change": change, "because": self.record.get("stopped")}]
            self.update(config=self._config, changes=changes, stopped=None, stopped_in=None)

    def sweep(self) -> None:
        """Remove half-written files of a killed process."""
        for folder in (self.path, self.checkpoints, self.model, self.path / "prepared"):
            sweep_half_written(folder)

    def abandon(self) -> None:
        """Delete the files of a run that cannot begin, and the directory if it is then empty."""
        if rank() == 0:
            for name in _FILES:
                remove(self.path / name)
            with suppress(OSError):  # files of others
                self.path.rmdir()

    def update(self, **changes: Any) -> None:
        """Change entries of `run.json`."""
        self.record.update(changes)
        if rank() == 0:
            write_json(self.path / "run.json", signed(self.record))
        if self.status == "finished":
            self._lock = None

    def log(self, entry: dict[str, Any]) -> None:
        """Add a line to `metrics.jsonl`."""
        path = self.path / "metrics.jsonl"
        with output_errors(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """The entries of `metrics.jsonl`, without incomplete or damaged lines."""
        lines = []
        try:
            text = (self.path / "metrics.jsonl").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        for line in text.splitlines():
            with suppress(ValueError, TypeError, KeyError):
                entry = json.loads(line)
                if type(entry["step"]) is int:
                    lines.append(entry)
        return lines

    def forget_after(self, step: int) -> None:
        """Drop the log lines and checkpoints of later steps, which will be done again."""
        kept = [json.dumps(entry) + "\n" for entry in self.metrics() if entry["step"] <= step]
        write_text(self.path / "metrics.jsonl", "".join(kept))
        self.drop_checkpoints_after(step)

    def drop_checkpoints_after(self, step: int) -> None:
        """Remove the checkpoints of later steps."""
        for directory in self.checkpoints.glob("step-*"):
            if directory > self.checkpoint_at(step):
                remove(directory)

    def checkpoint_at(self, step: int) -> Path:
        """Path of the checkpoint of a step."""
        return self.checkpoints / f"step-{step:08d}"

    def newest_checkpoint(self, progress: Progress) -> Path | None:
        """The first process' newest checkpoint that is whole; a notice names those that are not."""

        def newest() -> Path | None:
            for directory in sorted(self.checkpoints.glob("step-*"), reverse=True):
                if progress_in(directory):
                    return directory
                progress.notice(f"checkpoint {directory.name} is damaged or cut short: going back to the one before")
            return None

        return by_first(newest)

    def drop_old_checkpoints(self, keep: int, sound: int) -> None:
        """Remove all but the newest `keep` checkpoints, and the newest of a step no later than `sound`."""
        found = sorted(self.checkpoints.glob("step-*"))
        good = [directory for directory in found if directory <= self.checkpoint_at(sound)]
        for directory in found[:-keep]:
            if directory not in good[-1:]:
                remove(directory)
