"""The page of a run, and the same for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from selfsent.evaluation.lexical import LEXICAL
from selfsent.report.differences import WITH_WORDS, differences
from selfsent.report.pages import curves, dots, nearest, render

NAMES = {"base": "untrained", "trained": "trained", "with_words": WITH_WORDS, **LEXICAL}
_CURVES = {
    "loss": "loss",
    "score": "score on development data",
    "mean_cosine": "mean cosine of two sentences",
    "effective_rank": "effective rank",
}
"""What is drawn of the log, and what it is called."""


def run_page(
    record: Mapping[str, Any],
    scores: Mapping[str, Any] | None,
    neighbours: Sequence[Mapping[str, Any]],
    metrics: Sequence[Mapping[str, Any]],
    fragment: bool = False,
    corpus_map: Mapping[str, Any] | None = None,
) -> str:
    """The page of a run.

    Args:
        record: the content of its `run.json`.
        scores: before and after; None where there are none.
        neighbours: the nearest sentences of a few sentences, before and after.
        metrics: its log.
        fragment: whether to leave out head and headline, as for a notebook.
        corpus_map: the map, as `map_of` gives it.
    """
    asked = record.get("asked", {})
    settings = {name: value for name, value in asked.get("settings", {}).items() if value is not None}
    about = {
        "method": asked.get("method"),
        "base": asked.get("base"),
        "pooling": asked.get("pooling"),
        "corpus": asked.get("corpus", {}).get("source"),
        "sentences": f"{asked.get('corpus', {}).get('sentences', 0):,}",
        "steps": record.get("steps"),
        "seconds": round(record["seconds"], 1) if "seconds" in record else None,
        "settings": ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items()),
        "versions": ", ".join(f"{name} {version}" for name, version in record.get("versions", {}).items()),
    }
    return render(
        "run_body.html" if fragment else "run.html",
        method=asked.get("method", "run"),
        headline=_headline(scores),
        drawing=dots(_rows(scores), scores["base"]["score"], "trained", NAMES["base"]) if scores else None,
        scores=_table(scores) if scores else [],
        with_words=bool(scores and "with_words" in scores),
        map=corpus_map,
        neighbours=[nearest(entry) for entry in neighbours],
        curves=curves(metrics, _CURVES),
        about=[((name, str(value)), False) for name, value in about.items() if value not in (None, "")],
    )


def _headline(scores: Mapping[str, Any] | None) -> str:
    """What came of it, in one line."""
    if not scores:
        return "The encoder is trained"
    found: dict[str, list[str]] = {}
    for other, one in differences(scores, "the untrained base").items():
        how = "ahead of" if one["low"] > 0 else "behind" if one["high"] < 0 else "level with"
        found.setdefault(how, []).append(other)
    return "The trained encoder is " + ", ".join(f"{how} {_listed(those)}" for how, those in found.items())


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _rows(scores: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = [
        {"name": name, "score": scores[key], "words": key in LEXICAL} for key, name in NAMES.items() if key in scores
    ]
    return sorted(rows, key=lambda row: -float(row["score"]["score"]))


def _table(scores: Mapping[str, Any]) -> list[tuple[Sequence[str], bool]]:
    lines: list[tuple[Sequence[str], bool]] = [
        (
            (row["name"], f"{row['score']['score']:.2f}", f"{row['score']['low']:.2f} to {row['score']['high']:.2f}"),
            row["name"] == "trained",
        )
        for row in _rows(scores)
    ]
    for other, one in differences(scores, "untrained").items():
        interval = f"{one['low']:+z.2f} to {one['high']:+z.2f}"
        lines.append(((f"trained − {other}", f"{one['score']:+z.2f}", interval), False))
    return lines
