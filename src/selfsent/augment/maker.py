"""What a maker of views is: options, and a change of sentences that depends on nothing but key and row."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from selfsent.settings import check_limits

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Sentences:
    """Some sentences of a corpus, one behind the other.

    Args:
        texts: (n,) the sentences.
        rows: (n,) their rows in the corpus: with the key, all that a random choice may depend on.
        others: (n,) the texts of the corpus' second column, where it has one.
    """

    texts: list[str]
    rows: np.ndarray
    others: list[str] | None = None


Change = Callable[[Sentences, int], list[str]]
"""(sentences, key) -> (n,) views of them; a view that could not be made is empty or the sentence itself."""


@dataclass(frozen=True)
class Maker(ABC):
    """A way to say a sentence otherwise; its fields are its options, made with `selfsent.settings.setting`."""

    name: ClassVar[str]
    about: ClassVar[str]
    """One line for the help text."""
    random: ClassVar[bool] = True
    """Whether another key gives another view."""
    same: ClassVar[bool] = False
    """Whether its views are meant to be the sentences themselves."""
    instead: ClassVar[str] = ""
    """What draws it anew in training whenever a sentence is read, which is better; empty where nothing does."""
    unchanged: ClassVar[str]
    """Why it may change no sentence at all, and what to do then."""

    def __post_init__(self) -> None:
        check_limits(self)

    @property
    def chunk(self) -> int:
        """Sentences made and kept together. Part of the result: a model's batches are cut inside of it."""
        return 256

    @property
    def always(self) -> tuple[str, ...]:
        """Options that its spec names even where they are the default."""
        return ()

    @property
    def spec(self) -> str:
        """Its name and the options that are not the default or that it always names, as on the command line."""
        values = [(f.name, getattr(self, f.name), f.default) for f in _fields(self)]
        given = [f"{name}={value}" for name, value, usual in values if name in self.always or value != usual]
        return ":".join([self.name, *given])

    def identity(self) -> Any:
        """What its views depend on, as JSON: options, and the state of the files it reads."""
        return [self.name, dataclasses.asdict(self)]

    @abstractmethod
    def start(self) -> AbstractContextManager[Change]:
        """Open whatever it needs (dictionaries, models, programs), and close it at the end.

        Raises:
            SelfsentError: something it needs is not there.
        """


def _fields(maker: Maker) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(maker)


def state_of(path: str | Path) -> list[Any]:
    """Sizes and times of the files at a path: another state, other views. Empty for what is no path."""
    root = Path(path).expanduser()
    files = sorted(file for file in root.rglob("*") if file.is_file()) if root.is_dir() else [root]
    return [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files if file.is_file()]
