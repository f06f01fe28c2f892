"""Which other sentences of the corpus a batch is held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from selfsent.data.random import uniforms
from selfsent.errors import SettingsError


@dataclass(frozen=True)
class Partners:
    """Of every group of sentences the first is its own partner; the others get random sentences of the corpus.

    The sampler of contrastive tension (Carlsson et al. 2021, section 3): one pair of a sentence with itself,
    `negatives` pairs of two sentences drawn independently. Like noise, a pure function of key and row.

    Args:
        negatives: pairs of different sentences in a group, beside the first.
    """

    negatives: int = 7

    def __post_init__(self) -> None:
        if self.negatives < 1:
            raise SettingsError(f"the number of negatives is {self.negatives}; it must be at least 1")

    def __call__(self, rows: np.ndarray, key: int, corpus: np.ndarray) -> np.ndarray:
        """(batch,) partners of the corpus rows `rows`, (batch,), drawn from the rows `corpus`, (sentences,)."""
        drawn = (uniforms(key, rows, np.zeros(len(rows), dtype=np.int64), draw=3) * len(corpus)).astype(np.int64)
        partners: np.ndarray = corpus[drawn]
        # Nobody is the negative of itself; with two sentences or more the next one is another.
        partners = np.where(partners == rows, corpus[(drawn + 1) % len(corpus)], partners)
        return np.where(np.arange(len(rows)) % (self.negatives + 1) == 0, rows, partners)
