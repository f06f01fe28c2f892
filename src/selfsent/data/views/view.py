"""Views: the inputs of a method, read from the corpus; and the sampler of negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from selfsent.data.random import uniforms
from selfsent.data.views.noise import Noise
from selfsent.data.views.positives import Passage

ViewSide = Literal["query", "document", "symmetric", "bare"]
"""Role of a view's texts: queries, documents that they search, or texts of one kind; `bare` never has a prompt."""


@dataclass(frozen=True)
class NegativeSampler:
    """Partners for groups of sentences: the first of a group gets itself, the others random sentences of the corpus.

    The sampler of contrastive tension (Carlsson et al. 2021, section 3): one pair of a sentence with itself,
    `negatives` pairs of two sentences drawn independently. Like noise, a pure function of key and row.

    Args:
        negatives: pairs of different sentences in a group.
    """

    negatives: int = 7

    def __call__(self, rows: np.ndarray, key: int, corpus: np.ndarray) -> np.ndarray:
        """(batch,) partners of the corpus rows `rows`, (batch,), drawn from the rows `corpus`, (sentences,)."""
        drawn = (uniforms(key, rows, draw=3) * len(corpus)).astype(np.int64)
        partners: np.ndarray = corpus[drawn]
        # Nobody is the negative of itself; with two sentences or more the next one is another.
        partners = np.where(partners == rows, corpus[(drawn + 1) % len(corpus)], partners)
        return np.where(np.arange(len(rows)) % (self.negatives + 1) == 0, rows, partners)


@dataclass(frozen=True)
class View:
    """One input of a method: a text column of the corpus, and the noise on it, if any.

    With a `sampler` it reads other sentences of the corpus instead of the batch's, with a `passage` other
    sentences of the same document, joined as one, and one that is `mined` that candidate of the row, counted from 0.
    One that is `precomputed` brings the vectors of the learner's frozen part, computed once. With a `second_column`,
    the text of that column follows the first one, as one input. The model's prompt for its `side` stands before it;
    words that are predicted are `bare`.
    """

    column: int = 0
    noise: Noise | None = None
    sampler: NegativeSampler | None = None
    passage: Passage | None = None
    precomputed: bool = False
    second_column: int | None = None
    mined: int | None = None
    side: ViewSide = "symmetric"
