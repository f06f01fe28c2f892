"""The bases of a comparison: what each is called, and whether it can be trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.evaluation.encoders import as_encoder, check_model, is_directory_or_id
from selfsent.evaluation.hybrid import without_words
from selfsent.evaluation.lexical import COUNTING
from selfsent.evaluation.word_vectors import words_file
from selfsent.models.bases import resolve
from selfsent.models.cross_encoder import is_cross_encoder
from selfsent.models.loading import load_encoder
from selfsent.models.saved import is_trained_transformer
from selfsent.naming import name_of
from selfsent.training.identity import weights_digest
from selfsent.training.run_config import Notice

UNTRAINED = "untrained"
"""What a base as it is is called beside the methods."""


@dataclass(frozen=True)
class Base:
    """A base of a comparison.

    Args:
        name: as it was given.
        label: a short name that no other base has; empty where there is one base only.
        trainable: whether methods can start from it, or it is scored as it is alone.
    """

    name: str
    label: str = ""
    trainable: bool = True

    @property
    def untrained(self) -> str:
        """What it is called as it is."""
        return UNTRAINED if not self.label else f"{UNTRAINED} {self.label}" if self.trainable else self.label

    def trained(self, method: str) -> str:
        """What a method's encoder that starts from it is called."""
        return f"{method} from {self.label}" if self.label else method

    @property
    def digest(self) -> str:
        """Of its weights; empty for what cannot be trained."""
        return weights_digest(resolve(self.name)) if self.trainable else ""


def known_bases(given: str | Path | Sequence[str | Path], notice: Notice) -> list[Base]:
    """The bases, each found out to be there.

    Raises:
        BaseEncoderError: one cannot be found, or the only one cannot be trained.
        SettingsError: one stands there twice, counts words, or none can be trained.
    """
    names = [str(name_of(each)) for each in ([given] if isinstance(given, str | PathLike) else given)]
    if not names or "" in names:
        raise SettingsError("--bases has a comma with nothing beside it" if names else "there is no base to compare")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"--bases names {twice} twice")
    if words := next((name for name in names if name in COUNTING or without_words(name)), None):
        raise SettingsError(f"leave {words} out of --bases: what counts words cannot be a base")
    if len(names) == 1:
        resolve(names[0])
        return [Base(names[0])]
    found = [Base(name, label, _trainable(name, notice)) for name, label in zip(names, _labels(names), strict=True)]
    if not any(base.trainable for base in found):
        raise SettingsError("none of these bases can be trained: selfsent evaluate --documents scores them as they are")
    return found


def _trainable(name: str, notice: Notice) -> bool:
    check_model(name)
    reason = "only what is loaded from a directory can be trained"
    if is_directory_or_id(name):
        if is_cross_encoder(resolve(name)):
            raise SettingsError(f"{name} is a cross-encoder and makes no vectors to be compared: leave it out")
        try:
            load_encoder(name)
            return True
        except BaseEncoderError as error:
            as_encoder(name)  # sentence-transformers may be able to load what selfsent cannot train
            reason = str(error)
    notice(f"{name} is scored as it is, and not trained: {reason}")
    return False


def _labels(names: Sequence[str]) -> list[str]:
    """The last part of each name that says something, or the whole of it where two would be called the same."""
    short = []
    for name in names:
        parts = [part for part in name.replace("\\", "/").split("/") if part] or [name]
        label = parts[-2] if parts[-1] == "model" and len(parts) > 1 else parts[-1]
        kind = f"{name.partition(':')[0]}:" if words_file(name) else ""
        short.append(kind + label.removeprefix(kind))
    return [label if short.count(label) == 1 else name for label, name in zip(short, names, strict=True)]


def is_strong(directory: Path) -> bool:
    """Whether a base makes good sentence vectors as it is, so that a choice without labels gains little.

    A transformer that was trained to, and not by selfsent itself: what that trained may be weak yet.
    """
    return is_trained_transformer(directory) and not (directory.resolve().parent / "run.json").is_file()
