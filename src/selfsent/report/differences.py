"""The scores of a run and their paired differences, under the names by which every report shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from selfsent.evaluation.lexical import LEXICAL

Scores = Mapping[str, Any]
"""Of a run, as in its `scores.json`: its `scores`, which ask for the next sentence, or its `search`."""
WITH_WORDS = "trained + words (search)"
"""How the trained encoder is called where words count, too, as in `search`."""
NAMES = {"with_words": WITH_WORDS, "trained": "trained", "base": "untrained", **LEXICAL}
TITLES = {True: "Search: nDCG@10 × 100, on text kept apart", False: "The next sentence of the document: MRR@10 × 100"}
"""Of search, and of the other score."""
BEFORE_SEARCH = "Finding the next sentence is what training on neighbours practises, so believe search first."
_DIFFERENCES = {
    "words_over_bm25": ("with_words", "bm25"),
    "difference": ("trained", "base"),
    **{f"over_{kind}": ("trained", kind) for kind in LEXICAL},
}


def is_search(scores: Scores) -> bool:
    """Whether these scores are those of search."""
    return "asked" in scores


def ranked(scores: Scores) -> dict[str, Any]:
    """The score of each that was scored, by its key in `NAMES`, the best one first; an earlier version lacks some."""
    return dict(sorted(((key, scores[key]) for key in NAMES if key in scores), key=lambda each: -each[1]["score"]))


def differences(scores: Scores) -> dict[tuple[str, str], Any]:
    """From the names of two to their paired difference, its interval and its p; an earlier version lacks some."""
    return {
        (NAMES[one].removesuffix(" (search)"), NAMES[other]): scores[key]
        for key, (one, other) in _DIFFERENCES.items()
        if key in scores
    }


def standing(difference: Scores) -> str:
    """How one stands to another: `ahead of`, `behind`, or `level with` where the interval holds zero."""
    return "ahead of" if difference["low"] > 0 else "behind" if difference["high"] < 0 else "level with"


def told(scores: Scores) -> str:
    """What was asked and what came of it, in a few sentences."""
    if not is_search(scores):
        return f"{scores['base']['n']:,} queries from documents kept apart. {BEFORE_SEARCH}"
    less = scores["words_over_bm25"]
    zero = "holds zero" if standing(less) == "level with" else "does not hold zero"
    return (
        f"Asked: {scores['asked']}. Trained + words, as selfsent search ranks, is {standing(less)} BM25: the difference"
        f" is {less['score']:+z.2f}, and its 95 % interval, {less['low']:+z.2f} to {less['high']:+z.2f}, {zero}."
    )
