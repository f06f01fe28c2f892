"""Experiment trackers: TensorBoard, Weights & Biases, MLflow and others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

from selfsent.distributed import rank
from selfsent.errors import SettingsError, guess
from selfsent.training.run_directory import RunDirectory, flattened

PROJECT = "selfsent"
_RUN_NAMES = {"wandb": "name", "trackio": "name", "mlflow": "run_name"}
"""The argument for the name of the run, by tracker."""


def check_trackers(names: Sequence[str]) -> None:
    """Reject missing trackers.

    Raises:
        SettingsError: accelerate knows no such tracker, or its package is not installed.
    """
    there = {str(getattr(each, "value", each)) for each in get_available_trackers()}
    for name in names:
        if name not in LOGGER_TYPE_TO_CLASS:
            raise SettingsError(f"--track: there is no {name!r}; {guess(name, LOGGER_TYPE_TO_CLASS)}")
        if name not in there:
            raise SettingsError(f"--track {name}: its package is not installed: pip install {name.replace('_', '-')}")


class Trackers:
    """The trackers of a run, used by the first process alone.

    Args:
        names: of accelerate's trackers.
        directory: of the run; trackers write their files to its `trackers/`, except MLflow, which keeps all runs of a
            machine together.
        notice: receives failures of trackers during the run, which goes on without them.
    """

    def __init__(self, names: Sequence[str], directory: RunDirectory, notice: Callable[[str], None]) -> None:
        self.names, self.directory, self.notice = names if rank() == 0 else (), directory, notice
        self._started: dict[str, Any] = {}

    def __enter__(self) -> Trackers:
        """Start them, with the config of the run.

        Raises:
            SettingsError: one does not start.
        """
        for name in self.names:
            try:
                tracker = self._tracker(name)
                tracker.start()
                tracker.store_init_configuration(self._config())
            except Exception as error:  # whatever the package raises: no account, no server, no network
                self.__exit__()
                raise SettingsError(f"--track {name} cannot start: {error}") from error
            self._started[name] = tracker
        return self

    def _tracker(self, name: str) -> Any:
        kind, files = LOGGER_TYPE_TO_CLASS[name], self.directory.path / "trackers"
        path = (str(files),) if kind.requires_logging_directory else ()
        own = {_RUN_NAMES[name]: self.directory.path.name} if name in _RUN_NAMES else {}
        if name == "wandb" and "WANDB_DIR" not in os.environ:  # else it writes to the current directory
            files.mkdir(exist_ok=True)
            own["dir"] = str(files)
        return kind(PROJECT, *path, **own)

    def _config(self) -> dict[str, bool | int | float | str]:
        config = flattened(self.directory.record["asked"], ".").items()
        known = {name: value for name, value in config if value is not None}
        return {name: value if isinstance(value, bool | int | float) else str(value) for name, value in known.items()}

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Log the figures of a step; a tracker that fails is dropped."""
        for name, tracker in list(self._started.items()):
            try:
                tracker.log(dict(values), step=step)
            except Exception as error:  # training is worth more than its log
                del self._started[name]
                self.notice(f"{name} failed, and is told nothing more: {error}")

    def __exit__(self, *_: object) -> None:
        """End them."""
        for name, tracker in self._started.items():
            try:
                tracker.finish()
            except Exception as error:  # likewise
                self.notice(f"{name} failed at the end: {error}")
