"""Noise on token ids: a pure function of (key, row), whatever the number of workers, ranks or restarts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from selfsent.data.random import uniforms
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import SettingsError


class Noise(Protocol):
    """Damages the sentences of a batch: deterministic in `key` (seed, epoch and view) and each sentence's row."""

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """The damaged batch; `tokens` stays as it is."""
        ...


@dataclass(frozen=True)
class _ShareNoise(ABC):
    """Noise on a share of the words, or of something else; a share of 0 is none."""

    ratio: float = 0.6

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """The damaged batch; `tokens` stays as it is."""
        return self._damaged(tokens, key, template) if self.ratio and len(tokens.ids) else tokens

    @abstractmethod
    def _damaged(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """The damaged batch, of at least one token."""


@dataclass(frozen=True)
class DeleteWords(_ShareNoise):
    """Each word is dropped with probability `ratio`, independently; one random word stays where all would go.

    Wang, Reimers and Gurevych 2021, section 3: ratio 0.6.
    """

    def _damaged(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        word, sentence, position = tokens.words()
        chance = uniforms(key, tokens.rows[sentence], position)
        keep = chance >= self.ratio
        # The word with the largest number goes last as the ratio grows; it is every word's with equal probability.
        begins = np.flatnonzero(np.diff(sentence, prepend=-1))
        largest = np.maximum.reduceat(chance, begins)
        keep |= chance == np.repeat(largest, np.diff(np.append(begins, len(sentence))))
        return tokens.take(np.flatnonzero(keep[word]))


@dataclass(frozen=True)
class PickWords:
    """Of each sentence only a few words stay, in their order: 1 to `most` of them, every number equally likely.

    A view then says nothing of how long the sentence is, and two views of one sentence share few words: unlike
    deletion of a share, it leaves a contrastive loss no shortcut.
    """

    most: int = 8

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Pick words of every sentence."""
        if len(tokens.ids) == 0:
            return tokens
        word, sentence, position = tokens.words()
        number = uniforms(key, tokens.rows, np.zeros(len(tokens.rows), dtype=np.int64), draw=1)
        stay = 1 + (number * self.most).astype(np.int64)
        order = np.lexsort((uniforms(key, tokens.rows[sentence], position), sentence))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = position  # within a sentence, positions run 0, 1, 2 ...: the nth smallest number gets n
        return tokens.take(np.flatnonzero((rank < stay[sentence])[word]))


@dataclass(frozen=True)
class SwapWords(_ShareNoise):
    """`ratio` of the words change places with each other, in a random circle; at least two, where there are two.

    The paper says no more than "swap"; this way every word that is drawn moves.
    """

    def _damaged(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        _, sentence, position = tokens.words()
        words = np.bincount(sentence, minlength=len(tokens.lengths))
        moved = np.minimum(words, np.maximum(2, np.rint(self.ratio * words).astype(np.int64)))
        drawn = np.lexsort((uniforms(key, tokens.rows[sentence], position), sentence))
        circle = drawn[position < moved[sentence]]  # within a sentence, positions run 0, 1, 2 ...
        ends = np.flatnonzero(np.diff(sentence[circle], append=-1))
        following = np.roll(circle, -1)
        following[ends] = circle[np.append(0, ends[:-1] + 1)]
        order = np.arange(len(sentence))
        order[circle] = following
        return tokens.take_words(order)


@dataclass(frozen=True)
class SwapPairs(_ShareNoise):
    """Each pair of neighbouring words, none of them in two pairs, changes places with probability `ratio`.

    The pairs are the first two words, the third and the fourth, and so on (Hill, Cho and Korhonen 2016, section 2.1).
    """

    ratio: float = 0.1

    def _damaged(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        _, sentence, position = tokens.words()
        has_next = np.append(sentence[1:] == sentence[:-1], False)
        drawn = uniforms(key, tokens.rows[sentence], position, draw=1) < self.ratio
        left = np.flatnonzero((position % 2 == 0) & has_next & drawn)
        order = np.arange(len(sentence))
        order[left], order[left + 1] = left + 1, left
        return tokens.take_words(order)


@dataclass(frozen=True)
class CropWords(_ShareNoise):
    """Of each sentence one run of words stays: a share drawn from 0 to `ratio` of them, at least one, from anywhere.

    Independent cropping (Izacard et al. 2022, section 3.1) of a sentence: two views share the words where they meet.
    """

    ratio: float = 0.5

    def _damaged(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        word, sentence, position = tokens.words()
        words = np.bincount(sentence, minlength=len(tokens.lengths))
        first = np.zeros(len(words), dtype=np.int64)
        length = np.ceil(self.ratio * words * uniforms(key, tokens.rows, first, draw=1)).astype(np.int64)
        length = np.maximum(1, length)
        begin = (uniforms(key, tokens.rows, first, draw=2) * (words - length + 1)).astype(np.int64)
        kept = (position >= begin[sentence]) & (position < (begin + length)[sentence])
        return tokens.take(np.flatnonzero(kept[word]))


@dataclass(frozen=True)
class MaskWords(_ShareNoise):
    """Each word becomes one [MASK] with probability `ratio`, independently."""

    def _damaged(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        if template.mask is None:
            raise SettingsError("this base's tokenizer has no mask token: choose another --noise")
        _, sentence, _ = tokens.words()
        return _exchanged(tokens, key, self.ratio, np.full(len(sentence), template.mask))


@dataclass(frozen=True)
class ReplaceWords(_ShareNoise):
    """Each word becomes one random token of the vocabulary with probability `ratio`, independently."""

    def _damaged(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        return _exchanged(tokens, key, self.ratio, _random_ids(tokens, key, template))


@dataclass(frozen=True)
class AddWords(_ShareNoise):
    """In front of each word stands one random token of the vocabulary with probability `ratio`, independently."""

    def _damaged(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        word, sentence, position = tokens.words()
        added = uniforms(key, tokens.rows[sentence], position) < self.ratio
        begins = np.flatnonzero(np.diff(word, prepend=-1))[added]
        times = np.ones(len(word), dtype=np.int64)
        times[begins] = 2
        longer = tokens.take(np.repeat(np.arange(len(word)), times))
        ids = longer.ids.copy()
        # Of the two copies of a word's first token, the first becomes the new word.
        ids[begins + np.arange(len(begins))] = _random_ids(tokens, key, template)[added]
        return replace(longer, ids=ids)


@dataclass(frozen=True)
class MaskTokens:
    """BERT's masking: `ratio` of the tokens become targets; 80 % of them [MASK], 10 % a random token, 10 % stay.

    Devlin et al. 2019, section 3.1. A sentence of which nothing was drawn gives one random token. What is cut
    off later is lost: a batch of long sentences that are cut short may be left without any target.

    Args:
        ratio: share of the tokens (or of the words) that are to be predicted.
        whole_words: draw words instead of tokens, all tokens of a word together.
    """

    ratio: float = 0.15
    whole_words: bool = False

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Mask tokens of every sentence, and set the targets."""
        from selfsent.data.packed import IGNORED  # torch is slow to import, and makers of text need none

        if template.mask is None:
            raise SettingsError("masking needs a mask token, which this base has not: choose another base or method")
        if len(tokens.ids) == 0:
            return tokens
        within = np.arange(len(tokens.ids)) - np.repeat(tokens.starts, tokens.lengths)
        if self.whole_words:
            unit, sentence, position = tokens.words()
        else:
            unit, sentence, position = np.arange(len(tokens.ids)), tokens.sentence, within
        chance = uniforms(key, tokens.rows[sentence], position)
        chosen = chance < self.ratio
        begins = np.flatnonzero(np.diff(sentence, prepend=-1))
        smallest = np.minimum.reduceat(chance, begins)
        chosen |= chance == np.repeat(smallest, np.diff(np.append(begins, len(sentence))))
        chosen = chosen[unit]
        rows = tokens.rows[tokens.sentence]
        kind = uniforms(key, rows, within, draw=1)
        ordinary = np.flatnonzero(template.ordinary)
        other = ordinary[(uniforms(key, rows, within, draw=2) * len(ordinary)).astype(np.int64)]
        ids = np.where(chosen & (kind < 0.8), template.mask, np.where(chosen & (kind >= 0.9), other, tokens.ids))
        targets = np.where(chosen, tokens.ids, IGNORED)
        return Tokens(ids, tokens.lengths, tokens.word_starts, tokens.rows, targets)


@dataclass(frozen=True)
class Chain:
    """One noise after the other: of noises that draw numbers of their own, such as `DeleteWords` and `SwapPairs`."""

    noises: tuple[Noise, ...]

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Damage every sentence by each."""
        for noise in self.noises:
            tokens = noise(tokens, key, template)
        return tokens


def _exchanged(tokens: Tokens, key: int, ratio: float, ids: np.ndarray) -> Tokens:
    """Of the words drawn, the first token becomes the word's id of `ids`, (words,), and the others go."""
    word, sentence, position = tokens.words()
    drawn = (uniforms(key, tokens.rows[sentence], position) < ratio)[word]
    begins = np.diff(word, prepend=-1) != 0
    changed = replace(tokens, ids=np.where(drawn & begins, ids[word], tokens.ids))
    return changed.take(np.flatnonzero(begins | ~drawn))


def _random_ids(tokens: Tokens, key: int, template: Template) -> np.ndarray:
    """(words,) a random ordinary token for every word."""
    _, sentence, position = tokens.words()
    ordinary = np.flatnonzero(template.ordinary)
    chosen: np.ndarray = ordinary[(uniforms(key, tokens.rows[sentence], position, draw=1) * len(ordinary)).astype(int)]
    return chosen
