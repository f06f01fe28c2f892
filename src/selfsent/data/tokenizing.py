"""A tokenizer with a cache of words, in which most of the time went."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

KNOWN = 1 << 18
"""Pieces of text that are cached: the first ones, which include the frequent ones."""
_LONG = 100
"""Characters from which on a piece is not cached: it will hardly recur."""
_PROBES, _WORDS = 64, 8
_MEMORY = threading.Lock()
"""Of all readers: one of its own could not be copied with the encoder that it belongs to."""


class Read(NamedTuple):
    """Tokens of texts, concatenated, without special tokens.

    Args:
        ids: (tokens,) token ids, int64.
        lengths: (texts,) tokens of each text; zero is possible.
        word_starts: (tokens,) whether a token begins a word.
    """

    ids: np.ndarray
    lengths: np.ndarray
    word_starts: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """(texts,) where each text begins in `ids`."""
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    def parts(self, index: np.ndarray, most: int | None = None) -> Read:
        """The texts of these numbers, (chosen,), in this order; a text may be taken more than once.

        Args:
            index: the numbers.
            most: tokens that are kept of a text; all by default.
        """
        lengths = self.lengths[index] if most is None else np.minimum(self.lengths[index], most)
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        place = np.repeat(self.starts[index], lengths) + within
        return Read(self.ids[place], lengths, self.word_starts[place])

    def joined(self, other: Read) -> Read:
        """The concatenation of two."""
        return Read(*map(np.concatenate, zip(self, other, strict=True)))


class CachedTokenizer:
    """Tokenises texts as a tokenizer does, truncation, padding and special tokens left out.

    A text is cut at its spaces, and each piece is tokenised when it is first met, if that provably gives the same
    tokens: on pieces of the tokenizer's own vocabulary, and on some that are not in it. Most tokenizers cut at spaces
    themselves; of those that let a space belong to the word behind it, the piece gets that space.

    Args:
        tokenizer: of tokenizers; it is copied.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self._forget()
        self.space: str | None = next((space for space in ("", " ") if self._fits(space)), None)
        """What stands before a piece that is not the first of its text; None where texts are not cut."""
        self._forget()

    def __call__(self, texts: Sequence[str]) -> Read:
        """The tokens of texts; of several threads, one reads at a time."""
        if self.space is None:
            return self._whole(texts)
        with _MEMORY:
            return self._by_pieces(texts, self.space)

    def _forget(self) -> None:
        self._numbers: dict[str, int] = {}
        self._pieces = Read(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool))

    def _whole(self, texts: Sequence[str]) -> Read:
        encoded = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        ids = np.fromiter(itertools.chain.from_iterable(one.ids for one in encoded), np.int64, lengths.sum())
        # Each text's words come behind a -1, so that its first word differs from what stands before it.
        words = (itertools.chain((-1,), (-2 if word is None else word for word in one.word_ids)) for one in encoded)
        flat = np.fromiter(itertools.chain.from_iterable(words), np.int64, len(ids) + len(encoded))
        inner = np.ones(len(flat), dtype=bool)
        inner[np.cumsum(lengths + 1) - lengths - 1] = False
        return Read(ids, lengths, (np.diff(flat, prepend=-3) != 0)[inner])

    def _by_pieces(self, texts: Sequence[str], space: str) -> Read:
        cut = [_cut(text, space) for text in texts]
        flat = list(itertools.chain.from_iterable(cut))
        known = len(self._numbers)
        new = sorted({piece for piece in flat if piece not in self._numbers}, key=len)
        pieces = self._pieces.joined(self._whole(new)) if new else self._pieces
        self._numbers.update(zip(new, range(known, known + len(new)), strict=True))
        found = pieces.parts(np.fromiter(map(self._numbers.__getitem__, flat), np.int64, len(flat)))
        counts = np.fromiter(map(len, cut), np.int64, len(cut))
        lengths = np.add.reduceat(found.lengths, np.cumsum(counts) - counts) if len(cut) else counts
        kept = max(known, min(KNOWN, known + bisect.bisect_right(new, _LONG, key=len)))
        for piece in new[kept - known :]:
            del self._numbers[piece]
        self._pieces = pieces if kept == known + len(new) else pieces.parts(np.arange(kept))
        return Read(found.ids, lengths, found.word_starts)

    def _fits(self, space: str) -> bool:
        """Whether texts that are cut at their spaces give the same tokens as whole ones."""
        texts = list(_probes(self.tokenizer))
        return all(map(np.array_equal, self._whole(texts), self._by_pieces(texts, space)))


def _cut(text: str, space: str) -> list[str]:
    """The pieces of a text; one with spaces at an end or side by side, which tokenizers treat differently, is whole."""
    if "  " in text or text[:1] == " " or text[-1:] == " ":
        return [text]
    pieces = text.split(" ")
    return [pieces[0], *(space + piece for piece in pieces[1:])] if space else pieces


def _probes(tokenizer: Tokenizer) -> Iterator[str]:
    """Texts that show whether a space is a border to a tokenizer: of its own tokens, and of odd ones."""
    draw = np.random.default_rng(0)
    vocabulary = sorted(tokenizer.get_vocab(with_added_tokens=False))
    marks: Any = str.maketrans({"Ġ": " ", "▁": " ", "#": None})
    inner = [token for token in vocabulary if " " in token.translate(marks).strip()]
    added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    odd = ["a", "A", "über", "don't", "x-y.z", "☃", "☃", "12,5", "\t", "é", "你好", "a\nb", "\x00"]
    yield ""
    for _ in range(_PROBES):
        words = [vocabulary[place].translate(marks).strip() for place in draw.integers(len(vocabulary), size=_WORDS)]
        yield " ".join(word for word in words if word)
        yield " ".join(odd[place] for place in draw.integers(len(odd), size=_WORDS))
    for word in added[:_PROBES]:
        yield f"a {word} b {word}"
    yield from (token.translate(marks).strip() for token in inner[:_PROBES])
