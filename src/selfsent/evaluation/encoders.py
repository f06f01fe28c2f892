"""Deprecated names of `selfsent.scorers`."""

from __future__ import annotations

from typing import Any

from selfsent.renamed import warn_renamed
from selfsent.scorers import load_scorer, scorer

_MOVED = {
    "as_encoder": (load_scorer, "load_scorer"),
    "as_reranker": (load_scorer, "as_reranker"),
    "encoder_of": (load_scorer, "scorer_of"),
    "check_model": (load_scorer, "check_model"),
    "Encoder": (scorer, "Scorer"),
    "PairEncoder": (scorer, "PairScorer"),
}
"""Module and name that replace each old name."""


def __getattr__(name: str) -> Any:
    """Read an old name, with a warning."""
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, new = _MOVED[name]
    warn_renamed(f"{__name__}.{name}", f"{module.__name__}.{new}")
    return getattr(module, new)
