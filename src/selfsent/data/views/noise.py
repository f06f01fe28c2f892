"""Noise on token ids: a pure function of (key, row), whatever the number of workers, ranks or restarts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from selfsent.data.random import uniforms
from selfsent.data.targets import IGNORED
from selfsent.data.views.tokens import Template, Tokens
from selfsent.errors import SettingsError


class Noise(Protocol):
    """Damages the sentences of a batch: deterministic in `key` (seed, epoch and view) and each sentence's row."""

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """The damaged batch; `tokens` stays as it is."""
        ...


class _Words:
    """The words of a batch, and random numbers for them.

    `word` (tokens,) is each token's word, `sentence` (words,) each word's sentence, `position` (words,) its position
    there: 0, 1, 2 ...
    """

    def __init__(self, tokens: Tokens, key: int) -> None:
        self.tokens, self.key = tokens, key
        self.word, self.sentence, self.position = tokens.words()

    @property
    def counts(self) -> np.ndarray:
        """(sentences,) words of each sentence."""
        return np.bincount(self.sentence, minlength=len(self.tokens.lengths))

    def uniform(self, draw: int = 0) -> np.ndarray:
        """(words,) a number in [0, 1) for each word."""
        return uniforms(self.key, self.tokens.rows[self.sentence], self.position, draw)

    def uniform_by_sentence(self, draw: int) -> np.ndarray:
        """(sentences,) a number in [0, 1) for each sentence."""
        return uniforms(self.key, self.tokens.rows, draw=draw)

    def shuffled(self) -> np.ndarray:
        """(words,) numbers of the words, in random order within each sentence."""
        return np.lexsort((self.uniform(), self.sentence))

    def begins(self) -> np.ndarray:
        """(tokens,) whether a token is the first of its word."""
        return np.asarray(np.diff(self.word, prepend=-1) != 0)

    def random_ids(self, template: Template) -> np.ndarray:
        """(words,) a random ordinary token for each word."""
        ordinary = np.flatnonzero(template.ordinary)
        return np.asarray(ordinary[(self.uniform(draw=1) * len(ordinary)).astype(int)])

    def exchanged(self, ratio: float, ids: np.ndarray) -> Tokens:
        """Replace each drawn word by its id in `ids`, (words,)."""
        drawn, begins = (self.uniform() < ratio)[self.word], self.begins()
        changed = replace(self.tokens, ids=np.where(drawn & begins, ids[self.word], self.tokens.ids))
        return changed.take(np.flatnonzero(begins | ~drawn))


@dataclass(frozen=True)
class _WordNoise(ABC):
    """Noise on a share of the words; a share of 0 is none."""

    ratio: float = 0.6

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """The damaged batch; `tokens` stays as it is."""
        return self._damaged(_Words(tokens, key), template) if self.ratio and len(tokens.ids) else tokens

    @abstractmethod
    def _damaged(self, words: _Words, template: Template) -> Tokens:
        """The damaged batch, of at least one token."""


@dataclass(frozen=True)
class DeleteWords(_WordNoise):
    """Each word is dropped with probability `ratio`, independently; one random word stays where all would go.

    Wang, Reimers and Gurevych 2021, section 3: ratio 0.6.
    """

    def _damaged(self, words: _Words, template: Template) -> Tokens:
        chance = words.uniform()
        # The word with the largest number goes last as the ratio grows; it is every word's with equal probability.
        keep = (chance >= self.ratio) | _is_largest(chance, words.sentence)
        return words.tokens.take(np.flatnonzero(keep[words.word]))


@dataclass(frozen=True)
class PickWords:
    """Keep a few words of each sentence in their order: 1 to `most` of them, every number equally likely.

    The length of a view then tells nothing about the sentence, and two views of it share few words: unlike deletion
    of a share, this leaves a contrastive loss no shortcut.
    """

    most: int = 8

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Pick words of every sentence."""
        if len(tokens.ids) == 0:
            return tokens
        words = _Words(tokens, key)
        stay = 1 + (words.uniform_by_sentence(draw=1) * self.most).astype(np.int64)
        rank = np.empty(len(words.sentence), dtype=np.int64)
        rank[words.shuffled()] = words.position
        return tokens.take(np.flatnonzero((rank < stay[words.sentence])[words.word]))


@dataclass(frozen=True)
class SwapWords(_WordNoise):
    """`ratio` of the words are permuted in a random cycle; at least two, if there are two.

    The paper says only "swap"; in a cycle every drawn word moves.
    """

    def _damaged(self, words: _Words, template: Template) -> Tokens:
        moved = np.minimum(words.counts, np.maximum(2, np.rint(self.ratio * words.counts).astype(np.int64)))
        circle = words.shuffled()[words.position < moved[words.sentence]]
        ends = np.flatnonzero(np.diff(words.sentence[circle], append=-1))
        following = np.roll(circle, -1)
        following[ends] = circle[np.append(0, ends[:-1] + 1)]
        order = np.arange(len(words.sentence))
        order[circle] = following
        return words.tokens.take_words(order)


@dataclass(frozen=True)
class CropWords(_WordNoise):
    """Keep one run of words of each sentence: a share drawn from 0 to `ratio` of them, at least one, from anywhere.

    Independent cropping (Izacard et al. 2022, section 3.1) of a sentence: two views share the words where they meet.
    """

    ratio: float = 0.5

    def _damaged(self, words: _Words, template: Template) -> Tokens:
        length = np.ceil(self.ratio * words.counts * words.uniform_by_sentence(draw=1)).astype(np.int64)
        length = np.maximum(1, length)
        begin = (words.uniform_by_sentence(draw=2) * (words.counts - length + 1)).astype(np.int64)
        offset = words.position - begin[words.sentence]
        kept = (offset >= 0) & (offset < length[words.sentence])
        return words.tokens.take(np.flatnonzero(kept[words.word]))


@dataclass(frozen=True)
class MaskWords(_WordNoise):
    """Each word becomes one [MASK] with probability `ratio`, independently."""

    def _damaged(self, words: _Words, template: Template) -> Tokens:
        if template.mask is None:
            raise SettingsError("this base's tokenizer has no mask token: choose another `noise`")
        return words.exchanged(self.ratio, np.full(len(words.sentence), template.mask))


@dataclass(frozen=True)
class ReplaceWords(_WordNoise):
    """Each word becomes one random token of the vocabulary with probability `ratio`, independently."""

    def _damaged(self, words: _Words, template: Template) -> Tokens:
        return words.exchanged(self.ratio, words.random_ids(template))


@dataclass(frozen=True)
class AddWords(_WordNoise):
    """A random token of the vocabulary is inserted before each word with probability `ratio`, independently."""

    def _damaged(self, words: _Words, template: Template) -> Tokens:
        added = words.uniform() < self.ratio
        begins = np.flatnonzero(words.begins())[added]
        times = np.ones(len(words.word), dtype=np.int64)
        times[begins] = 2
        longer = words.tokens.take(np.repeat(np.arange(len(times)), times))
        ids = longer.ids.copy()
        # Of the two copies of a word's first token, the first becomes the new word.
        ids[begins + np.arange(len(begins))] = words.random_ids(template)[added]
        return replace(longer, ids=ids)


@dataclass(frozen=True)
class MaskTokens:
    """BERT's masking: `ratio` of the tokens become targets; 80 % of them [MASK], 10 % a random token, 10 % stay.

    Devlin et al. 2019, section 3.1. A sentence of which nothing was drawn gives one random token. Truncation
    comes later, so a batch of long sentences may be left without any target.

    Args:
        ratio: share of the tokens to predict.
    """

    ratio: float = 0.15

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """Mask tokens of every sentence, and set the targets."""
        if template.mask is None:
            raise SettingsError("masking needs a mask token, which this base has not: choose another base or method")
        if len(tokens.ids) == 0:
            return tokens
        rows, within = tokens.rows[tokens.sentence], tokens.within
        chosen = _drawn(uniforms(key, rows, within), tokens.sentence, self.ratio)
        kind = uniforms(key, rows, within, draw=1)
        ordinary = np.flatnonzero(template.ordinary)
        other = ordinary[(uniforms(key, rows, within, draw=2) * len(ordinary)).astype(np.int64)]
        ids = np.where(chosen & (kind < 0.8), template.mask, np.where(chosen & (kind >= 0.9), other, tokens.ids))
        return replace(tokens, ids=ids, targets=np.where(chosen, tokens.ids, IGNORED))


def _is_largest(values: np.ndarray, sentence: np.ndarray) -> np.ndarray:
    """(n,) whether a value is the largest of its sentence."""
    begins = np.flatnonzero(np.diff(sentence, prepend=-1))
    return np.asarray(values == np.repeat(np.maximum.reduceat(values, begins), np.diff(begins, append=len(values))))


def _drawn(chance: np.ndarray, sentence: np.ndarray, ratio: float) -> np.ndarray:
    """(n,) whether each unit is drawn: all below `ratio`, and at least one of each sentence."""
    return np.asarray((chance < ratio) | _is_largest(-chance, sentence))
