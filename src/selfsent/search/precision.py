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
from selfsent.search.differences import Guard, is_reordered
from selfsent.search.edits import found_of_edits
from selfsent.search.families import ROUNDING

if TYPE_CHECKING:
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
MOST_REORDERED = 0.5
"""Share of copies with words in another order above which order is heeded: back-translations have less (docs/log)."""
_DRAWN = 1000
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
        reordered: share of the copies at the threshold that have words in another order.
        guard: changes that no copy may have, `order` among them where most copies have words in another order.
    """

    threshold: float
    precision: float
    low: float
    high: float
    share: float
    sample: int
    reached: bool = True
    found: Mapping[str, float] = field(default_factory=dict)
    reordered: float = 0.0
    guard: tuple[Guard, ...] = ()

    def __str__(self) -> str:
        """In words: `99.1 % (97.9 to 99.8) of the copies are copies ...`."""
        share = f"{100 * self.precision:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f}) of the copies are copies"
        moved = ""
        if self.reordered > MOST_REORDERED:
            moved = f"; {self.reordered:.0%} of what is near has words in another order, and is taken for another text"
        if not self.reached:
            taken = "only texts of the same words in the same order are taken"
            return f"no threshold reaches that precision: at best {share}; {taken}{moved}"
        found = listed([f"{share:.0%} of those {kind}" for kind, share in self.found.items()])
        edited = f"; of edited texts it finds {found}" if found else ""
        return f"{share}, by an estimate without labels{edited}{moved}"


@dataclass(frozen=True)
class Neighbours:
    """A sample of texts and their nearest neighbours.

    Args:
        scores: (sample, NEIGHBOURS) largest similarities to other texts, best first.
        rows: (sample,) of the corpus.
        nearest: (sample,) rows of the most similar texts.
    """

    scores: Scores
    rows: NDArray[np.int64]
    nearest: NDArray[np.int64]


def neighbours_of_sample(
    similarity: Similarity, seed: int = 0, progress: Progress = SILENT, block_size: int = 1024
) -> Neighbours:
    """The largest similarities of a sample of texts to others.

    Every text of the sample is compared with the whole corpus, `block_size` texts at a time in memory.
    """
    corpus, counts, vectors = similarity.corpus, similarity.counts, similarity.vectors
    rows = np.sort(np.random.default_rng(seed).permutation(len(corpus))[:SAMPLE])
    own = None if counts is None else counts.weighed(corpus.texts(rows))
    best = np.empty((len(rows), 0), np.float32)
    nearest, highest = np.zeros(len(rows), np.int64), np.full(len(rows), -np.inf)
    advance, start = progress.counting("looking at neighbours", len(corpus)), 0
    for texts in corpus.batches(size=block_size):
        block = slice(start, start + len(texts))
        words = 0.0 if counts is None or own is None else (own @ counts.weighed(texts).T).toarray()
        scores: Any = words
        if vectors is not None:
            cosines = vectors[rows] @ vectors[block].T
            scores = normalized(fuse(cosines, words, similarity.weight), similarity.weight)
        here = np.flatnonzero((rows >= start) & (rows < start + len(texts)))
        scores[here, rows[here] - start] = -np.inf
        place = scores.argmax(axis=1)
        top = scores[np.arange(len(rows)), place]
        nearest = np.where(top > highest, start + place, nearest)
        highest = np.maximum(top, highest)
        best = np.concatenate([best, scores], axis=1)
        count = min(NEIGHBOURS, best.shape[1])
        best = np.partition(best, best.shape[1] - count, axis=1)[:, best.shape[1] - count :]
        start += len(texts)
        advance(len(texts))
    best = -np.sort(-best, axis=1)
    return Neighbours(best[:, np.isfinite(best).all(0)].astype(np.float64), rows, nearest)


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
    precision: float, neighbours: Neighbours, similarity: Similarity, guard: Sequence[Guard] = ()
) -> Precision:
    """`choose_threshold` by the neighbours of a sample.

    Where most of what is above the threshold has words in another order, words alone tell no copies: such pairs are no
    copies then, and the threshold is chosen again.
    """
    chance = expected_by_chance(neighbours.scores, _STEPS)
    has_copy = neighbours.scores[:, :1] >= _STEPS - ROUNDING
    place, reached = _place(precision, chance, has_copy)
    moved = _reordered(neighbours, similarity, has_copy[:, -1])
    at = has_copy[:, place]
    reordered = float(moved[at].mean()) if at.any() and "order" not in guard else 0.0
    if reordered > MOST_REORDERED or "order" in guard:
        guard = (*guard, "order")
        has_copy &= ~moved[:, None]
        place, reached = _place(precision, chance, has_copy)
    drawn = np.random.default_rng(0).integers(0, len(chance), (_DRAWN, len(chance)))
    low, high = np.quantile(_estimates(chance[drawn, place].T, has_copy[drawn, place].T), [0.025, 0.975])
    stated = float(_estimates(chance, has_copy)[place])
    about = stated, float(low), float(high), float(has_copy[:, place].mean()), len(chance)
    threshold = float(_STEPS[place]) if reached else 1.0
    guard = tuple(dict.fromkeys(guard if reached else (*guard, "order")))
    found = found_of_edits(similarity, threshold, guard)
    return Precision(threshold, *about, reached=reached, found=found, reordered=reordered, guard=guard)


def _estimates(chance: Scores, has_copy: NDArray[np.bool_]) -> Scores:
    """The precision by the columns of chances and copies; 0 where there is none."""
    expected, copies = chance.sum(0), has_copy.sum(0)
    return np.where(copies > 0, 1 - np.minimum(expected / np.maximum(copies, 1), 1), 0.0)


def _place(precision: float, chance: Scores, has_copy: NDArray[np.bool_]) -> tuple[int, bool]:
    """The place of the lowest threshold with a precision, or of the best one, and whether it has it."""
    estimates = _estimates(chance, has_copy)
    enough = np.flatnonzero(estimates >= precision)
    return int(enough[-1] if len(enough) else estimates.argmax()), len(enough) > 0


def _reordered(neighbours: Neighbours, similarity: Similarity, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether some texts of the sample and their nearest ones have words in another order, (sample,)."""
    found = np.zeros(len(which), bool)
    texts = (similarity.corpus.texts(rows[which]) for rows in (neighbours.rows, neighbours.nearest))
    found[which] = [is_reordered(one, other) for one, other in zip(*texts, strict=True)]
    return found
