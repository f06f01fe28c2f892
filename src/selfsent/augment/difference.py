"""How much views differ from their sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from operator import add

_MEASURED = 2000
"""Characters compared of each text: the time is quadratic."""


@dataclass(frozen=True)
class Difference:
    """Sums over views of one augmenter; those of chunks can be added.

    Args:
        views: how many.
        unchanged: views that are the sentence itself.
        distance: edit distances of the first 2,000 characters, each as a share of the longer text's.
        ratio: lengths in characters, each divided by the sentence's.
    """

    views: int = 0
    unchanged: int = 0
    distance: float = 0.0
    ratio: float = 0.0

    @classmethod
    def of(cls, texts: Iterable[str], views: Iterable[str]) -> Difference:
        """The difference between (n,) sentences, none empty, and (n,) views of them."""
        from rapidfuzz.distance import Levenshtein

        pairs = list(zip(texts, views, strict=True))
        return cls(
            len(pairs),
            sum(view == text for text, view in pairs),
            sum(Levenshtein.normalized_distance(text[:_MEASURED], view[:_MEASURED]) for text, view in pairs),
            sum(len(view) / len(text) for text, view in pairs),
        )

    def __add__(self, other: Difference) -> Difference:
        return Difference(*map(add, astuple(self), astuple(other)))

    def summary(self) -> str:
        """The means, in one line."""
        views = max(1, self.views)
        return (
            f"{self.unchanged / views:.1%} unchanged, mean edit distance {self.distance / views:.1%} of the characters,"
            f" length ratio {self.ratio / views:.2f}"
        )
