"""What a user can get wrong. Anything that is not a `SelfsentError` is a bug in selfsent."""

from __future__ import annotations


class SelfsentError(Exception):
    """One line that says what is wrong, where, and what to do. The command line prints it and exits with status 2."""


class CorpusError(SelfsentError):
    """A corpus that cannot be read, or that holds nothing to learn from."""


class BaseEncoderError(SelfsentError):
    """A base encoder that cannot be found or loaded."""


class SettingsError(SelfsentError):
    """An option or setting that is unknown, out of range, or at odds with another one."""


class RunError(SelfsentError):
    """A run directory that cannot be used as asked: it exists already, or does not fit the settings."""


class OutputError(SelfsentError):
    """A file or directory that cannot be written."""


class MakerError(SelfsentError):
    """A program or model that makes views and did not do what it should."""


class TrainingError(SelfsentError):
    """A run that went wrong while training: the loss is not finite, or the embeddings collapsed.

    Args:
        reason: what went wrong.
        advice: what to do about it, of a single run.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(f"{reason}: {advice}" if advice else reason)
        self.reason = reason


class DataError(SelfsentError):
    """An evaluation data set that is absent or not in the layout its publishers describe."""
