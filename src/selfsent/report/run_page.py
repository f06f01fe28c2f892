"""The page of a run, and the same for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from selfsent.evaluation.lexical import LEXICAL
from selfsent.report.pages import curves, dots, nearest, render
from selfsent.report.scores import NAMES, Scores, differences, is_search, ranked, standing, title, told

_CURVES = {
    "loss": "loss",
    "score": "score on development data",
    "mean_cosine": "mean cosine of two sentences",
    "effective_rank": "effective rank",
}
"""What is drawn of the log, and what it is called."""


def run_page(
    record: Mapping[str, Any],
    scores: Scores | None,
    neighbours: Sequence[Mapping[str, Any]],
    metrics: Sequence[Mapping[str, Any]],
    fragment: bool = False,
    corpus_map: Mapping[str, Any] | None = None,
    search: Scores | None = None,
) -> str:
    """The page of a run.

    Args:
        record: the content of its `run.json`.
        scores: before and after, by the next sentence; None where there are none.
        neighbours: the nearest sentences of a few sentences, before and after.
        metrics: its log.
        fragment: whether to leave out head and headline, as for a notebook.
        corpus_map: the map, as `map_of` gives it.
        search: before and after, by search; None where there are none, as of a run of an earlier version.
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
        headline=_headline(search or scores),
        scores=[_part(each) for each in (search, scores) if each],
        map=corpus_map,
        neighbours=[nearest(entry) for entry in neighbours],
        curves=curves(metrics, _CURVES),
        about=[((name, str(value)), False) for name, value in about.items() if value not in (None, "")],
    )


def _headline(scores: Scores | None) -> str:
    """What came of it, in one line: of search where it was scored."""
    if not scores:
        return "The encoder is trained"
    what = "In search trained + words" if is_search(scores) else "At finding the next sentence the trained encoder"
    found: dict[str, list[str]] = {}
    for (one, other), less in differences(scores).items():
        if (one == NAMES["trained"]) is not is_search(scores):
            found.setdefault(standing(less), []).append(other.strip("()").replace("untrained", "the untrained base"))
    return f"{what} is " + ", ".join(f"{how} {_listed(those)}" for how, those in found.items())


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _part(scores: Scores) -> dict[str, Any]:
    """What the template shows of scores of one kind."""
    best, line = ("with_words", "bm25") if is_search(scores) else ("trained", "base")
    rows: list[dict[str, Any]] = []
    table: list[tuple[Sequence[str], bool]] = []
    for key, one in ranked(scores).items():
        rows.append({"name": NAMES[key], "score": one, "words": key in LEXICAL})
        table.append(((NAMES[key], f"{one['score']:.2f}", f"{one['low']:.2f} to {one['high']:.2f}"), key == best))
    for (one, other), less in differences(scores).items():
        table.append(
            ((f"{one} − {other}", f"{less['score']:+z.2f}", f"{less['low']:+z.2f} to {less['high']:+z.2f}"), False)
        )
    drawing = dots(rows, scores[line]["score"], NAMES[best], NAMES[line])
    return {"title": title(scores), "told": told(scores), "drawing": drawing, "table": table}
