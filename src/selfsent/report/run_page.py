"""The page of a run, and the same for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from selfsent.display import cells_of, listed
from selfsent.report.pages import curves, dots, gains_by_alpha, render
from selfsent.report.scores import NAMES, Scores, differences, is_search, scores_table, standing
from selfsent.report.warranted import warranty_table

_CURVES = {
    "loss": "loss",
    "score": "score on development data",
    "mean_cosine": "mean cosine of two sentences",
    "effective_rank": "effective rank",
}
"""Logged values to draw, and their titles."""


def run_page(
    record: Mapping[str, Any],
    scores: Scores | None,
    neighbours: Sequence[Mapping[str, Any]],
    metrics: Sequence[Mapping[str, Any]],
    fragment: bool = False,
    search: Scores | None = None,
) -> str:
    """The page of a run.

    Args:
        record: the content of its `run.json`.
        scores: before and after, at finding the next sentence, or None.
        neighbours: nearest sentences of a few sentences, before and after.
        metrics: the log.
        fragment: without head and headline, for a notebook.
        search: before and after, at search, or None.
    """
    config = record.get("config", {})
    corpus, settings = config.get("corpus", {}), config.get("settings", {})
    used = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in settings.items() if value is not None)
    about = {
        **{name: config.get(name) for name in ("method", "base", "pooling")},
        "corpus": corpus.get("source"),
        "sentences": f"{corpus.get('sentences', 0):,}",
        "steps": record.get("steps"),
        "seconds": round(record["seconds"], 1) if "seconds" in record else None,
        "settings": used,
        "versions": ", ".join(f"{name} {version}" for name, version in record.get("versions", {}).items()),
    }
    logs = {title: [(one["step"], one[key]) for one in metrics if key in one] for key, title in _CURVES.items()}
    found = record.get("warranty")
    return render(
        "run_body.html" if fragment else "run.html",
        method=config.get("method", "run"),
        headline=_headline(search or scores),
        warranty=cells_of(warranty_table(found)) if found else None,
        kept=gains_by_alpha(found["candidates"], found["alpha"]) if found else None,
        scores=[(cells_of(scores_table(each)), _drawing(each)) for each in (search, scores) if each],
        neighbours=neighbours,
        curves=curves(logs),
        about=[(name, value) for name, value in about.items() if value not in (None, "")],
    )


def _headline(scores: Scores | None) -> str:
    """The result in one line."""
    if not scores:
        return "The encoder is trained"
    what = "In search trained + words" if is_search(scores) else "At finding the next sentence the trained encoder"
    found: dict[str, list[str]] = {}
    for (one, other), less in differences(scores).items():
        if (one == NAMES["trained"]) is not is_search(scores):
            found.setdefault(standing(less), []).append(other.strip("()").replace("untrained", "the untrained base"))
    return f"{what} is " + ", ".join(f"{how} {listed(names)}" for how, names in found.items())


def _drawing(scores: Scores) -> dict[str, Any] | None:
    """The paired differences as dots; scores alone would have intervals that overlap where a difference is certain."""
    own = {f"{one} - {other}": found for (one, other), found in differences(scores).items()}
    best = max(own, key=lambda name: float(own[name]["score"]), default=None)
    return dots([(name, found, False) for name, found in own.items()], best, None) if own else None
