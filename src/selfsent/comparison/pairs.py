"""Pairs of sentences that are worth a human's judgement: spread over all similarities, first where models disagree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.errors import DataError
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.stats.duplicates import near_duplicates
from selfsent.evaluation.vectors import inner

Pairs = NDArray[np.int64]
MOST = 2000
"""Sentences that pairs are drawn from."""
NEAREST = (1, 2, 4, 8, 16, 32)
"""Which of a sentence's nearest are looked at, by each encoder; beside as many that are drawn at random."""
STRATA = 5


def spread_sentences(corpus: Corpus, seed: int = 0) -> list[str]:
    """Some sentences of a corpus, MOST at most, drawn at random from all of it."""
    rows = np.random.default_rng(seed).choice(len(corpus), min(MOST, len(corpus)), replace=False)
    return corpus.texts(np.sort(rows))


def draw_pairs(sentences: Sequence[str], encoders: Sequence[Encoder], count: int, seed: int = 0) -> Pairs:
    """Pairs to be judged, (count, 2) numbers of sentences, in an order whose beginning is spread like the whole.

    All encoders rank many pairs, near ones and random ones. Those pairs are cut into STRATA bands of equal width by the
    mean of their ranks, equally many are drawn from each band, and half of these are the ones whose ranks differ most.

    Args:
        sentences: distinct ones; no more than MOST are used, drawn at random.
        encoders: those to choose among, or any.
        count: how many; fewer come back where there are not so many.
        seed: other pairs.

    Raises:
        DataError: fewer than two sentences differ from each other.
    """
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(sentences))[:MOST])
    texts = [sentences[row] for row in chosen]
    pool, cosines = _pool(texts, encoders, rng)
    ranks = cosines.argsort(1).argsort(1) / max(1, cosines.shape[1] - 1)
    place, apart = ranks.mean(0), ranks.std(0) + 1e-9 * rng.random(len(pool))
    bands = np.minimum((STRATA * place).astype(int), STRATA - 1)
    drawn = [_drawn(np.flatnonzero(bands == band), apart, -(-count // STRATA), rng) for band in range(STRATA)]
    longest = max(map(len, drawn))
    in_turn = [part[number] for number in range(longest) for part in drawn if number < len(part)]
    return np.asarray(chosen[pool[in_turn[:count]]], np.int64)


def _pool(texts: list[str], encoders: Sequence[Encoder], rng: np.random.Generator) -> tuple[Pairs, NDArray[np.float64]]:
    """Pairs to draw from, (p, 2), and their similarity by each encoder, (encoders, p)."""
    near = near_duplicates(texts).toarray().astype(bool)
    similar = [inner(*encoder.sides(texts, texts)) for encoder in encoders]
    line = np.arange(len(texts))
    found = []
    for similarity in similar:
        order = np.argsort(-np.where(near, -np.inf, similarity), axis=1, kind="stable")
        found += [np.stack([line, order[:, rank - 1]], 1) for rank in NEAREST if rank < len(texts)]
    found.append(rng.integers(len(texts), size=(len(texts) * len(NEAREST), 2)))
    pool = np.unique(np.sort(np.concatenate(found), axis=1), axis=0)
    pool = pool[~near[pool[:, 0], pool[:, 1]]]
    if not len(pool):
        raise DataError("there are no two sentences that differ from each other")
    return pool, np.stack([similarity[pool[:, 0], pool[:, 1]] for similarity in similar]).astype(np.float64)


def _drawn(members: Pairs, apart: NDArray[np.float64], count: int, rng: np.random.Generator) -> Pairs:
    """Half of them the ones that models rank most differently, half at random; in turn."""
    most = members[np.argsort(-apart[members], kind="stable")][: count // 2]
    others = rng.permutation(np.setdiff1d(members, most))[: count - len(most)]
    order = np.argsort(np.r_[np.arange(len(most)) * 2 + 1, np.arange(len(others)) * 2], kind="stable")
    return np.asarray(np.r_[most, others][order], np.int64)
