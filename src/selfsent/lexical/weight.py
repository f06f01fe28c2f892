"""How much the words count beside the cosine: default weights, and what is refused."""

from __future__ import annotations

from selfsent.errors import SettingsError

SEARCH_WEIGHT = {"table": 1.5, "transformer": 0.5}
"""Of BM25 beside the cosine of a table of token vectors, and of anything else: chosen by judged answers (docs/log)."""
SEARCH_FILE = "search.json"
"""Holds `lexical_weight` in a model's directory, where it is another."""
PAIR_WEIGHT = 0.5
"""Of the terms that two texts share, by TF-IDF, beside their cosine."""
LARGEST = 1000
"""A weight beside which no cosine counts."""


def check_weight(weight: float) -> None:
    """Refuse a weight that is none.

    Raises:
        SettingsError: it is negative, no number, or above 1,000.
    """
    if not 0 <= weight <= LARGEST:
        raise SettingsError(f"the weight of words is {weight:g}; it is 0 to {LARGEST:,}: 0 is the cosine alone")
