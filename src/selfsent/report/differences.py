"""The paired differences of a run, under the names by which every report shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WITH_WORDS = "trained + shared words (search)"
"""How the trained encoder is called where shared words count, too, as in `search`."""
_OTHERS = {"difference": "base", "over_tfidf": "TF-IDF", "over_bm25": "BM25"}


def differences(scores: Mapping[str, Any], base: str = "base") -> dict[str, Mapping[str, Any]]:
    """From what the trained encoder is held against to the paired difference, its interval and its p.

    Args:
        scores: of a run, as in its `scores.json`; one of an earlier version lacks some.
        base: what the base is called.
    """
    return {base if other == "base" else other: scores[key] for key, other in _OTHERS.items() if key in scores}
