"""Duplicates by compact sets of 64-bit keys, and near-duplicates by MinHash and locality-sensitive hashing."""

from __future__ import annotations

import mmap
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import SettingsError

_SHARDS, _SHARD_BITS = 32, 5
_FIRST_SIZE, _GROWTH, _FULL = 1024, 1.5, 0.8

BANDS, IN_BAND = 8, 14
"""Two texts whose words and pairs of words have Jaccard similarity s are taken for near-duplicates with probability
1 - (1 - s^14)^8: 1 at 1, 0.99 at 0.95, 0.86 at 0.9, 0.30 at 0.8, 0.05 at 0.7, 0.006 at 0.6."""
_VERSION = 1
"""Version of the definition of a near-duplicate; raise it when that changes."""
_WORD = re.compile(r"\w+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
"""Letters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""


def hash_keys(values: Iterable[Hashable], count: int) -> NDArray[np.uint64]:
    """Python's keyed 64-bit hash of each value: (count,). Two of a billion distinct texts collide in 1 of 37 runs."""
    keys = np.fromiter(map(hash, values), dtype=np.int64, count=count).view(np.uint64)
    keys[keys == 0] = 1  # Zero marks a free slot.
    return keys


class KeySet:
    """The keys seen so far, in about 12 bytes a key (24 if numbered).

    Open addressing with linear probing, in shards that grow one at a time and start at staggered sizes: neither the
    copy made while growing nor the free slots of all shards ever add up to a peak.
    """

    def __init__(self, numbered: bool = False) -> None:
        self._shards = [_Shard(int(_FIRST_SIZE * _GROWTH ** (i / _SHARDS)), numbered) for i in range(_SHARDS)]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Add keys (n,), none of them zero; true (n,) where a key occurs for the first time, in this batch or ever."""
        distinct, first = np.unique(keys, return_index=True)
        is_first = np.zeros(len(keys), dtype=bool)
        for shard, part in self._parts(distinct):
            is_first[first[part][shard.insert(distinct[part])[0]]] = True
        self._count += int(is_first.sum())
        return is_first

    def number(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Add keys (n,), and number them (n,) 0, 1, 2, ... by first appearance over all batches; the rest as `add`."""
        distinct, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        inserted = [(shard, part, *shard.insert(distinct[part])) for shard, part in self._parts(distinct)]
        fresh = np.flatnonzero(np.concatenate([new for _, _, new, _ in inserted])) if inserted else first
        numbers = np.zeros(len(distinct), dtype=np.int64)
        numbers[fresh[np.argsort(first[fresh])]] = self._count + np.arange(len(fresh))
        self._count += len(fresh)
        for shard, part, new, slots in inserted:
            shard.numbers[slots[new]] = numbers[part][new]
            numbers[part] = shard.numbers[slots]
        is_first = np.zeros(len(keys), dtype=bool)
        is_first[first[fresh]] = True
        return numbers[inverse], is_first

    def _parts(self, distinct: NDArray[np.uint64]) -> Iterator[tuple[_Shard, slice]]:
        """Each shard with its stretch of the sorted keys: the top bits choose the shard."""
        edges = np.searchsorted(distinct >> np.uint64(64 - _SHARD_BITS), np.arange(_SHARDS + 1, dtype=np.uint64))
        return ((s, slice(a, b)) for s, (a, b) in zip(self._shards, pairwise(edges.tolist()), strict=True) if b > a)


class _Shard:
    """One open-addressing table; the low 32 bits of a key choose its slot."""

    def __init__(self, size: int, numbered: bool) -> None:
        self.keys: NDArray[np.uint64] = _zeros(size, np.uint64)
        self.numbers: NDArray[np.int64] = _zeros(size * numbered, np.int64)
        self._used = 0

    def insert(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Insert distinct keys (n,); which of them are new (n,), and the slot of each (n,)."""
        while self._used + len(keys) > _FULL * len(self.keys):
            self._grow()
        size = len(self.keys)
        slots = ((keys & np.uint64(0xFFFFFFFF)) * np.uint64(size) >> np.uint64(32)).astype(np.intp)
        new, pending = np.zeros(len(keys), dtype=bool), np.arange(len(keys))
        while len(pending):
            at, wanted = slots[pending], keys[pending]
            free = self.keys[at] == 0
            # Of several keys that want one free slot the last stays; the others go on.
            self.keys[at[free]] = wanted[free]
            new[pending[free]] = True
            pending = pending[self.keys[at] != wanted]
            slots[pending] = (slots[pending] + 1) % size
        self._used += int(new.sum())
        return new, slots

    def _grow(self) -> None:
        taken = self.keys != 0
        keys, numbers = self.keys[taken], self.numbers[taken] if len(self.numbers) else None
        self.keys, self._used = _zeros(int(len(self.keys) * _GROWTH) + 1, np.uint64), 0
        _, slots = self.insert(keys)
        if numbers is not None:
            self.numbers = _zeros(len(self.keys), np.int64)
            self.numbers[slots] = numbers


def _zeros(size: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Zeros in a private mapping, which is returned to the system at once; malloc would fragment."""
    return np.frombuffer(mmap.mmap(-1, max(1, size) * np.dtype(dtype).itemsize), dtype=dtype)[:size]


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

    options = ("near-duplicates", _VERSION)
    """What a cached table depends on, as JSON."""

    def __init__(self) -> None:
        try:
            from rensa import RMinHash
        except ImportError:
            install = "pip install 'selfsent[near-duplicates]'"
            raise SettingsError(f"near-duplicates are found with rensa: {install}") from None
        self._minhash: Any = RMinHash
        self._bands = [KeySet() for _ in range(BANDS)]
        draw = np.random.default_rng(0)
        self._factors = draw.integers(1 << 63, size=IN_BAND, dtype=np.uint64) * np.uint64(2) + np.uint64(1)

    def new(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Which texts (n,) are like none before them, here or in an earlier call."""
        fresh = np.ones(len(texts), dtype=bool)
        if not len(texts):
            return fresh
        hashes = self._minhash.digest_matrix_from_token_sets(list(map(_features, texts)), BANDS * IN_BAND, 0)
        keys = np.array(hashes.to_rows(), dtype=np.uint64).reshape(len(texts), BANDS, IN_BAND) @ self._factors
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 1):  # then the low bits depend on all bits
            keys = (keys ^ (keys >> np.uint64(33))) * np.uint64(factor)
        keys[keys == 0] = 1
        for band, seen in enumerate(self._bands):
            fresh &= seen.add(np.ascontiguousarray(keys[:, band]))
        return fresh


def _features(text: str) -> list[str]:
    folded = text.casefold()
    words = _WORD.findall(UNSPACED.sub(r" \g<0> ", folded))
    return [*words, *map(" ".join, pairwise(words))] or [folded]
