"""Hybrid ranking: the weighted sum of a dense and a lexical score, and the best by it.

Every search ranks by these functions: exact search, an index, reranking, similar pairs, mined negatives and the scorers
of an evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from selfsent.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Scores = TypeVar("_Scores", float, "NDArray[Any]")

SEARCH_WEIGHT = {"table": 1.5, "transformer": 0.5}
"""Weight of BM25 in hybrid search, by kind of encoder: chosen by judged answers (docs/log)."""
SEARCH_FILE = "search.json"
"""File in a model's directory with another `lexical_weight`."""
PAIR_WEIGHT = 0.5
"""Weight of TF-IDF, the terms that two texts share, in hybrid pairs."""
LARGEST = 1000
"""Maximum weight; cosines no longer matter."""
_STEP = 16
"""Scores for each one in the sample of `top_k_unordered`."""


def fuse(dense: _Scores, lexical: Any, weight: float) -> _Scores:
    """The sum by which hybrid search ranks, dense + weight · lexical.

    Args:
        dense: cosines, or scores of a cross-encoder: a number, or an array of any shape.
        lexical: BM25 or TF-IDF in the same shape, 0 to 1.
        weight: of the lexical score, from 0.

    Examples:
        >>> fuse(0.5, 0.25, 2.0)
        1.0
    """
    fused: _Scores = dense + weight * lexical
    return fused


def normalized(fused: _Scores, weight: float) -> _Scores:
    """A sum of `fuse` as a weighted mean, at most 1 for cosines: the `score` of hits and pairs.

    Args:
        fused: (dense + weight · lexical).
        weight: of the lexical score.

    Examples:
        >>> normalized(fuse(1.0, 1.0, 1.5), 1.5)
        1.0
    """
    mean: _Scores = fused / (1 + weight)
    return mean


def top_k(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Positions of the k largest scores along the last axis, best first; the first position among equals.

    Args:
        scores: (..., n).
        k: positions wanted; fewer if there are fewer scores.

    Returns:
        (..., min(k, n)) positions.

    Examples:
        >>> import numpy as np
        >>> top_k(np.array([0.1, 0.7, 0.7, 0.3]), 3).tolist()
        [1, 2, 3]
    """
    order: NDArray[np.int64] = (-scores).argsort(axis=-1, kind="stable")[..., :k]
    return order


def top_k_unordered(scores: NDArray[Any], k: int, above: float) -> NDArray[np.int64]:
    """Positions of the k largest of many scores, in no order, faster than `top_k`.

    Args:
        scores: (n,).
        k: positions wanted; fewer if there are fewer scores above the bound.
        above: a bound; scores equal to it are left out.

    Examples:
        >>> import numpy as np
        >>> sorted(top_k_unordered(np.array([0.1, 0.7, 0.0, 0.3]), 2, 0.0).tolist())
        [1, 3]
    """
    import numpy as np

    # A sample bounds the smallest of them, so that few values are partitioned.
    sample = scores[::_STEP]
    at = 2 * k // _STEP + 8
    likely = np.partition(sample, len(sample) - at)[len(sample) - at] if len(sample) > at else above
    places: NDArray[np.int64] = np.flatnonzero(scores > max(likely, above))
    if len(places) < k and likely > above:
        places = np.flatnonzero(scores > above)
    if len(places) > k:
        places = places[np.argpartition(-scores[places], k - 1)[:k]]
    return places


def check_weight(weight: float) -> None:
    """Reject an invalid weight.

    Raises:
        SettingsError: it is negative, no number, or above 1,000.
    """
    if not 0 <= weight <= LARGEST:
        raise SettingsError(f"`lexical_weight` is {weight:g}; it must be from 0 to {LARGEST:,}: 0 is the cosine alone")
