"""Errors that a user can cause. Any other exception than a `SelfsentError` is a bug in selfsent."""

from __future__ import annotations

import difflib
from collections.abc import Collection


def near(word: object, known: Collection[object], likeness: float = 0.6) -> str:
    """Suggestion for a misspelt name, at the end of an error's line; empty where no name is that similar."""
    found = difflib.get_close_matches(str(word), [str(name) for name in known], n=1, cutoff=likeness)
    return f"did you mean {found[0]!r}?" if found else ""


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, of 200 characters at most; its class if it has no message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def guess(word: object, known: Collection[object]) -> str:
    """Suggestion for a misspelt name, else all known names."""
    return near(word, known) or f"there are {', '.join(map(str, known))}"


def install(extra: str) -> str:
    """How to install an extra, for the end of an error's line: as the README does, since no index has selfsent."""
    return f'in the clone of selfsent, python -m pip install -c constraints.txt -e ".[{extra}]"'


class Damaged(Warning):
    """Something that is kept for later is not as it was written, and is made again: one line that names it."""


class HubFallbackWarning(Warning):
    """A name that is no directory here was taken for an id on the hub: one line that says so."""


class AmbiguousTokensWarning(Warning):
    """A tokenizer has tokens that its normalizer makes equal, so that chance decides which one is read: one line."""


class SelfsentError(Exception):
    """One line with the fault, its place and the remedy. The command line prints it and exits with status 2."""


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


class AugmenterError(SelfsentError):
    """A program or model that makes views and did not do what it should."""


class TrainingError(SelfsentError):
    """A run that went wrong while training: the loss is not finite, or the embeddings collapsed.

    Args:
        reason: the fault.
        advice: the remedy, for a single run.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(f"{reason}: {advice}" if advice else reason)
        self.reason = reason


class DataError(SelfsentError):
    """An evaluation data set that is absent or not in the layout its publishers describe."""


ONE_STRING = "one string was given where a list of texts is wanted: put it into a list"


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop, and did so after saving where it was."""
