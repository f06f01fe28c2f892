"""Experiment trackers: TensorBoard, Weights & Biases, MLflow and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

from selfsent.distributed import rank
from selfsent.errors import SettingsError, guess
from selfsent.training.agreement import flattened
from selfsent.training.run_directory import RunDirectory

PROJECT = "selfsent"
_PLAIN = (bool, int, float, str)
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
            raise SettingsError(f"`trackers`: there is no {name!r}; {guess(name, LOGGER_TYPE_TO_CLASS)}")
        if name not in there:
            raise SettingsError(f"trackers={name}: its package is not installed: pip install {name.replace('_', '-')}")


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
            kind = LOGGER_TYPE_TO_CLASS[name]
            path = (str(self.directory.path / "trackers"),) if kind.requires_logging_directory else ()
            own = {_RUN_NAMES[name]: self.directory.path.name} if name in _RUN_NAMES else {}
            config = flattened(self.directory.record["asked"], ".").items()
            known = {
                key: value if isinstance(value, _PLAIN) else str(value) for key, value in config if value is not None
            }
            try:
                tracker = kind(PROJECT, *path, **own)
                tracker.start()
                tracker.store_init_configuration(known)
            except Exception as error:  # whatever the package raises: no account, no server, no network
                self.__exit__()
                raise SettingsError(f"trackers={name} cannot start: {error}") from error
            self._started[name] = tracker
        return self

    def _call(self, action: Callable[[Any], object]) -> None:
        for name, tracker in list(self._started.items()):
            try:
                action(tracker)
            except Exception as error:  # a log must not end the training
                del self._started[name]
                self.notice(f"{name} failed, and gets no further figures: {error}")

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Log the figures of a step; a tracker that fails is dropped."""
        self._call(lambda tracker: tracker.log(dict(values), step=step))

    def __exit__(self, *_: object) -> None:
        """Finish them."""
        self._call(lambda tracker: tracker.finish())
