"""Positives from the document: neighbours of a sentence, instead of the sentence itself.

Which sentences a view reads is a pure function of (key, row) over the corpus' table of documents, like noise: the same
whatever the number of workers, ranks or restarts, and whichever rows are trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from selfsent.data.ragged import ranges
from selfsent.data.random import uniforms

WHOLE = 16
"""Sentences on either side of one that stand for its document: more are hardly ever read."""


class Documents:
    """Neighbouring sentences: the rows of a corpus in the order of their documents.

    Positions count the rows in that order. Where the rows of every document follow each other, as in plain text,
    positions are rows, and only the beginnings of documents are kept.

    Args:
        numbers: (rows,) number of each row's document, 0, 1, 2 ...
    """

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers = numbers
        sizes = np.bincount(numbers)
        self._begins = np.concatenate(([0], np.cumsum(sizes)))
        self._order: np.ndarray | None = None
        if (numbers[1:] < numbers[:-1]).any():
            dtype = np.int32 if len(numbers) < 2**31 else np.int64
            self._order = np.argsort(numbers, kind="stable").astype(dtype)
            self._position = np.empty_like(self._order)
            self._position[self._order] = np.arange(len(numbers), dtype=dtype)
        self.accompanied_share = float(sizes[sizes > 1].sum() / max(1, len(numbers)))
        """Share of the rows that are not alone in their document."""

    def largest_share(self, rows: np.ndarray) -> float:
        """Share of `rows`, (n,), in the document that has most of them."""
        return float(np.bincount(self.numbers[rows]).max(initial=0) / max(1, len(rows)))

    def sizes(self, rows: np.ndarray) -> np.ndarray:
        """(n,) sentences in the documents of `rows`, (n,)."""
        first, _, last = self.around(rows)
        return np.asarray(last - first)

    def around(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First position of the document, position and end of the document for each of `rows`, (n,)."""
        numbers = self.numbers[rows]
        position = rows if self._order is None else self._position[rows].astype(np.int64)
        return self._begins[numbers], position, self._begins[numbers + 1]

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """(n,) rows at `positions`, (n,)."""
        return positions if self._order is None else self._order[positions].astype(np.int64)


class Passage(Protocol):
    """Chooses the sentences of the document that a view reads instead of the row itself."""

    @property
    def length_option(self) -> str | None:
        """Name of the option that limits its sentences; None for a single one."""
        ...

    def __call__(self, rows: np.ndarray, key: int, documents: Documents) -> tuple[np.ndarray, np.ndarray]:
        """(m,) corpus rows, one passage after the other, and (n,) how many each of `rows` gets."""
        ...


@dataclass(frozen=True)
class Span:
    """A span of consecutive sentences around a row, or, as `positive`, a second span near the first.

    With spans of one sentence and no overlap the positive is a neighbour: any other sentence at most `within` away,
    each equally likely. Longer spans are crops: overlapping, adjacent or apart.

    Args:
        part: `anchor`: the span that holds the row itself; `positive`: one near it.
        within: how far the positive may be from the anchor: 1 for adjacent, 2 with one sentence between, and so on.
        longest: sentences in a span at most.
        overlap: whether the positive may share sentences with the anchor: anywhere from adjacent to equal.
    """

    part: Literal["anchor", "positive"]
    within: int = 1
    longest: int = 1
    overlap: bool = False

    @property
    def length_option(self) -> str | None:
        """`span`, above one sentence."""
        return "span" if self.longest > 1 else None

    def __call__(self, rows: np.ndarray, key: int, documents: Documents) -> tuple[np.ndarray, np.ndarray]:
        """The sentences of each row's span."""
        first, position, last = documents.around(rows)
        length = np.minimum(self._length(key, rows, 0), np.maximum(1, last - first - (not self.overlap)))
        share = uniforms(key, rows, draw=1)
        begin = _between(np.maximum(first, position - length + 1), np.minimum(position, last - length), share)
        end = begin + length
        if self.part == "positive":
            length = np.minimum(self._length(key, rows, 2), last - first)
            share = uniforms(key, rows, draw=3)
            if self.overlap:  # anywhere from `within` away on the left to `within` away on the right
                earliest = np.maximum(first, begin - length - (self.within - 1))
                begin = _between(earliest, np.minimum(last - length, end + self.within - 1), share)
                end = begin + length
            else:
                # A sentence at most `within` away, and the sentences after it, away from the anchor, up to the end of
                # the document; a row that is alone in its document gets itself.
                left, right = np.minimum(self.within, begin - first), np.minimum(self.within, last - end)
                drawn = (share * (left + right)).astype(np.int64)
                before, alone = drawn < left, left + right == 0
                nearest = np.where(before, begin - 1 - drawn, end + drawn - left)
                starts = np.where(before, np.maximum(first, nearest - length + 1), nearest)
                ends = np.where(before, nearest + 1, np.minimum(last, nearest + length))
                begin, end = np.where(alone, begin, starts), np.where(alone, end, ends)
        return documents.rows(ranges(begin, end - begin)), end - begin

    def _length(self, key: int, rows: np.ndarray, draw: int) -> np.ndarray:
        return np.minimum(self.longest, 1 + (uniforms(key, rows, draw=draw) * self.longest).astype(np.int64))


@dataclass(frozen=True)
class Surroundings:
    """The sentences at most `within` before and after a row, without the row itself: its cloze, inverted.

    Args:
        within: sentences on either side.
        kept: share of the rows that stay in their surroundings (Lee et al. 2019: 0.1), so that words in common count.
    """

    within: int = 3
    kept: float = 0.1

    @property
    def length_option(self) -> str | None:
        """`within`, unless it is the whole document."""
        return None if self.within == WHOLE else "within"

    def __call__(self, rows: np.ndarray, key: int, documents: Documents) -> tuple[np.ndarray, np.ndarray]:
        """The sentences around each row; a row that is alone in its document gets itself."""
        first, position, last = documents.around(rows)
        begin, end = np.maximum(first, position - self.within), np.minimum(last, position + self.within + 1)
        counts = end - begin
        positions = ranges(begin, counts)
        stays = (uniforms(key, rows, draw=0) < self.kept) | (counts == 1)
        keep = np.repeat(stays, counts) | (positions != np.repeat(position, counts))
        return documents.rows(positions[keep]), counts - ~stays


@dataclass(frozen=True)
class Title:
    """The first sentence of a row's document, its title where there is one; or, as `positive`, all that follows it.

    Args:
        part: `anchor` or `positive`.
    """

    part: Literal["anchor", "positive"]

    @property
    def length_option(self) -> str | None:
        """No option limits it."""
        return None

    def __call__(self, rows: np.ndarray, key: int, documents: Documents) -> tuple[np.ndarray, np.ndarray]:
        """The first sentence of each row's document, or all after it; the sentence itself if it is alone."""
        first = documents.rows(documents.around(rows)[0])
        if self.part == "anchor":
            return first, np.ones(len(rows), dtype=np.int64)
        return Surroundings(WHOLE, kept=0.0)(first, key, documents)


@dataclass(frozen=True)
class Mixed:
    """One of several passages for each row, each equally likely; views with as many of them draw the same one.

    Args:
        passages: None for the row itself.
    """

    passages: tuple[Passage | None, ...]

    @property
    def length_option(self) -> str | None:
        """The length option of the first passage with one."""
        return next((each.length_option for each in self.passages if each and each.length_option), None)

    def __call__(self, rows: np.ndarray, key: int, documents: Documents) -> tuple[np.ndarray, np.ndarray]:
        """The sentences of each row's passage."""
        drawn = (uniforms(key, rows, draw=4) * len(self.passages)).astype(np.int64)
        parts = [np.flatnonzero(drawn == number) for number in range(len(self.passages))]
        counts, found = np.ones(len(rows), dtype=np.int64), list[np.ndarray]()
        for part, passage in zip(parts, self.passages, strict=True):
            read, counts[part] = passage(rows[part], key, documents) if passage else (rows[part], 1)
            found.append(read)
        order = np.concatenate(parts)  # of the rows, as they stand in `found`
        starts = (np.cumsum(counts[order]) - counts[order])[np.argsort(order)]
        return np.concatenate(found)[ranges(starts, counts)], counts


def _between(low: np.ndarray, high: np.ndarray, share: np.ndarray) -> np.ndarray:
    """(n,) whole numbers from `low` to `high`, both included, each as likely where `share` is uniform in [0, 1)."""
    return np.asarray(low + (share * (high - low + 1)).astype(np.int64))
