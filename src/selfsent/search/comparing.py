"""The comparison behind a deduplication: texts join the near-copies that are kept, by words or by vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from selfsent.lexical.hybrid import top_k
from selfsent.progress import Counter
from selfsent.search.differences import Guard, is_guarded, names_in
from selfsent.search.families import ROUNDING, Stars
from selfsent.search.near import Texts, near_candidates
from selfsent.search.pairs import candidates_for
from selfsent.search.similarity import Similarity

Vectors = NDArray[np.float32]
Integers = NDArray[np.int64]
Allowed = Callable[[Integers, Integers], NDArray[np.bool_]]
"""Rows of pairs -> whether no guard forbids that they are copies, (pairs,)."""

_BEST = 16
"""Kept texts with the largest cosines with which a text is compared by words, too, and as many of the first ones."""


@dataclass(frozen=True)
class DedupLimits:
    """Sizes of a comparison, which bound its time and memory.

    Args:
        exact: texts up to which all are compared by words; of more those that share a band.
        block: texts that are compared together.
        tile: kept texts that a block is compared with at a time.
    """

    exact: int = 5000
    block: int = 1024
    tile: int = 8192


LIMITS = DedupLimits()


def ranks_of(order: Integers) -> Integers:
    """The place of each text in an order."""
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


def allowing(corpus: Texts, guard: Sequence[Guard]) -> Allowed:
    """The test of pairs of rows of a corpus for changes of a guard."""
    names = names_in(chain.from_iterable(corpus.batches(size=LIMITS.block))) if "names" in guard else set[str]()

    def allowed(first: Integers, second: Integers) -> NDArray[np.bool_]:
        if not guard:
            return np.ones(len(first), bool)
        pairs = zip(corpus.texts(first), corpus.texts(second), strict=True)
        return np.fromiter((not is_guarded(one, other, guard, names) for one, other in pairs), bool, len(first))

    return allowed


@dataclass(frozen=True)
class Comparison:
    """The comparison of the texts of a corpus, each with those that are preferred to it.

    Args:
        stars: the text that each one joined, by place in the order.
        similarity: of the corpus, with vectors or by words alone.
        order: (n,) the texts in the order of preference.
        threshold: minimum similarity of a copy.
        allowed: see `Allowed`.
        advance: called with the number of texts done since the last call.
        limits: of blocks.
    """

    stars: Stars
    similarity: Similarity
    order: Integers
    threshold: float
    allowed: Allowed
    advance: Counter
    limits: DedupLimits = LIMITS

    def run(self) -> None:
        """Let texts join: all are compared with those kept, but of many by words only those that share a band."""
        if self.similarity.vectors is not None:
            self._all_by_vectors(self.similarity.vectors)
        elif len(self.order) <= self.limits.exact:
            self._all_by_words()
        else:
            self._by_bands()

    def _copies(self, earlier: Integers, later: Integers, scores: Vectors) -> tuple[Integers, Integers, Vectors]:
        """The pairs of places that are copies: similar enough, and allowed."""
        near = np.flatnonzero(scores >= self.threshold - ROUNDING)
        near = near[self.allowed(self.order[earlier[near]], self.order[later[near]])]
        return earlier[near], later[near], scores[near]

    def _by_bands(self) -> None:
        counts, close = self.similarity.counts, list[tuple[Integers, Integers, Vectors]]()
        assert counts is not None
        for earlier, later in near_candidates(self.similarity.corpus, counts, ranks_of(self.order), self.advance):
            close.append(self._copies(earlier, later, self.similarity(self.order[earlier], self.order[later])))
        if close:
            self.stars.join(*map(np.concatenate, zip(*close, strict=True)))

    def _blocks(self) -> Iterator[tuple[Integers, Integers]]:
        """Blocks of places, each with the places that are kept of those before."""
        kept = np.empty(0, np.int64)
        for start in range(0, len(self.order), self.limits.block):
            block = np.arange(start, min(start + self.limits.block, len(self.order)))
            yield block, kept
            kept = np.concatenate([kept, block[self.stars.kept[block] == block]])
            self.advance(len(block))

    def _all_by_words(self) -> None:
        from scipy.sparse import vstack

        corpus, counts, size = self.similarity.corpus, self.similarity.counts, self.limits.block
        assert counts is not None
        parts = (self.order[start : start + size] for start in range(0, len(self.order), size))
        rows = vstack([counts.weighed(corpus.texts(part)) for part in parts], format="csr")
        for block, kept in self._blocks():
            others = np.concatenate([kept, block])
            found = (rows[block] @ rows[others].T).tocoo()
            earlier, later = others[found.col], block[found.row]
            before = earlier < later
            self.stars.join(*self._copies(earlier[before], later[before], found.data[before]))

    def _all_by_vectors(self, vectors: Vectors) -> None:
        least = candidates_for(1, self.threshold, self.similarity.weight)[1]
        for block, kept in self._blocks():
            mine = vectors[self.order[block]]
            tiles = (kept[at : at + self.limits.tile] for at in range(0, len(kept), self.limits.tile))
            found = [_best(mine @ vectors[self.order[tile]].T, block, tile, least) for tile in tiles]
            cosines = mine @ mine.T
            cosines[np.triu_indices(len(block))] = -np.inf
            found.append(_best(cosines, block, block, least))
            earlier, later, cosine = map(np.concatenate, zip(*found, strict=True))
            scores = self.similarity(self.order[earlier], self.order[later], cosine)
            self.stars.join(*self._copies(earlier, later, scores))


def _best(cosines: Vectors, block: Integers, others: Integers, least: float) -> tuple[Integers, Integers, Vectors]:
    """(earlier, later, cosine) of each text of a block with its best and its first others of at least a cosine."""
    rows = np.flatnonzero(cosines.max(1, initial=-np.inf) >= least)
    if not len(rows):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    chosen = cosines[rows]
    reaches = chosen >= least
    best = top_k(chosen, _BEST)
    early = np.argsort(~reaches, axis=1, kind="stable")[:, :_BEST]
    columns = np.concatenate([best, early], axis=1)
    pairs = np.unique(np.repeat(rows, columns.shape[1]) * len(others) + columns.ravel())
    line, column = pairs // len(others), pairs % len(others)
    near = cosines[line, column] >= least
    line, column = line[near], column[near]
    return others[column], block[line], cosines[line, column]
