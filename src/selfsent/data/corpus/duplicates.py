"""A compact set of numbered 64-bit keys with batched lookup and insertion."""

from __future__ import annotations

import mmap
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHARDS, _SHARD_BITS = 32, 5
_FIRST_SIZE, _GROWTH, _FULL = 1024, 1.5, 0.8


def hash_keys(values: Iterable[Hashable], count: int) -> NDArray[np.uint64]:
    """Python's keyed 64-bit hash of each value: (count,). Two of a billion distinct texts collide in 1 of 37 runs."""
    keys = np.fromiter(map(hash, values), dtype=np.int64, count=count).view(np.uint64)
    keys[keys == 0] = 1  # Zero marks a free slot.
    return keys


class KeySet:
    """The keys seen so far, numbered by first appearance, in about 24 bytes a key.

    Open addressing with linear probing, in shards that grow one at a time and start at staggered sizes: neither the
    copy made while growing nor the free slots of all shards ever add up to a peak.
    """

    def __init__(self) -> None:
        self._shards = [_Shard(int(_FIRST_SIZE * _GROWTH ** (i / _SHARDS))) for i in range(_SHARDS)]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the keys and their numbers."""
        return sum(shard.keys.nbytes + shard.numbers.nbytes for shard in self._shards)

    def number(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Add keys (n,), none of them zero.

        Returns:
            (n,) their numbers, 0, 1, 2, ... by first appearance over all batches; and (n,) whether that is here.
        """
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

    def __init__(self, size: int) -> None:
        self.keys: NDArray[np.uint64] = _zeros(size, np.uint64)
        self.numbers: NDArray[np.int64] = _zeros(size, np.int64)
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
        keys, numbers = self.keys[taken], self.numbers[taken]
        size, self._used = int(len(self.keys) * _GROWTH) + 1, 0
        self.keys, self.numbers = _zeros(size, np.uint64), _zeros(size, np.int64)
        self.numbers[self.insert(keys)[1]] = numbers


def _zeros(size: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Zeros in a private mapping, which is returned to the system at once; malloc would fragment."""
    return np.frombuffer(mmap.mmap(-1, size * np.dtype(dtype).itemsize), dtype=dtype)[:size]
