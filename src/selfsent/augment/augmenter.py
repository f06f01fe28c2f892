"""The interface of augmenters: options, and a function of sentences, key and row."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from selfsent.settings import check_limits

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Sentences:
    """Consecutive sentences of a corpus.

    Args:
        texts: (n,) the sentences.
        rows: (n,) their rows in the corpus. Random choices may depend on row and key alone.
    """

    texts: list[str]
    rows: np.ndarray


Change = Callable[[Sentences, int], list[str]]
"""(sentences, key) -> (n,) views; a view that could not be made is empty or the sentence itself."""


@dataclass(frozen=True)
class Augmenter(ABC):
    """A text augmentation. Its fields, made with `selfsent.settings.setting`, are its options."""

    name: ClassVar[str]
    about: ClassVar[str]
    """One line for the help text."""
    random: ClassVar[bool] = True
    """Whether views depend on the key."""
    unchanged: ClassVar[str]
    """Error text if it changes no sentence: the likely reason and the remedy."""

    chunk: ClassVar[int] = 256
    """Sentences per chunk. It affects results: batches of models do not cross chunks."""
    always: ClassVar[tuple[str, ...]] = ()
    """Options included in the spec even at their defaults."""

    def __post_init__(self) -> None:
        check_limits(self)

    @property
    def spec(self) -> str:
        """Name and options as on the command line; defaults are left out unless in `always`."""
        values = [(f.name, getattr(self, f.name), f.default) for f in dataclasses.fields(self)]
        given = [f"{name}={value}" for name, value, default in values if name in self.always or value != default]
        return ":".join([self.name, *given])

    def identity(self) -> Any:
        """Cache key of its views, as JSON: options and the state of the files it reads."""
        return [self.name, dataclasses.asdict(self)]

    @abstractmethod
    def start(self) -> Change:
        """Load what it needs, a dictionary or a model, and give the function that makes views.

        Raises:
            SelfsentError: a resource is missing.
        """


def state_of(path: str | Path) -> list[Any]:
    """Sizes and times of the files at a path, for cache keys; empty if there are none."""
    root = Path(path).expanduser()
    files = sorted(file for file in root.rglob("*") if file.is_file()) if root.is_dir() else [root]
    return [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files if file.is_file()]


def with_capitals_of(word: str, pattern: str) -> str:
    """A lower-case word with the capitals of another: none, the first, or all."""
    every = len(pattern) > 1 and pattern.isupper()
    capitals, rest = (word, "") if every else (word[:1], word[1:]) if pattern[:1].isupper() else ("", word)
    # Turkish has two letters i with a capital each. Given this capital, an i must be the dotted one.
    dotted = "İ" in (pattern if every else pattern[:1])
    return (capitals.replace("i", "İ") if dotted else capitals).upper() + rest
