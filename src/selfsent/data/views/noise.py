"""Noise on token ids: a pure function of (key, row), whatever the number of workers, ranks or restarts."""

from __future__ import annotations

from dataclasses import dataclass
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


def checked_share(value: float, name: str) -> None:
    """Refuse what is no share.

    Raises:
        SettingsError: the value is not between 0 and 1.
    """
    if not 0.0 <= value <= 1.0:
        raise SettingsError(f"{name} is {value}; it must lie between 0 and 1")


@dataclass(frozen=True)
class DeleteWords:
    """Each word is dropped with probability `ratio`, independently; one random word stays where all would go.

    Wang, Reimers and Gurevych 2021, section 3: ratio 0.6.
    """

    ratio: float = 0.6

    def __post_init__(self) -> None:
        checked_share(self.ratio, "the share of words to delete")

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Delete words of every sentence."""
        if self.ratio == 0 or len(tokens.ids) == 0:
            return tokens
        word, sentence, place = tokens.words()
        chance = uniforms(key, tokens.rows[sentence], place)
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

    def __post_init__(self) -> None:
        if self.most < 1:
            raise SettingsError(f"the number of words to pick is {self.most}; it must be at least 1")

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Pick words of every sentence."""
        if len(tokens.ids) == 0:
            return tokens
        word, sentence, place = tokens.words()
        number = uniforms(key, tokens.rows, np.zeros(len(tokens.rows), dtype=np.int64), draw=1)
        stay = 1 + (number * self.most).astype(np.int64)
        order = np.lexsort((uniforms(key, tokens.rows[sentence], place), sentence))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = place  # within a sentence, places run 0, 1, 2 ...: the nth smallest number gets n
        return tokens.take(np.flatnonzero((rank < stay[sentence])[word]))


@dataclass(frozen=True)
class RepeatWords:
    """A share of the words, drawn for each sentence from 0 to `ratio`, stands twice.

    ESimCSE (Wu et al. 2021) repeats sub-words, up to 32 % of them; repeating whole words keeps the words whole.
    """

    ratio: float = 0.32

    def __post_init__(self) -> None:
        checked_share(self.ratio, "the share of words to repeat")

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Repeat words of every sentence."""
        if self.ratio == 0 or len(tokens.ids) == 0:
            return tokens
        _, sentence, place = tokens.words()
        share = self.ratio * uniforms(key, tokens.rows, np.zeros(len(tokens.rows), dtype=np.int64), draw=1)
        twice = uniforms(key, tokens.rows[sentence], place) < share[sentence]
        return tokens.take_words(np.repeat(np.arange(len(sentence)), 1 + twice))


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

    def __post_init__(self) -> None:
        checked_share(self.ratio, "the share of tokens to mask")

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Mask tokens of every sentence, and set the targets."""
        from selfsent.fast.packing import IGNORED  # torch is slow to import, and makers of text need none

        if template.mask is None:
            raise SettingsError("masking needs a mask token, which this base has not: choose another base or method")
        if len(tokens.ids) == 0:
            return tokens
        within = np.arange(len(tokens.ids)) - np.repeat(tokens.starts, tokens.lengths)
        if self.whole_words:
            unit, sentence, place = tokens.words()
        else:
            unit, sentence, place = np.arange(len(tokens.ids)), tokens.sentence, within
        chance = uniforms(key, tokens.rows[sentence], place)
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
