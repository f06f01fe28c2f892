"""A tokenizer with a cache of words, on which most of its time is spent."""

from __future__ import annotations

import bisect
import itertools
import re
import string
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer

from selfsent.data.views.tokens import Tokens

KNOWN = 1 << 18
"""Pieces of text that are cached: the first ones, which include the frequent ones."""
_LONG = 100
"""Characters of the longest piece that is cached; longer ones hardly recur."""
_TOGETHER = 256
"""Pieces that are tokenised as one text: a text of its own costs more than its words do."""
_PROBES, _WORDS = 64, 8
_ODD = ("a", "A", "über", "don't", "x-y.z", "☃", "☃", "12,5", "\t", "é", "你好", "a\nb", "\x00")
_LOCK = threading.Lock()
"""Shared by all instances: a lock in an instance would keep its encoder from being copied."""


class CachedTokenizer:
    """Tokenises texts as a tokenizer does, without truncation, padding and special tokens.

    A text is cut at its spaces, and each piece is tokenised when it is first met, if that provably gives the same
    tokens: on pieces of the tokenizer's own vocabulary, and on some that are not in it. Most tokenizers cut at spaces
    themselves; of those that attach a space to the next word, the piece gets that space. Texts are read whole that hold
    an added token with a space or one that takes the spaces beside it, or a character found to act beyond its piece.

    Args:
        tokenizer: of tokenizers; it is copied.
        words: whether it is asked where words start; without, all of `word_starts` is false, and new pieces take half
            of the time.
        max_cached: number of pieces kept in memory.
    """

    def __init__(self, tokenizer: Tokenizer, words: bool = True, max_cached: int = KNOWN) -> None:
        self.tokenizer, self.words, self._max_cached = _plain(tokenizer), words, max_cached
        self.space: str | None = None
        """Prefix of a piece that is not the first of its text; None if texts are not cut."""
        spanning, hidden = _spanning(self.tokenizer)
        self._uncut = _any_of(("  ", *spanning))
        probes = list(_probes(self.tokenizer))
        for space in () if hidden else (" ", ""):
            if self._as_whole(probes, space):
                self.space = space
        if self.space is not None:
            letters = _letters(self.tokenizer)
            around = {each: _around(each, *letters) for each in _spacelike()}
            alike = self._as_whole([*itertools.chain.from_iterable(around.values())], self.space)
            odd = () if alike else (each for each in around if not self._as_whole(around[each], self.space))
            self._uncut = _any_of(("  ", *spanning, *odd))
        self._forget()

    @property
    def cached(self) -> set[str]:
        """The pieces in memory."""
        return {*self._numbers}

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """The tokens of texts, numbered as rows; one thread at a time."""
        if self.space is None:
            return self._whole(texts)
        with _LOCK:
            return self._by_pieces(texts, self.space)

    def _as_whole(self, texts: Sequence[str], space: str) -> bool:
        """Whether texts have the same tokens in pieces."""
        self._forget()
        return all(map(np.array_equal, _arrays(self._whole(texts)), _arrays(self._by_pieces(texts, space))))

    def _forget(self) -> None:
        self._numbers: dict[str, int] = {}
        self._pieces = self._whole([])

    def _whole(self, texts: Sequence[str]) -> Tokens:
        return read_whole(self.tokenizer, texts, self.words)

    def _by_pieces(self, texts: Sequence[str], space: str) -> Tokens:
        cut = [self._cut(text, space) for text in texts]
        flat = list(itertools.chain.from_iterable(cut))
        numbers = np.fromiter(map(self._numbers.get, flat, itertools.repeat(-1)), np.int64, len(flat))
        pieces, known = self._pieces, len(self._numbers)
        if len(missing := np.flatnonzero(numbers < 0)):
            met = [flat[place] for place in missing.tolist()]
            new = sorted({*met}, key=len)
            number = dict(zip(new, range(known, known + len(new)), strict=True))
            numbers[missing] = [number[piece] for piece in met]
            read = self._whole(new) if self.words else self._apart(new, space)
            ids, lengths, starts = map(np.concatenate, zip(_arrays(pieces), _arrays(read), strict=True))
            pieces = Tokens(ids, lengths, starts, np.arange(len(lengths)))
            kept = max(known, min(self._max_cached, known + bisect.bisect_right(new, _LONG, key=len)))
            self._pieces = pieces if kept == known + len(new) else pieces.select(np.arange(kept))
            self._numbers.update(zip(new[: kept - known], range(known, kept), strict=True))
        counts = np.fromiter(map(len, cut), np.int64, len(cut))
        return pieces.select(numbers).joined(np.arange(len(cut)), counts)

    def _apart(self, pieces: Sequence[str], space: str) -> Tokens:
        """The tokens of each piece, without the starts of words; many pieces are read as one text.

        Between spaces they are read faster than as parts, if a tokenizer attaches no space to a word.
        """
        groups = [list(pieces[start : start + _TOGETHER]) for start in range(0, len(pieces), _TOGETHER)]
        texts, parts = dict[int, str](), dict[int, list[str]]()
        for number, group in enumerate(groups):
            text = " ".join(group)
            if space or text.count(" ") >= len(group) or self._uncut.search(text):
                parts[number] = group
            else:
                texts[number] = text
        read = dict(zip(texts, self.tokenizer.encode_batch([*texts.values()], add_special_tokens=False), strict=True))
        in_parts = self.tokenizer.encode_batch([*parts.values()], is_pretokenized=True, add_special_tokens=False)
        read.update(zip(parts, in_parts, strict=True))
        ids, lengths = list[np.ndarray](), list[np.ndarray]()
        for number, group in enumerate(groups):
            ids.append(np.array(read[number].ids, np.int64))
            if number in parts:  # the number of the part is what `word_ids` are for a text in parts
                places = np.array(read[number].word_ids, np.int64)
            else:
                ends = np.cumsum(np.fromiter(map(len, group), np.int64, len(group)) + 1)
                last = np.fromiter((end for _, end in read[number].offsets), np.int64, len(ids[-1]))
                places = np.searchsorted(ends, last, side="right")
            lengths.append(np.bincount(places, minlength=len(group)))
        flat = np.concatenate(ids)
        return Tokens(flat, np.concatenate(lengths), np.zeros(len(flat), dtype=bool), np.arange(len(pieces)))

    def _cut(self, text: str, space: str) -> list[str]:
        """The pieces of a text; the text itself where a cut may change it, as where spaces are doubled or at an end."""
        if text[:1] == " " or text[-1:] == " " or self._uncut.search(text):
            return [text]
        pieces = text.split(" ")
        return [pieces[0], *(space + piece for piece in pieces[1:])] if space else pieces


def read_whole(tokenizer: Tokenizer, texts: Sequence[str], words: bool = True) -> Tokens:
    """The tokens of texts by a tokenizer without truncation and padding, numbered as rows; no special ones.

    Args:
        tokenizer: of tokenizers.
        texts: (n,) texts.
        words: whether it is asked where words start; all of `word_starts` is false without.
    """
    encode = tokenizer.encode_batch if words else tokenizer.encode_batch_fast  # which tells no words
    encoded = encode(list(texts), add_special_tokens=False)
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    ids = np.fromiter(itertools.chain.from_iterable(one.ids for one in encoded), np.int64, lengths.sum())
    starts = np.zeros(len(ids), dtype=bool)
    if words:
        # A -1 before each text separates its first word from the text before.
        of = (itertools.chain((-1,), (-2 if word is None else word for word in one.word_ids)) for one in encoded)
        flat = np.fromiter(itertools.chain.from_iterable(of), np.int64, len(ids) + len(encoded))
        inner = np.ones(len(flat), dtype=bool)
        inner[np.cumsum(lengths + 1) - lengths - 1] = False
        starts = (np.diff(flat, prepend=-3) != 0)[inner]
    return Tokens(ids, lengths, starts, np.arange(len(lengths)))


def equal_tokens(tokenizer: Tokenizer) -> list[list[str]]:
    """Groups of added tokens that a text cannot tell apart, since they are equal once normalized.

    tokenizers 0.23.3 reads any of a group, and may read another one in each copy of a tokenizer.

    Examples:
        >>> from tokenizers import models, normalizers
        >>> tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
        >>> tokenizer.normalizer = normalizers.Lowercase()
        >>> tokenizer.add_tokens(["Apple", "apple", "pear"])
        3
        >>> equal_tokens(tokenizer)
        [['Apple', 'apple']]
    """
    groups, normalizer = defaultdict[str, list[str]](list), tokenizer.normalizer
    for token in _added(tokenizer):
        if token.normalized and normalizer is not None:
            groups[normalizer.normalize_str(token.content)].append(token.content)
    return [each for each in groups.values() if len(each) > 1]


def _plain(tokenizer: Tokenizer) -> Tokenizer:
    """A copy without truncation and padding."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy


def _arrays(tokens: Tokens) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tokens.ids, tokens.lengths, tokens.word_starts


def _any_of(strings: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, strings)))


def _spanning(tokenizer: Tokenizer) -> tuple[list[str], bool]:
    """The added tokens that read more than a piece, and whether one is found only in a text that is normalised."""
    normalizer = tokenizer.normalizer
    found, hidden = [], False
    for token in _added(tokenizer):
        forms = {token.content, normalizer.normalize_str(token.content) if normalizer and token.normalized else ""}
        if token.lstrip or token.rstrip or any(map(_spans, forms)):
            found.append(token.content)
            hidden |= bool(normalizer and token.normalized)
    return found, hidden


def _spans(form: str) -> bool:
    """Whether a token's form may lead from one piece into the next; where spaces are doubled, no text is cut."""
    return "  " not in form and not {" ", "▁", "Ġ"}.isdisjoint(form[1:] if form[:1] != " " else form)


def _added(tokenizer: Tokenizer) -> list[AddedToken]:
    return list(tokenizer.get_added_tokens_decoder().values())


@cache
def _spacelike() -> tuple[str, ...]:
    """Characters that a normalizer may turn into a space or remove, and characters that may act as a space."""
    several = map(chr, (*range(0x3100), *range(0xFB00, 0x10000)))
    kinds = ("Cc", "Cf", "Zs", "Zl", "Zp")
    odd = (
        each for each in several if unicodedata.category(each) in kinds or " " in unicodedata.normalize("NFKC", each)
    )
    return tuple(each for each in odd if each != " ")


def _letters(tokenizer: Tokenizer) -> tuple[str, str]:
    """Two letters that are no added token: one that takes the spaces beside it would keep the probes from being cut."""
    added = {token.content.strip().lower() for token in _added(tokenizer)}
    first, second, *_ = [*(each for each in string.ascii_lowercase if each not in added), "a", "b"]
    return first, second


def _around(character: str, first: str, second: str) -> list[str]:
    """Texts with a character at the borders of pieces, which begin with two letters, and between them."""
    return [
        f"{first}{character} {second}",
        f"{first} {character}{second}",
        f"{first} {character} {second}",
        f"{character} {first}",
        f"{first} {character}",
    ]


def _probes(tokenizer: Tokenizer) -> Iterator[str]:
    """Test texts of the vocabulary and of odd tokens, to find out whether a tokenizer splits at spaces."""
    draw = np.random.default_rng(0)
    vocabulary = sorted(tokenizer.get_vocab(with_added_tokens=False))
    marks: Any = str.maketrans({"Ġ": " ", "▁": " ", "#": None})
    spaced = (token for token in vocabulary if " " in token or "Ġ" in token or "▁" in token)
    inner = [token for token in spaced if " " in token.translate(marks).strip()]
    added = [token.content for token in _added(tokenizer)]
    yield ""
    for _ in range(_PROBES):
        words = [vocabulary[index].translate(marks).strip() for index in draw.integers(len(vocabulary), size=_WORDS)]
        yield " ".join(word for word in words if word)
        yield " ".join(_ODD[index] for index in draw.integers(len(_ODD), size=_WORDS))
    for word in added[:_PROBES]:
        yield f"a {word} b {word}"
    yield from (token.translate(marks).strip() for token in inner[:_PROBES])


def _rests(tokenizer: Tokenizer, prompt: str) -> Iterator[str]:
    """Texts that complete an added token which begins in a prompt, and tokens that ask what stands before them."""
    normal = tokenizer.normalizer.normalize_str if tokenizer.normalizer else str
    for token in _added(tokenizer):
        if token.lstrip or token.single_word:
            yield token.content
        for form, before in ((token.content, prompt), (normal(token.content), normal(prompt))):
            ends = (end for end in range(1, len(form)) if before.endswith(form[:end]))
            yield from (form[end:] for end in ends)


def seam(tokenizer: Tokenizer, prompt: str) -> tuple[np.ndarray, str]:
    """A prompt cut in two: a beginning with the same tokens before any text, and an end whose tokens depend on it.

    Where the text's own tokens are the same behind the prompt, there is no such end. It is a space where a tokenizer
    attaches that to the next word, and the whole prompt at worst. Found by trial on beginnings of all kinds.

    Args:
        tokenizer: of tokenizers.
        prompt: the prompt.

    Returns:
        (n,) ids, and the end.

    Examples:
        >>> ids, end = seam(tokenizer, "query: ")  # of RoBERTa
        >>> len(ids), end
        (2, ' ')
    """
    plain = _plain(tokenizer)
    probes = [*_probes(plain), *map(chr, range(33, 127)), *_ODD, *_rests(plain, prompt)]
    probes = [*filter(None, map(str.strip, probes))]

    def read(texts: Sequence[str]) -> list[list[int]]:
        return [one.ids for one in plain.encode_batch(list(texts), add_special_tokens=False)]

    expected = read([prompt + probe for probe in probes])
    cuts = range(len(prompt), max(-1, len(prompt) - 16), -1)
    for start, end in ((prompt.rstrip(), ""), *((prompt[:cut], prompt[cut:]) for cut in cuts)):
        (ids,) = read([start])
        if all(
            whole == ids + own for whole, own in zip(expected, read([end + probe for probe in probes]), strict=True)
        ):
            return np.array(ids, np.int64), end
    return np.empty(0, np.int64), prompt
