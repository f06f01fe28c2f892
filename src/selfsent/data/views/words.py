"""The other noises of TSDAE's comparison: words exchanged, masked, replaced and added (Wang et al. 2021, section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from selfsent.data.random import uniforms
from selfsent.data.views.noise import Noise, checked_share
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import SettingsError


@dataclass(frozen=True)
class SwapWords:
    """`ratio` of the words change places with each other, in a random circle; at least two, where there are two.

    The paper says no more than "swap"; this way every word that is drawn moves.
    """

    ratio: float = 0.6

    def __post_init__(self) -> None:
        checked_share(self.ratio, "the share of words to swap")

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Swap words of every sentence."""
        if self.ratio == 0 or len(tokens.ids) == 0:
            return tokens
        _, sentence, place = tokens.words()
        words = np.bincount(sentence, minlength=len(tokens.lengths))
        moved = np.minimum(words, np.maximum(2, np.rint(self.ratio * words).astype(np.int64)))
        drawn = np.lexsort((uniforms(key, tokens.rows[sentence], place), sentence))
        circle = drawn[place < moved[sentence]]  # within a sentence, places run 0, 1, 2 ...
        ends = np.flatnonzero(np.diff(sentence[circle], append=-1))
        following = np.roll(circle, -1)
        following[ends] = circle[np.append(0, ends[:-1] + 1)]
        order = np.arange(len(sentence))
        order[circle] = following
        return tokens.take_words(order)


@dataclass(frozen=True)
class SwapPairs:
    """Each pair of neighbouring words, none of them in two pairs, changes places with probability `ratio`.

    The pairs are the first two words, the third and the fourth, and so on (Hill, Cho and Korhonen 2016, section 2.1).
    """

    ratio: float = 0.1

    def __post_init__(self) -> None:
        checked_share(self.ratio, "the share of pairs to swap")

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Swap pairs of every sentence."""
        if self.ratio == 0 or len(tokens.ids) == 0:
            return tokens
        _, sentence, place = tokens.words()
        has_next = np.append(sentence[1:] == sentence[:-1], False)
        drawn = uniforms(key, tokens.rows[sentence], place, draw=1) < self.ratio
        left = np.flatnonzero((place % 2 == 0) & has_next & drawn)
        order = np.arange(len(sentence))
        order[left], order[left + 1] = left + 1, left
        return tokens.take_words(order)


@dataclass(frozen=True)
class CropWords:
    """Of each sentence one run of words stays: a share drawn from 0 to `most` of them, at least one, from anywhere.

    Independent cropping (Izacard et al. 2022, section 3.1) of a sentence: two views share the words where they meet.
    """

    most: float = 0.5

    def __post_init__(self) -> None:
        checked_share(self.most, "the share of words that a crop keeps")

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Crop every sentence."""
        if self.most == 0 or len(tokens.ids) == 0:
            return tokens
        word, sentence, place = tokens.words()
        words = np.bincount(sentence, minlength=len(tokens.lengths))
        first = np.zeros(len(words), dtype=np.int64)
        length = np.ceil(self.most * words * uniforms(key, tokens.rows, first, draw=1)).astype(np.int64)
        length = np.maximum(1, length)
        begin = (uniforms(key, tokens.rows, first, draw=2) * (words - length + 1)).astype(np.int64)
        kept = (place >= begin[sentence]) & (place < (begin + length)[sentence])
        return tokens.take(np.flatnonzero(kept[word]))


@dataclass(frozen=True)
class MaskWords:
    """Each word becomes one [MASK] with probability `ratio`, independently."""

    ratio: float = 0.6

    def __post_init__(self) -> None:
        checked_share(self.ratio, "the share of words to mask")

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Mask words of every sentence."""
        if template.mask is None:
            raise SettingsError("this base's tokenizer has no mask token: choose another --noise")
        if self.ratio == 0 or len(tokens.ids) == 0:
            return tokens
        _, sentence, _ = tokens.words()
        return _exchanged(tokens, key, self.ratio, np.full(len(sentence), template.mask))


@dataclass(frozen=True)
class ReplaceWords:
    """Each word becomes one random token of the vocabulary with probability `ratio`, independently."""

    ratio: float = 0.6

    def __post_init__(self) -> None:
        checked_share(self.ratio, "the share of words to replace")

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Replace words of every sentence."""
        if self.ratio == 0 or len(tokens.ids) == 0:
            return tokens
        return _exchanged(tokens, key, self.ratio, _random_ids(tokens, key, template))


@dataclass(frozen=True)
class AddWords:
    """In front of each word stands one random token of the vocabulary with probability `ratio`, independently."""

    ratio: float = 0.6

    def __post_init__(self) -> None:
        checked_share(self.ratio, "the share of words to add")

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Add words to every sentence."""
        if self.ratio == 0 or len(tokens.ids) == 0:
            return tokens
        word, sentence, place = tokens.words()
        added = uniforms(key, tokens.rows[sentence], place) < self.ratio
        begins = np.flatnonzero(np.diff(word, prepend=-1))[added]
        times = np.ones(len(word), dtype=np.int64)
        times[begins] = 2
        longer = tokens.take(np.repeat(np.arange(len(word)), times))
        ids = longer.ids.copy()
        # Of the two copies of a word's first token, the first becomes the new word.
        ids[begins + np.arange(len(begins))] = _random_ids(tokens, key, template)[added]
        return replace(longer, ids=ids)


@dataclass(frozen=True)
class InTurn:
    """One noise after the other: of noises that draw numbers of their own, such as `DeleteWords` and `SwapPairs`."""

    noises: tuple[Noise, ...]

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Damage every sentence by each."""
        for noise in self.noises:
            tokens = noise(tokens, key, template)
        return tokens


def _exchanged(tokens: Tokens, key: int, ratio: float, ids: np.ndarray) -> Tokens:
    """Of the words drawn, the first token becomes the word's id of `ids`, (words,), and the others go."""
    word, sentence, place = tokens.words()
    drawn = (uniforms(key, tokens.rows[sentence], place) < ratio)[word]
    begins = np.diff(word, prepend=-1) != 0
    changed = replace(tokens, ids=np.where(drawn & begins, ids[word], tokens.ids))
    return changed.take(np.flatnonzero(begins | ~drawn))


def _random_ids(tokens: Tokens, key: int, template: Template) -> np.ndarray:
    """(words,) a random ordinary token for every word."""
    _, sentence, place = tokens.words()
    ordinary = np.flatnonzero(template.ordinary)
    chosen: np.ndarray = ordinary[(uniforms(key, tokens.rows[sentence], place, draw=1) * len(ordinary)).astype(int)]
    return chosen
