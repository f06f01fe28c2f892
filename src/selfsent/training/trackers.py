"""Where the figures of a run go beside `metrics.jsonl`: TensorBoard, Weights & Biases, MLflow and others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

from selfsent.distributed import rank
from selfsent.errors import SettingsError, guess
from selfsent.training.run_directory import RunDirectory

PROJECT = "selfsent"
_RUN_NAMES = {"wandb": "name", "trackio": "name", "mlflow": "run_name"}
"""What trackers that tell runs of one project apart call the run's name."""


def check_trackers(names: Sequence[str]) -> None:
    """Refuse trackers that are not there.

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
    """The trackers of a run, which the first process alone tells anything.

    Args:
        names: of accelerate's trackers.
        directory: of the run; what trackers write to files lies in its `trackers/`, but for MLflow, which keeps all
            runs of a machine together.
        notice: told when a tracker fails during the run, which goes on without it.
    """

    def __init__(self, names: Sequence[str], directory: RunDirectory, notice: Callable[[str], None]) -> None:
        self.names, self.directory, self.notice = names if rank() == 0 else (), directory, notice
        self._started: dict[str, Any] = {}

    def __enter__(self) -> Trackers:
        """Start them, with what the run was asked for.

        Raises:
            SettingsError: one does not start.
        """
        for name in self.names:
            try:
                tracker = self._tracker(name)
                tracker.start()
                tracker.store_init_configuration(dict(_flat(self.directory.record["asked"])))
            except Exception as error:  # whatever the package raises: no account, no server, no network
                self.__exit__()
                raise SettingsError(f"--track {name} cannot start: {error}") from error
            self._started[name] = tracker
        return self

    def _tracker(self, name: str) -> Any:
        kind, files = LOGGER_TYPE_TO_CLASS[name], self.directory.path / "trackers"
        place = (str(files),) if kind.requires_logging_directory else ()
        own = {_RUN_NAMES[name]: self.directory.path.name} if name in _RUN_NAMES else {}
        if name == "wandb" and "WANDB_DIR" not in os.environ:  # else it writes to the current directory
            files.mkdir(exist_ok=True)
            own["dir"] = str(files)
        return kind(PROJECT, *place, **own)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Tell them the figures of a step; one that fails is left out from then on."""
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


def _flat(asked: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """What was asked for without nesting: `settings.batch_size` and so on."""
    found: list[tuple[str, Any]] = []
    for name, value in asked.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{before}{name}.")
        elif value is not None:
            found.append((before + name, value if isinstance(value, (bool, int, float, str)) else str(value)))
    return found
