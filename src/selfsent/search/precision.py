"""How many near-copies of a corpus are none, at each threshold, without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.display import listed
from selfsent.errors import SettingsError
from selfsent.lexical.hybrid import fuse, normalized
from selfsent.progress import SILENT, Progress
from selfsent.search.edits import found_of_edits
from selfsent.search.families import ROUNDING

if TYPE_CHECKING:
    from selfsent.search.differences import Guard
    from selfsent.search.similarity import Similarity

Scores = NDArray[np.float64]

SAMPLE = 2000
"""Texts of the sample whose neighbours are looked at."""
NEIGHBOURS, TAIL, TRIMMED = 120, 40, 5
"""Neighbours of a text that are kept, those of them that its tail is fitted to, and the first of these, left open."""
COPIES = 0.8
"""Similarity from which on a neighbour is taken for a copy, and not for one of the tail. These figures were chosen on
three corpora without copies and on TwitterPara (docs/log/evaluation.md)."""
FEWEST = 100
"""Fewest distinct texts by which a precision can be told."""
_STEPS = np.round(np.arange(1.0, 0.495, -0.005), 3)
"""Thresholds to choose from. Below a half stand quotations and texts of one source, which no tail foretells."""
_DRAWN, _BLOCK = 1000, 1024
_LEAST_SCALE = 1e-6


@dataclass(frozen=True)
class Precision:
    """The estimated precision of the copies at a threshold.

    Args:
        threshold: minimum similarity of a copy; 1, the same words, if none has the precision that was asked for.
        precision: share of the copies that are copies, 0 to 1, at the threshold; if none has enough, the best of all.
        low: of its 95 % interval, by resampling the texts of the sample.
        high: of the interval.
        share: of the texts that have a copy.
        sample: number of texts that were looked at.
        reached: whether it is the precision that was asked for.
        found: share of edited texts of the corpus that are taken for copies, by kind of edit.
    """

    threshold: float
    precision: float
    low: float
    high: float
    share: float
    sample: int
    reached: bool = True
    found: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """In words: `99.1 % (97.9 to 99.8) of the copies are copies ...`."""
        share = f"{100 * self.precision:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f}) of the copies are copies"
        if not self.reached:
            return f"no threshold reaches that precision: at best {share}; only texts of the same words are taken"
        found = listed([f"{share:.0%} of those {kind}" for kind, share in self.found.items()])
        edited = f"; of edited texts it finds {found}" if found else ""
        return f"{share}, by an estimate without labels{edited}"


def neighbours_of_sample(similarity: Similarity, seed: int = 0, progress: Progress = SILENT) -> Scores:
    """The largest similarities of a sample of texts to others, (sample, NEIGHBOURS), best first.

    Every text of the sample is compared with the whole corpus, some at a time in memory.
    """
    corpus, counts, vectors = similarity.corpus, similarity.counts, similarity.vectors
    rows = np.sort(np.random.default_rng(seed).permutation(len(corpus))[:SAMPLE])
    own = None if counts is None else counts.weighed(corpus.texts(rows))
    best = np.empty((len(rows), 0), np.float32)
    advance, start = progress.counting("looking at neighbours", len(corpus)), 0
    for texts in corpus.batches(size=_BLOCK):
        block = slice(start, start + len(texts))
        words = 0.0 if counts is None or own is None else (own @ counts.weighed(texts).T).toarray()
        scores: Any = words
        if vectors is not None:
            cosines = vectors[rows] @ vectors[block].T
            scores = normalized(fuse(cosines, words, similarity.weight), similarity.weight)
        here = np.flatnonzero((rows >= start) & (rows < start + len(texts)))
        scores[here, rows[here] - start] = -np.inf
        best = np.concatenate([best, scores], axis=1)
        count = min(NEIGHBOURS, best.shape[1])
        best = np.partition(best, best.shape[1] - count, axis=1)[:, best.shape[1] - count :]
        start += len(texts)
        advance(len(texts))
    best = -np.sort(-best, axis=1)
    return best[:, np.isfinite(best).all(0)].astype(np.float64)


def expected_by_chance(neighbours: Scores, thresholds: Scores) -> Scores:
    """The chance of each text that one that is no copy of it lies above each threshold, (sample, thresholds).

    The distances d = √(1 − s) of a text to its nearest others, copies apart, are as the smallest of a sample whose
    tail is exponential (Hill, 1975, on the scale of distances): of k neighbours of which the nearest m are left open,
    k exp(−(dₖ − d) / θ) are expected below a distance d, with θ = (Σ (dₖ − dⱼ) + m (dₖ − dₘ₊₁)) / (k − m − 1), the
    estimate from a censored sample (Epstein and Sobel, 1953). A template of which a corpus has many texts so expects
    many near ones, and its texts are copies only where they are nearer than that.

    Args:
        neighbours: (sample, n) similarities, best first.
        thresholds: (t,) of similarities.
    """

    def distance(scores: Scores) -> Scores:
        return np.asarray(np.sqrt(np.maximum(1 - scores, 0)))

    found, wanted = np.zeros((len(neighbours), len(thresholds))), distance(thresholds)
    for row, scores in enumerate(neighbours):
        distances = distance(scores[scores < COPIES][:TAIL])
        if len(distances) < TRIMMED + 3:
            continue  # all that it has are copies
        last, first = distances[-1], distances[TRIMMED]
        total = (last - distances[TRIMMED:-1]).sum() + TRIMMED * (last - first)
        scale = max(total / (len(distances) - TRIMMED - 1), _LEAST_SCALE)
        found[row] = -np.expm1(-len(distances) * np.exp(np.minimum(wanted - last, 0) / scale))
    return found


def choose_threshold(
    similarity: Similarity, precision: float, progress: Progress = SILENT, guard: Sequence[Guard] = ()
) -> Precision:
    """The lowest threshold at which copies have a precision.

    A text is a false copy where one that is none lies above the threshold; the texts that have one above it at all are
    counted. Their ratio is the share of false copies.

    Args:
        similarity: of the corpus.
        precision: 0 to 1.
        progress: receives the number of texts done.
        guard: changes that no copy may have, for the share of edited texts that is found.

    Raises:
        SettingsError: too few texts.
    """
    if len(similarity.corpus) < FEWEST:
        has = f"the corpus has {len(similarity.corpus)} different texts"
        raise SettingsError(f"a precision is told from {FEWEST} texts or more, and {has}: give a threshold")
    return threshold_for(precision, neighbours_of_sample(similarity, progress=progress), similarity, guard)


def threshold_for(
    precision: float, neighbours: Scores, similarity: Similarity, guard: Sequence[Guard] = ()
) -> Precision:
    """`choose_threshold` by the neighbours of a sample, (sample, n) similarities, best first."""
    chance = expected_by_chance(neighbours, _STEPS)
    has_copy = neighbours[:, :1] >= _STEPS - ROUNDING
    expected, copies = chance.sum(0), has_copy.sum(0)
    estimates = np.where(copies > 0, 1 - np.minimum(expected / np.maximum(copies, 1), 1), 0.0)
    enough = np.flatnonzero(estimates >= precision)
    place = int(enough[-1] if len(enough) else estimates.argmax())
    drawn = np.random.default_rng(0).integers(0, len(chance), (_DRAWN, len(chance)))
    false, all_copies = chance[drawn, place].sum(1), has_copy[drawn, place].sum(1)
    low, high = np.quantile(1 - np.minimum(false / np.maximum(all_copies, 1), 1), [0.025, 0.975])
    about = float(estimates[place]), float(low), float(high), float(copies[place] / len(chance)), len(chance)
    threshold = float(_STEPS[place]) if len(enough) else 1.0
    return Precision(threshold, *about, reached=len(enough) > 0, found=found_of_edits(similarity, threshold, guard))
