"""The run directory: what was asked, what happened, where it can go on, and what came out."""

from __future__ import annotations

import json
import platform
import shutil
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from selfsent.errors import RunError
from selfsent.files import write_json, write_text
from selfsent.training.checkpoint import is_whole
from selfsent.version import __version__

_WATCHED = ("torch", "transformers", "sentence-transformers", "tokenizers", "accelerate", "numpy")


def versions() -> dict[str, str]:
    """The versions of everything a result may depend on."""
    found = {name: metadata.version(name) for name in _WATCHED}
    return {"selfsent": __version__, "python": platform.python_version(), **found}


class RunDirectory:
    """`run.json`, `metrics.jsonl`, `checkpoints/` and `model/`.

    Args:
        path: the directory; `open` decides whether it may be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record: dict[str, Any] = {}

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

    def open(self, asked: dict[str, Any], resume: bool, overwrite: bool) -> None:
        """Begin a new run, or take up an old one.

        Args:
            asked: everything that decides the result, as JSON; an old run is taken up only if it was asked for the same.
            resume: take up the run that is there.
            overwrite: throw away what is there.

        Raises:
            RunError: there is a run and neither was asked for, it was asked for something else, or the directory is not a run's.
        """
        if resume and overwrite:
            raise RunError("--resume and --overwrite contradict each other: give one")
        old = self._read()
        if self.path.is_file() or (self.path.is_dir() and old is None and any(self.path.iterdir())):
            raise RunError(f"{self.path} exists and is not a run of selfsent: choose another --output")
        if old is not None and not (resume or overwrite):
            raise RunError(f"{self.path} already holds a run: give --resume to go on, --overwrite to start again, or another --output")
        if old is not None and resume:
            difference = _first_difference(old["asked"], json.loads(json.dumps(asked)))
            if difference:
                raise RunError(f"{self.path} cannot be resumed: {difference}; use the old value, --overwrite, or another --output")
            self.record = old
            return
        if overwrite and old is not None:
            shutil.rmtree(self.path)
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{self.path} cannot be created: {error.strerror}") from None
        self.update(
            status="running", asked=asked, command=sys.argv, versions=versions(), started=time.strftime("%Y-%m-%dT%H:%M:%S%z")
        )

    def _read(self) -> dict[str, Any] | None:
        try:
            record: dict[str, Any] = json.loads((self.path / "run.json").read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise RunError(f"{self.path / 'run.json'} cannot be read: {error}") from None
        return record

    def update(self, **changes: Any) -> None:
        """Change entries of `run.json`."""
        self.record.update(changes)
        write_json(self.path / "run.json", self.record)

    def log(self, entry: dict[str, Any]) -> None:
        """Add a line to `metrics.jsonl`."""
        with (self.path / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of `metrics.jsonl`; one that was cut short by a kill is left out."""
        lines = []
        try:
            for line in (self.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    continue
        except FileNotFoundError:
            pass
        return lines

    def forget_after(self, step: int) -> None:
        """Drop the log lines of steps that a resumed run will do again."""
        kept = [json.dumps(entry) + "\n" for entry in self.metrics() if entry["step"] <= step]
        write_text(self.path / "metrics.jsonl", "".join(kept))

    def checkpoint_at(self, step: int) -> Path:
        """The place of the checkpoint of a step."""
        return self.checkpoints / f"step-{step:08d}"

    def newest_checkpoint(self, notice: Callable[[str], None]) -> Path | None:
        """The newest checkpoint that is whole; those that are not are named in a notice and passed over."""
        for directory in sorted(self.checkpoints.glob("step-*"), reverse=True):
            if is_whole(directory):
                return directory
            notice(f"checkpoint {directory.name} is damaged or cut short: going back to the one before")
        return None

    def drop_old_checkpoints(self, keep: int) -> None:
        """Keep the newest `keep` checkpoints, and what was left half-written by a kill not at all."""
        for directory in sorted(self.checkpoints.glob("step-*"))[:-keep]:
            shutil.rmtree(directory, ignore_errors=True)
        for directory in self.checkpoints.glob(".step-*"):
            shutil.rmtree(directory, ignore_errors=True)


def _first_difference(old: Any, new: Any, where: str = "") -> str | None:
    """In words, the first place where two JSON values differ; None when they are the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            difference = _first_difference(old.get(name), new.get(name), f"{where} {name}".strip())
            if difference:
                return difference
        return None
    return None if old == new else f"{where.replace('_', ' ')} was {old}, now {new}"
