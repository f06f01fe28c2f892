"""The interface of augmenters: options, and a function of sentences that depends on key and row alone."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from selfsent.errors import SettingsError
from selfsent.settings import check_limits

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Sentences:
    """Consecutive sentences of a corpus.

    Args:
        texts: (n,) the sentences.
        rows: (n,) their rows in the corpus: with the key, all that a random choice may depend on.
        others: (n,) the texts of the corpus' second column, where it has one.
    """

    texts: list[str]
    rows: np.ndarray
    others: list[str] | None = None


Change = Callable[[Sentences, int], list[str]]
"""(sentences, key) -> (n,) views; a view that could not be made is empty or the sentence itself."""


@dataclass(frozen=True)
class Augmenter(ABC):
    """A text augmentation; its fields are its options, made with `selfsent.settings.setting`."""

    name: ClassVar[str]
    about: ClassVar[str]
    """One line for the help text."""
    random: ClassVar[bool] = True
    """Whether views depend on the key."""
    unchanged: ClassVar[str]
    """The likely reason, and the remedy, if it changes no sentence."""

    chunk: ClassVar[int] = 256
    """Sentences per chunk. It affects results: batches of models do not cross chunks."""
    always: ClassVar[tuple[str, ...]] = ()
    """Options that the spec includes even if they have their defaults."""

    def __post_init__(self) -> None:
        check_limits(self)

    @property
    def spec(self) -> str:
        """Its name with all options that differ from their defaults or are in `always`, as on the command line."""
        values = [(f.name, getattr(self, f.name), f.default) for f in dataclasses.fields(self)]
        given = [f"{name}={value}" for name, value, default in values if name in self.always or value != default]
        return ":".join([self.name, *given])

    def identity(self) -> Any:
        """Cache key of its views, as JSON: options, and the state of the files it reads."""
        return [self.name, dataclasses.asdict(self)]

    @abstractmethod
    def start(self) -> AbstractContextManager[Change]:
        """Open whatever it needs (dictionaries, models, programs), and close it at the end.

        Raises:
            SelfsentError: something it needs is not there.
        """


@dataclass(frozen=True)
class Pairs(Augmenter):
    """The corpus' second text column: premise and hypothesis, two captions, a sentence and its translation.

    Raises:
        SettingsError: the corpus has one text column.
    """

    name = "pairs"
    about = "the second text column of the corpus: entailments, captions, translations"
    random = False
    unchanged = "the two columns hold the same texts: name others with --text-columns"

    def start(self) -> AbstractContextManager[Change]:
        """Nothing has to be opened."""

        def others(sentences: Sentences, key: int) -> list[str]:
            if sentences.others is None:
                raise SettingsError("pairs needs a corpus with two text columns: name them with --text-columns A,B")
            return sentences.others

        return nullcontext(others)


def state_of(path: str | Path) -> list[Any]:
    """Sizes and times of the files at a path, for cache keys; empty if there are none."""
    root = Path(path).expanduser()
    files = sorted(file for file in root.rglob("*") if file.is_file()) if root.is_dir() else [root]
    return [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files if file.is_file()]
