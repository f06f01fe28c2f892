"""Noise as text, made once: words deleted, exchanged or said twice, and the sentence itself for dropout alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

from selfsent.augment.maker import Change, Maker, Sentences
from selfsent.settings import setting

if TYPE_CHECKING:
    from selfsent.data.views.noise import Noise

_ONE_WORD = "words are what stands between spaces: put spaces between them first"


@dataclass(frozen=True)
class WordNoise(Maker):
    """A share of the words is deleted, or changes places."""

    name = "noise"
    about = "words deleted or exchanged"
    unchanged = _ONE_WORD
    instead = "give --delete-words or --pick-words to selfsent train"

    kind: Literal["delete", "swap"] = setting("delete", "what happens to a share of the words")
    ratio: float = setting(0.3, "share of the words to delete or exchange", above=0.0, maximum=1.0)

    @contextmanager
    def start(self) -> Iterator[Change]:
        """Nothing has to be opened."""
        from selfsent.data.views.noise import DeleteWords, SwapWords

        yield _on_words(DeleteWords(self.ratio) if self.kind == "delete" else SwapWords(self.ratio))


@dataclass(frozen=True)
class Repetition(Maker):
    """A share of the words, drawn for each sentence, is said twice (ESimCSE, Wu et al. 2021)."""

    name = "repeat-words"
    about = "words said twice"
    unchanged = _ONE_WORD
    instead = "give --repeat-words to selfsent train"

    ratio: float = setting(0.32, "largest share of the words to say twice", above=0.0, maximum=1.0)

    @contextmanager
    def start(self) -> Iterator[Change]:
        """Nothing has to be opened."""
        from selfsent.data.views.noise import RepeatWords

        yield _on_words(RepeatWords(self.ratio))


@dataclass(frozen=True)
class Dropout(Maker):
    """The sentence itself: the encoder's dropout makes the views differ (SimCSE, Gao et al. 2021)."""

    name = "dropout"
    about = "the sentence itself, which dropout alone makes another view"
    random = False
    same = True
    unchanged = "that is its purpose"
    instead = "train without --views, which gives two views that differ by dropout alone"

    @contextmanager
    def start(self) -> Iterator[Change]:
        """Nothing has to be opened."""
        yield lambda sentences, key: sentences.texts


def _on_words(noise: Noise) -> Change:
    """The noise of training, on what stands between spaces in place of tokens."""
    import numpy as np

    from selfsent.data.views.tokens import Template, Tokens

    template = Template((), (), None, np.empty(0, dtype=bool))

    def change(sentences: Sentences, key: int) -> list[str]:
        words = [text.split() for text in sentences.texts]
        flat, lengths = list(chain.from_iterable(words)), np.array(list(map(len, words)))
        before = Tokens(np.arange(len(flat)), lengths, np.ones(len(flat), dtype=bool), sentences.rows)
        after = noise(before, key, template)
        chosen = np.split(after.ids, np.cumsum(after.lengths)[:-1])
        return [" ".join(flat[number] for number in numbers.tolist()) for numbers in chosen]

    return change
