"""Families of near-copies: a text that is kept, and texts that are close to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Scores = NDArray[np.float32]

ROUNDING = 1e-6
"""Largest error of a similarity in float32: a threshold of 1 means the same words."""


class Stars:
    """Families by one rule, taken in an order of preference: a text that is close to one that is kept joins it.

    It joins the closest, the preferred one among equals; a text that is close to none is kept. So no two kept texts
    are close, each other text is close to the one that is kept for it, and a chain A ~ B ~ C, where A and C are not
    close, makes no family of all three: with A kept, B joins it, and C is kept.

    Args:
        count: number of texts. They are numbered by preference, the most preferred one 0.

    Examples:
        >>> stars = Stars(3)
        >>> stars.join(np.array([0, 1]), np.array([1, 2]), np.array([0.9, 0.9]))
        >>> stars.kept.tolist()
        [0, 0, 2]
    """

    def __init__(self, count: int) -> None:
        self.kept: Integers = np.arange(count)
        """(count,) the text that is kept for each: the text itself, or the one that it joined."""
        self.score: Scores = np.ones(count, np.float32)
        """(count,) of each text to the one that is kept."""

    def join(self, earlier: Integers, later: Integers, score: NDArray[np.floating]) -> None:
        """Let texts join.

        Args:
            earlier: (pairs,) preferred texts of close pairs.
            later: (pairs,) the other texts. A call may only name such as come after those of the calls before.
            score: (pairs,) their similarity.
        """
        order = np.lexsort((earlier, -score, later))
        pairs = zip(earlier[order].tolist(), later[order].tolist(), score[order].tolist(), strict=True)
        kept = self.kept
        for one, other, similarity in pairs:
            if kept[other] == other and kept[one] == one:
                kept[other], self.score[other] = one, similarity


@dataclass(frozen=True)
class Family:
    """Rows of the input that say the same.

    Args:
        kept: the row that stays.
        others: rows that go, ascending.
        scores: (others,) similarity of each to the kept row; 1 for exact copies.
    """

    kept: int
    others: tuple[int, ...]
    scores: tuple[float, ...]

    def __len__(self) -> int:
        return 1 + len(self.others)


def families_of(kept: Integers, score: Scores) -> list[Family]:
    """Families of two rows or more, by ascending kept row.

    Args:
        kept: (rows,) the row that is kept for each, the row itself if it stays.
        score: (rows,) of each to that row.

    Examples:
        >>> families_of(np.array([0, 1, 0]), np.array([1, 1, 0.5], np.float32))
        [Family(kept=0, others=(2,), scores=(0.5,))]
    """
    others = np.flatnonzero(kept != np.arange(len(kept)))
    others = others[np.argsort(kept[others], kind="stable")]
    heads, starts = np.unique(kept[others], return_index=True)
    found = []
    for head, start, end in zip(heads.tolist(), starts, [*starts[1:], len(others)], strict=False):
        rows = others[start:end]
        scores = tuple(round(each, 6) for each in score[rows].tolist())
        found.append(Family(head, tuple(rows.tolist()), scores))
    return found
