"""Compact sets of 64-bit keys with batched lookup and insertion."""

from __future__ import annotations

import mmap
import re
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import SettingsError

_SHARDS = 32
_FIRST_SIZE = 1024
_GROWTH = 1.5
_FULL = 0.8


def hash_keys(values: Iterable[Hashable], count: int) -> NDArray[np.uint64]:
    """Python's keyed 64-bit hash of each value: (count,). Two of a billion distinct texts collide in 1 of 37 runs."""
    keys = np.fromiter(map(hash, values), dtype=np.int64, count=count).view(np.uint64)
    keys[keys == 0] = 1  # Zero marks a free slot.
    return keys


class KeySet:
    """The keys seen so far, in about 12 bytes a key (24 when numbered).

    Open addressing with linear probing, in shards that grow one at a time and start at staggered sizes: neither the
    copy made while growing nor the free slots of all shards ever add up to a peak.
    """

    def __init__(self, numbered: bool = False) -> None:
        sizes = [int(_FIRST_SIZE * _GROWTH ** (shard / _SHARDS)) for shard in range(_SHARDS)]
        self._shards = [_Shard(size, numbered) for size in sizes]
        self._edges = np.arange(1, _SHARDS, dtype=np.uint64) << np.uint64(64 - _SHARDS.bit_length() + 1)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Add keys (n,), none of them zero; true (n,) where a key occurs for the first time, in this batch or ever."""
        distinct, first = np.unique(keys, return_index=True)
        is_first = np.zeros(len(keys), dtype=bool)
        for shard, part in self._parts(distinct):
            new, _ = shard.insert(distinct[part])
            is_first[first[part][new]] = True
        self._count += int(is_first.sum())
        return is_first

    def number(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Add keys (n,), none of them zero, and number them (n,) 0, 1, 2, ... by first appearance over all batches."""
        distinct, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        inserted = [(shard, part, *shard.insert(distinct[part])) for shard, part in self._parts(distinct)]
        is_new = np.concatenate([new for _, _, new, _ in inserted]) if inserted else np.zeros(0, dtype=bool)
        fresh = np.flatnonzero(is_new)
        numbers = np.zeros(len(distinct), dtype=np.int64)
        numbers[fresh[np.argsort(first[fresh])]] = self._count + np.arange(len(fresh))
        self._count += len(fresh)
        for shard, part, new, slots in inserted:
            shard.numbers[slots[new]] = numbers[part][new]
            numbers[part] = shard.numbers[slots]
        return numbers[inverse]

    def _parts(self, distinct: NDArray[np.uint64]) -> list[tuple[_Shard, slice]]:
        """Each shard with its stretch of the sorted keys: the top bits choose the shard."""
        edges = [0, *np.searchsorted(distinct, self._edges).tolist(), len(distinct)]
        return [(s, slice(a, b)) for s, a, b in zip(self._shards, edges[:-1], edges[1:], strict=True) if b > a]


class _Shard:
    """One open-addressing table; the low 32 bits of a key choose its slot."""

    def __init__(self, size: int, numbered: bool) -> None:
        self.keys: NDArray[np.uint64] = _zeros(size, np.uint64)
        self.numbers: NDArray[np.int64] = _zeros(size if numbered else 0, np.int64)
        self._used = 0

    def insert(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Insert distinct keys (n,); which of them are new (n,), and the slot each now lies in (n,)."""
        while self._used + len(keys) > _FULL * len(self.keys):
            self._grow()
        size = len(self.keys)
        slots = ((keys & np.uint64(0xFFFFFFFF)) * np.uint64(size) >> np.uint64(32)).astype(np.intp)
        new = np.zeros(len(keys), dtype=bool)
        pending = np.arange(len(keys))
        while len(pending):
            at, wanted = slots[pending], keys[pending]
            free = self.keys[at] == 0
            self.keys[at[free]] = wanted[
                free
            ]  # Of several keys that want one free slot the last stays; the others go on.
            new[pending[free]] = True
            pending = pending[self.keys[at] != wanted]
            slots[pending] = (slots[pending] + 1) % size
        self._used += int(new.sum())
        return new, slots

    def _grow(self) -> None:
        taken = self.keys != 0
        keys, numbers = self.keys[taken], self.numbers[taken] if len(self.numbers) else None
        size = int(len(self.keys) * _GROWTH) + 1
        self.keys, self._used = _zeros(size, np.uint64), 0
        _, slots = self.insert(keys)
        if numbers is not None:
            self.numbers = _zeros(size, np.int64)
            self.numbers[slots] = numbers


def _zeros(size: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Zeros in a private mapping, which is returned to the system at once; malloc would fragment."""
    if not size:
        return np.zeros(0, dtype=dtype)
    return np.frombuffer(mmap.mmap(-1, size * np.dtype(dtype).itemsize), dtype=dtype)


BANDS, IN_BAND = 8, 14
"""Two texts whose words and pairs of words have Jaccard similarity s are taken for near-duplicates with probability
1 - (1 - s^14)^8: 1 at 1, 0.99 at 0.95, 0.86 at 0.9, 0.30 at 0.8, 0.05 at 0.7, 0.006 at 0.6."""
_VERSION = 1
"""Version of the definition of a near-duplicate; raise it when that changes."""
_WORD = re.compile(r"\w+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
"""Letters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""


class NearDuplicates:
    """Finds texts that are nearly the same as one it was shown before, in 100 to 150 bytes a text.

    Texts are sets of words and of pairs of neighbouring words, upper and lower case alike and without punctuation;
    in scripts without spaces single letters stand for words. A text that is like a near-duplicate of an earlier one
    counts as well, so what is left are the first texts of groups that have nothing to do with each other.

    Raises:
        SettingsError: rensa is not installed.

    Example:
        >>> seen = NearDuplicates()
        >>> seen.new(["The printer is dead.", "It rains.", "the printer is DEAD!"]).tolist()
        [True, True, False]
    """

    def __init__(self) -> None:
        try:
            from rensa import RMinHash
        except ImportError:
            raise SettingsError(
                "near-duplicates are found with rensa: pip install 'selfsent[near-duplicates]'"
            ) from None
        self._minhash: Any = RMinHash
        self._bands = [KeySet() for _ in range(BANDS)]
        draw = np.random.default_rng(0)
        self._factors = draw.integers(1 << 63, size=IN_BAND, dtype=np.uint64) * np.uint64(2) + np.uint64(1)

    def options(self) -> list[object]:
        """What a table depends on, as JSON."""
        return ["near-duplicates", _VERSION]

    def new(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Which texts (n,) are like none before them, here or in an earlier call."""
        fresh = np.ones(len(texts), dtype=bool)
        if not len(texts):
            return fresh
        hashes = self._minhash.digest_matrix_from_token_sets(list(map(_features, texts)), BANDS * IN_BAND, 0)
        parts = np.array(hashes.to_rows(), dtype=np.uint64).reshape(len(texts), BANDS, IN_BAND)
        keys = _mixed(parts @ self._factors)
        for band, seen in enumerate(self._bands):
            fresh &= seen.add(np.ascontiguousarray(keys[:, band]))
        return fresh


def _features(text: str) -> list[str]:
    folded = text.casefold()
    words = _WORD.findall(UNSPACED.sub(r" \g<0> ", folded))
    return [*words, *map(" ".join, pairwise(words))] or [folded]


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Keys whose lower bits depend on all bits; none is zero."""
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    keys ^= keys >> np.uint64(33)
    keys[keys == 0] = 1
    return keys
