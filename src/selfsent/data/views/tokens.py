"""Batches of tokenised sentences, the input of noise, and their packing for the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent.data.ragged import ranges
from selfsent.data.targets import IGNORED

if TYPE_CHECKING:
    from selfsent.data.packed import Packed


@dataclass(frozen=True)
class Tokens:
    """The tokens of a batch of sentences, concatenated, without special tokens.

    Args:
        ids: (tokens,) token ids.
        lengths: (sentences,) tokens of each sentence; zero is possible.
        word_starts: (tokens,) whether a token begins a word.
        rows: (sentences,) row of each sentence in the corpus: with seed and epoch, all that noise may depend on.
        targets: (tokens,) token to predict at each position, or `IGNORED`; or None.
    """

    ids: np.ndarray
    lengths: np.ndarray
    word_starts: np.ndarray
    rows: np.ndarray
    targets: np.ndarray | None = None

    @property
    def starts(self) -> np.ndarray:
        """(sentences,) position of each sentence's first token."""
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    @property
    def sentence(self) -> np.ndarray:
        """(tokens,) number of the sentence each token belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def within(self) -> np.ndarray:
        """(tokens,) position of each token in its sentence."""
        return ranges(np.zeros_like(self.lengths), self.lengths)

    def words(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(tokens,) running number of each token's word; (words,) sentence of each word and (words,) position in it."""
        begins = self.word_starts.copy()
        begins[self.starts[self.lengths > 0]] = True
        sentence = self.sentence[begins]
        first = np.searchsorted(sentence, np.arange(len(self.lengths)))
        return np.cumsum(begins) - 1, sentence, np.arange(len(sentence)) - first[sentence]

    def take(self, index: np.ndarray) -> Tokens:
        """The tokens at `index`, (chosen,) in rising order of sentence; a token may be taken more than once."""
        lengths = np.bincount(self.sentence[index], minlength=len(self.lengths))
        targets = None if self.targets is None else self.targets[index]
        return Tokens(self.ids[index], lengths, self.word_starts[index], self.rows, targets)

    def take_words(self, order: np.ndarray) -> Tokens:
        """The words of these running numbers, in this order, which must not lead from one sentence into another."""
        sizes = np.bincount(self.words()[0])
        return self.take(ranges((np.cumsum(sizes) - sizes)[order], sizes[order]))

    def select(self, sentences: np.ndarray, longest: int | None = None) -> Tokens:
        """The sentences of these numbers, (chosen,), repeated or not, cut to `longest` tokens; without targets."""
        lengths = self.lengths[sentences] if longest is None else np.minimum(self.lengths[sentences], longest)
        index = ranges(self.starts[sentences], lengths)
        return Tokens(self.ids[index], lengths, self.word_starts[index], self.rows[sentences])

    def after(self, ids: np.ndarray) -> Tokens:
        """The sentences with the same tokens, (n,), before each; these are no targets."""
        places = np.repeat(self.starts, len(ids))
        inserted = np.tile(ids, len(self.lengths))
        targets = None if self.targets is None else np.insert(self.targets, places, IGNORED)
        starts = np.insert(self.word_starts, places, True)
        return Tokens(np.insert(self.ids, places, inserted), self.lengths + len(ids), starts, self.rows, targets)

    def with_first(self, places: np.ndarray, others: Tokens) -> Tokens:
        """The sentences with `others` in place of the ones at `places`, (chosen,); without targets."""
        parts = zip(*((each.ids, each.lengths, each.word_starts, each.rows) for each in (self, others)), strict=True)
        order = np.arange(len(self.lengths))
        order[places] = len(order) + np.arange(len(places))
        return Tokens(*map(np.concatenate, parts)).select(order)

    def joined(self, rows: np.ndarray, counts: np.ndarray) -> Tokens:
        """The same tokens with each `counts`, (rows,), sentences joined into one; noise depends on `rows`, (rows,)."""
        ends = np.concatenate(([0], np.cumsum(self.lengths)))[np.cumsum(counts)]
        return Tokens(self.ids, np.diff(ends, prepend=0), self.word_starts, rows, self.targets)


@dataclass(frozen=True)
class Template:
    """Special tokens that a tokenizer puts around a sentence, and the ids that noise needs.

    Args:
        prefix: ids in front of a sentence, such as [CLS].
        suffix: ids after it, such as [SEP].
        mask: id of the mask token, or None.
        ordinary: (vocabulary,) whether an id is an ordinary token: noise draws random words from these.
        between: ids between two texts that are joined as one input.
        types: token types of the five parts of a pair: prefix, first text, separator, second text, suffix; None for a
            tokenizer without types.
        keeps_end: whether a text that is too long loses its beginning.
    """

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    mask: int | None
    ordinary: np.ndarray
    between: tuple[int, ...] = ()
    types: tuple[int, int, int, int, int] | None = None
    keeps_end: bool = False

    @classmethod
    def of(cls, tokenizer: Any, vocabulary: int) -> Template:
        """The template of a transformers tokenizer."""
        encoded = tokenizer("a", return_special_tokens_mask=True)
        special = np.asarray(encoded["special_tokens_mask"], dtype=bool)
        ids = encoded["input_ids"]
        inside = np.flatnonzero(~special)
        ordinary = np.ones(vocabulary, dtype=bool)
        ordinary[[i for i in tokenizer.all_special_ids if i < vocabulary]] = False
        between, types = _of_pairs(tokenizer)
        prefix, suffix = tuple(ids[: inside[0]]), tuple(ids[inside[-1] + 1 :])
        keeps_end = tokenizer.truncation_side == "left"
        return cls(prefix, suffix, tokenizer.mask_token_id, ordinary, between, types, keeps_end)

    def pack(self, tokens: Tokens, max_length: int) -> Packed:
        """Cut sentences to `max_length` tokens in all, put the special tokens around them, and pack them."""
        from selfsent.data.packed import Packed  # torch is slow to import, and augmenters of text need none

        room = max_length - len(self.prefix) - len(self.suffix)
        if tokens.lengths.max(initial=0) > room:
            within = tokens.within
            if self.keeps_end:
                within = np.repeat(tokens.lengths, tokens.lengths) - 1 - within
            tokens = tokens.take(np.flatnonzero(within < room))
        lengths = tokens.lengths + max_length - room
        starts = np.cumsum(lengths) - lengths
        ids = np.empty(int(lengths.sum()), dtype=np.int64)
        inner = np.ones(len(ids), dtype=bool)
        fixed = [(starts + offset, value) for offset, value in enumerate(self.prefix)]
        fixed += [(starts + lengths - len(self.suffix) + offset, value) for offset, value in enumerate(self.suffix)]
        for at, value in fixed:
            ids[at], inner[at] = value, False
        ids[inner] = tokens.ids
        if tokens.targets is None:
            return Packed(ids, lengths)
        targets = np.full(len(ids), IGNORED, dtype=np.int64)
        targets[inner] = tokens.targets
        return Packed(ids, lengths, targets)

    def pack_pairs(self, first: Tokens, second: Tokens, max_length: int) -> Packed:
        """Join two texts as one input each, with the special tokens of a pair; the longer one is cut first."""
        from selfsent.data.packed import Packed

        room, count = max_length - len(self.prefix) - len(self.between) - len(self.suffix), len(first.lengths)
        one, other = _longest_first(first.lengths, second.lengths, room)
        fixed = [np.tile(np.array(ids, np.int64), count) for ids in (self.prefix, self.between, self.suffix)]
        texts = [text.ids[text.within < np.repeat(n, text.lengths)] for text, n in ((first, one), (second, other))]
        values = [fixed[0], texts[0], fixed[1], texts[1], fixed[2]]
        sizes: list[int | np.ndarray] = [len(self.prefix), one, len(self.between), other, len(self.suffix)]
        order = np.argsort(np.concatenate([np.repeat(np.arange(count), size) for size in sizes]), kind="stable")
        types = None
        if self.types is not None:
            types = np.concatenate([np.full(len(v), t) for v, t in zip(values, self.types, strict=True)])[order]
        return Packed(np.concatenate(values)[order], one + other + max_length - room, given_types=types)


def _of_pairs(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, int, int, int, int] | None]:
    """Ids between two texts, and the token types of the five parts of a pair."""
    encoded = tokenizer("a", "a", return_special_tokens_mask=True)
    inside = np.flatnonzero(~np.asarray(encoded["special_tokens_mask"], dtype=bool))
    gaps = np.flatnonzero(np.diff(inside) > 1)
    # Without special tokens in between there is no telling where the second text begins, and no need to.
    left, right = (inside[gaps[0]], inside[gaps[0] + 1]) if len(gaps) else (inside[0], inside[0] + 1)
    between, types = encoded["input_ids"][left + 1 : right], encoded.get("token_type_ids")
    if types is None:
        return tuple(between), None
    middle = types[left + 1] if between else 0
    return tuple(between), (types[0], types[left], middle, types[right], types[-1])


def _longest_first(first: np.ndarray, second: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """(pairs,) tokens kept of each text of a pair, as tokenizers cut: from the longer one, then from both alike."""
    short, long = np.minimum(first, second), np.maximum(first, second)
    long = np.minimum(long, np.maximum(short, room - short))
    over = short + long > room
    short, long = np.where(over, room // 2, short), np.where(over, room // 2 + room % 2, long)
    swapped = first > second
    return np.where(swapped, long, short), np.where(swapped, short, long)
