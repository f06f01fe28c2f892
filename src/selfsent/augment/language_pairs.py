"""Two texts that exist: premise and hypothesis, two captions of a picture, a sentence and its translation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from selfsent.augment.maker import Change, Maker, Sentences
from selfsent.errors import SettingsError


@dataclass(frozen=True)
class Pairs(Maker):
    """The corpus' second text column is the other view."""

    name = "pairs"
    about = "the second text column of the corpus: entailments, captions, translations"
    random = False
    unchanged = "the two columns hold the same texts: name others with --text-columns"

    @contextmanager
    def start(self) -> Iterator[Change]:
        """Nothing has to be opened."""
        yield _others


def _others(sentences: Sentences, key: int) -> list[str]:
    if sentences.others is None:
        raise SettingsError("pairs needs a corpus with two text columns: name them with --text-columns A,B")
    return sentences.others
