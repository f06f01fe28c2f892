"""Limits of an index: when it compacts itself, how many candidates a query has, what is verified on opening."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IndexLimits:
    """Limits of an open index. No file holds them, and results differ only where the IVF is approximate.

    Args:
        max_unindexed: maximum number of vectors outside the IVF lists, or `unindexed_share` if that is more.
        unindexed_share: texts for each vector outside the IVF lists.
        max_tombstones_share: compact when more than one in this number of the texts is deleted.
        max_blocks: compact with more blocks of postings than this, beyond those of its size.
        growth: retrain the IVF lists after this growth, relative to the number of vectors that they were trained for.
        candidates: minimum number of candidates of a query by the cosine, and by BM25.
        max_compared: maximum number of texts that meet a condition for all of them to be compared.
        verified_on_opening: maximum size in bytes of an index whose checksums are verified on opening; larger ones
            before writing only.
    """

    max_unindexed: int = 8192
    unindexed_share: int = 16
    max_tombstones_share: int = 4
    max_blocks: int = 256
    growth: int = 4
    candidates: int = 300
    max_compared: int = 4096
    verified_on_opening: int = 1 << 27


LIMITS = IndexLimits()
"""The limits of every index, unless given."""
