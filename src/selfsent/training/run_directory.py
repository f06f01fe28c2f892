"""The run directory: what was asked, what happened, where it can go on, and what came out."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from selfsent.distributed import by_first, gathered, rank, together
from selfsent.errors import RunError
from selfsent.files import is_half_written, output_errors, remove, sweep_half_written, write_json, write_text
from selfsent.integrity import is_signed, signed
from selfsent.locks import DirectoryLock, lock_directory
from selfsent.methods.method import RETIRED
from selfsent.training.agreement import check_agreement, first_difference
from selfsent.training.checkpoint import is_whole
from selfsent.version import __version__

_WHOLES = (
    *("stages", "folds", "seeds", "seeds.json", "evaluation.json", "beside.json", "recipe.yaml"),
    *("methods", "comparison.json"),
)
"""What it writes into the directory of several runs."""
_PARTS = (
    *("run.json", "checkpoints", "model", "best", "metrics.jsonl", "trackers", "scores.json", "report.html"),
    *("prepared", *_WHOLES),
)
"""What selfsent writes into a run directory."""
_DISCARDED = "discarded"
_WATCHED = ("torch", "transformers", "sentence-transformers", "tokenizers", "accelerate", "numpy")


def versions() -> dict[str, str]:
    """The versions of everything a result may depend on."""
    found = {name: metadata.version(name) for name in _WATCHED}
    return {"selfsent": __version__, "python": platform.python_version(), **found}


class RunDirectory:
    """`run.json`, `metrics.jsonl`, `checkpoints/` and `model/`.

    Args:
        path: the directory; `check` says whether it may be used, `match` what for, and `begin` is the first to write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record: dict[str, Any] = {}
        self.resumed = False
        self._held: DirectoryLock | None = None
        self._seen: str | None = None
        """`run.json` as it was when this was checked."""

    @property
    def model(self) -> Path:
        """Where the trained model lies at the end."""
        return self.path / "model"

    @property
    def checkpoints(self) -> Path:
        """Where the checkpoints lie."""
        return self.path / "checkpoints"

    @property
    def status(self) -> str:
        """`running`, `trained` or `finished`."""
        return str(self.record.get("status", "running"))

    def check(self, resume: bool, overwrite: bool, read: Iterable[str | Path | None] = ()) -> None:
        """Refuse a directory that cannot be used as asked, before anything is written.

        Args:
            resume: take up the run that is there.
            overwrite: throw away the run that is there.
            read: what the new run needs: encoders, a recipe; and None.

        Raises:
            RunError: there is a run and neither was asked for, or it is needed and would be thrown away, or the
                directory is not a run's, or cannot be written.
            OutputError: another process works in it.
        """
        mine: list[bool] = []

        def checked() -> tuple[dict[str, Any], bool]:
            record, resumed = self._checked(resume, overwrite, read)
            mine.append(resumed)
            return record, resumed

        self.record, self.resumed = together(checked)
        if not self.resumed and any(there := gathered(mine[0])):
            raise RunError(
                f"process {there.index(True)} has the run in {self.path}, and the first process, which goes on with it,"
                " has none: put it into a folder that all machines see, or copy it there"
            )

    def _checked(self, resume: bool, overwrite: bool, read: Iterable[str | Path | None]) -> tuple[dict[str, Any], bool]:
        """The record of the run that is to be taken up, if any, and whether there is one."""
        if resume and overwrite:
            raise RunError("--resume and --overwrite contradict each other: give one")
        try:
            self.path.name.encode()
        except UnicodeEncodeError:
            raise RunError(f"{str(self.path)!a} is not UTF-8: choose another --output") from None
        for needed in read if overwrite else ():
            place = None if needed is None else Path(needed).resolve()
            if place and self.path.resolve() in (place, *place.parents):
                raise RunError(f"--overwrite would throw away {needed}, which is read: choose another --output")
        try:
            old = self._read()
            ours = old is not None and {"asked", "status"} & old.keys()
            if not ours and self.path.is_dir() and not all(map(is_half_written, self.path.iterdir())):
                raise RunError(f"{self.path} exists and is not a run of selfsent: choose another --output")
        except NotADirectoryError:
            raise RunError(f"{self.path} is, or lies in, a file: choose another --output") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{self.path / 'run.json'} cannot be read: {error}") from None
        place = next(path for path in (self.path, *self.path.absolute().parents) if path.exists())
        if not os.access(place, os.W_OK | os.X_OK):
            raise RunError(f"{place} cannot be written to: choose another --output")
        if self.path.is_dir():
            self._hold()
        if old is None or old.get("status") == _DISCARDED:
            return {}, False
        if not (resume or overwrite):
            raise RunError(
                f"{self.path} already holds a run: give --resume to go on, --overwrite to start again,"
                " or another --output"
            )
        if not resume:
            return {}, False
        if not is_signed(old):
            raise RunError(
                f"{self.path / 'run.json'} is not as it was written: it is damaged, or was changed by hand (then"
                " take its line checksum out, and it is believed)"
            )
        old.pop("checksum", None)
        return old, True

    def _hold(self) -> None:
        """Keep other processes out, from now on to the end of this object."""
        if rank() == 0 and self._held is None:
            self._held = lock_directory(
                self.path, f"another selfsent works in {self.path}: wait for it, or choose another --output"
            )
            if self._text() != self._seen:
                raise RunError(f"another selfsent has written to {self.path} meanwhile: give the command again")

    def match(
        self, asked: dict[str, Any], defaults: Mapping[str, Any] | None = None, free: Collection[str] = ()
    ) -> None:
        """Say what the run is to be; one that is resumed must have been asked for the same.

        Where the run went wrong and was stopped, the learning rate may be another one, in a run of several stages that
        of the stage that went wrong: `run.json` keeps both.

        Args:
            asked: everything that decides the result, as JSON.
            defaults: what holds of names in its sections that the old run, of an older version, did not know.
            free: places, such as `stages NAME`, that may be other than they were, as nothing has come of them yet.

        Raises:
            RunError: the old run was asked for something else, or another process is.
        """
        self._asked = json.loads(json.dumps(asked))
        check_agreement(self._asked)
        free = (*free, _rate_of(self.record.get("stopped_in"))) if self.record.get("stopped") else free
        before = self.record.get("asked", {})
        for section, values in json.loads(json.dumps(defaults or {})).items():
            if section in before:
                before[section] = {**values, **before[section]}
        if "options" in before:
            before["options"] = {
                name: value
                for name, value in before["options"].items()
                if name in self._asked["options"] or (name, value) not in RETIRED
            }
        difference = first_difference(before, self._asked, but=free) if self.record else None
        if difference:
            raise RunError(
                f"{self.path} cannot be resumed: {difference}; use the old value, --overwrite, or another --output"
            )

    def begin(self, steps: bool = True) -> None:
        """Write the beginnings of a new run, in place of an old one where there is one; a resumed run stays as it is.

        Args:
            steps: whether it takes steps itself, and has checkpoints.

        Raises:
            OutputError: the directory cannot be written.
        """
        self._hold()
        if rank() == 0:
            self._clear()
        self.path.mkdir(parents=True, exist_ok=True)  # on other machines for what lies there for a while
        if rank() == 0 and steps:
            self.checkpoints.mkdir(exist_ok=True)
        if not self.resumed:
            started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            self.update(status="running", asked=self._asked, command=sys.argv, versions=versions(), started=started)
        elif change := first_difference(self.record["asked"], self._asked):
            changes = [*self.record.get("changes", []), {"change": change, "because": self.record.get("stopped")}]
            self.update(asked=self._asked, changes=changes, stopped=None, stopped_in=None)

    def _clear(self) -> None:
        """Remove what a kill left half-written, and an old run that is not resumed; files of others are left alone."""
        self.sweep()
        if not self.resumed:
            # First of all it stops being a run that could be resumed, in case this is killed half-way.
            write_json(self.path / "run.json", {"status": _DISCARDED})
            for name in _PARTS[1:]:
                remove(self.path / name)

    def abandon(self) -> None:
        """Take back what was written of a run that cannot begin, and the directory if nothing else is in it."""
        if rank() == 0:
            for name in _PARTS:
                remove(self.path / name)
            with suppress(OSError):  # there are files of others
                self.path.rmdir()

    def sweep(self) -> None:
        """Remove what a kill left half-written."""
        for folder in (self.path, self.checkpoints, self.model, self.path / "prepared"):
            sweep_half_written(folder)

    def _read(self) -> dict[str, Any] | None:
        self._seen = self._text()
        record: Any = None if self._seen is None else json.loads(self._seen)
        return record if isinstance(record, dict) or self._seen is None else {}

    def _text(self) -> str | None:
        try:
            return (self.path / "run.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def update(self, **changes: Any) -> None:
        """Change entries of `run.json`."""
        self.record.update(changes)
        if rank() == 0:
            write_json(self.path / "run.json", signed(self.record))
        if self.status == "finished":
            self._held = None

    def log(self, entry: dict[str, Any]) -> None:
        """Add a line to `metrics.jsonl`."""
        path = self.path / "metrics.jsonl"
        with output_errors(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of `metrics.jsonl`; one that a kill cut short, or a disk damaged, is left out."""
        lines = []
        try:
            for line in (self.path / "metrics.jsonl").read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    entry = json.loads(line)
                    if type(entry["step"]) is int:
                        lines.append(entry)
                except (ValueError, TypeError, KeyError):
                    continue
        except FileNotFoundError:
            pass
        return lines

    def forget_after(self, step: int) -> None:
        """Drop the log lines and checkpoints of later steps, which are to be done again."""
        kept = [json.dumps(entry) + "\n" for entry in self.metrics() if entry["step"] <= step]
        write_text(self.path / "metrics.jsonl", "".join(kept))
        self.drop_checkpoints_after(step)

    def drop_checkpoints_after(self, step: int) -> None:
        """Remove the checkpoints of later steps."""
        for directory in self.checkpoints.glob("step-*"):
            if directory > self.checkpoint_at(step):
                remove(directory)

    def checkpoint_at(self, step: int) -> Path:
        """The place of the checkpoint of a step."""
        return self.checkpoints / f"step-{step:08d}"

    def newest_checkpoint(self, notice: Callable[[str], None]) -> Path | None:
        """The newest checkpoint that is whole; those that are not are named in a notice and passed over.

        It is that of the first process: other machines may have none.
        """

        def newest() -> Path | None:
            for directory in sorted(self.checkpoints.glob("step-*"), reverse=True):
                if is_whole(directory):
                    return directory
                notice(f"checkpoint {directory.name} is damaged or cut short: going back to the one before")
            return None

        return by_first(newest)

    def drop_old_checkpoints(self, keep: int, sound: int) -> None:
        """Remove all but the newest `keep` checkpoints, and the newest of a step no later than `sound`."""
        found = sorted(self.checkpoints.glob("step-*"))
        good = [directory for directory in found if directory <= self.checkpoint_at(sound)]
        for directory in found[:-keep]:
            if directory not in good[-1:]:
                remove(directory)


def _rate_of(stage: str | None) -> str:
    """The place of the learning rate in what was asked for, of a stage or of a run without any."""
    return f"stages {stage} learning_rate" if stage else "settings learning_rate"
