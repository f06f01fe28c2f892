"""The page of a comparison of methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from selfsent.report.differences import differences
from selfsent.report.pages import Curve, curve, dots, nearest, render

Row = tuple[Sequence[str], bool]
"""Cells of a table, and whether they are of the best."""


def comparison_page(
    found: Mapping[str, Any],
    about: Mapping[str, Any],
    neighbours: Sequence[Mapping[str, Any]],
    curves: Mapping[str, Curve],
) -> str:
    """The page.

    Args:
        found: what `Selection.to_json` gives.
        about: what was compared, by what to call it; shown below the scores.
        neighbours: the nearest sentences of a few sentences, before and after the chosen method.
        curves: the losses of each method.
    """
    rows = [{"name": "untrained", "score": found["base"]}]
    rows += [{"name": each["name"], "score": each["dev"], **each} for each in found["candidates"]]
    rows.sort(key=lambda row: -row["score"]["score"])
    chosen = next((each for each in found["candidates"] if each["name"] == found["chosen"]), None)
    task = "the next sentence in development documents, MRR@10 × 100" if found["dev"] == "context" else found["dev"]
    return render(
        "comparison.html",
        chosen=found["chosen"],
        best=f"{_mean(chosen)}, untrained {found['base']['score']:.2f}" if chosen else "",
        remarks=list(_remarks(found, chosen)),
        task=task,
        drawing=dots(rows, found["base"]["score"], found["chosen"]),
        scores=list(_scores(rows, found["chosen"])),
        test=list(_test(chosen["test"])) if chosen and chosen["test"] else [],
        neighbours=[nearest(entry) for entry in neighbours],
        curves=[curve(name, values) for name, values in curves.items() if len(values) > 1],
        about=[((key, str(value)), False) for key, value in about.items()],
    )


def _remarks(found: Mapping[str, Any], chosen: Mapping[str, Any] | None) -> Iterator[str]:
    if chosen and len(chosen["seeds"]) > 1:
        yield f"The model is its run with seed {chosen['seed']}."
    if chosen and found["rivals"]:
        names = ", ".join(f"{name} (p {p:.2f})" for name, p in found["rivals"].items())
        what = "items and seeds" if found["seeds"] > 1 else "items"
        yield f"Not told apart from it by these {what}: {names}."
    yield from (f"{name} failed: {reason}." for name, reason in found["failures"].items())
    yield from (f"{line}." for line in found["hurried"])


def _mean(candidate: Mapping[str, Any]) -> str:
    """`37.65`, or `37.65 ± 0.31 over 3 seeds`."""
    shown, count = f"{candidate['dev']['score']:.2f}", len(candidate["seeds"])
    return shown if candidate["deviation"] is None else f"{shown} ± {candidate['deviation']:.2f} over {count} seeds"


def _scores(rows: Sequence[Mapping[str, Any]], best: str | None) -> Iterator[Row]:
    for row in rows:
        score, gain = row["score"], row.get("gain")
        cells = [
            row["name"],
            _mean(row) if gain else f"{score['score']:.2f}",
            f"{score['low']:.2f} to {score['high']:.2f}",
        ]
        if gain:
            steps = [each["steps"] or 0 for each in row["seeds"].values()]
            cells += [
                f"{gain['difference']:+z.2f} [{gain['low']:+z.2f}, {gain['high']:+z.2f}]",
                f"{gain['p']:.3f}",
                " to ".join(f"{count:,}" for count in dict.fromkeys((min(steps), max(steps))) if count),
                f"{row['seconds']:.0f}" if row["seconds"] else "",
            ]
        yield [*cells, *[""] * (7 - len(cells))], row["name"] == best
    if "tfidf" in (base := next(row for row in rows if row["name"] == "untrained"))["score"]:
        yield ["TF-IDF, for comparison", f"{base['score']['tfidf']:.2f}", *[""] * 5], False


def _test(scores: Mapping[str, Any]) -> Iterator[Row]:
    for key, name in {"trained": "chosen", "base": "untrained", "tfidf": "TF-IDF, for comparison"}.items():
        one = scores[key]
        yield (name, f"{one['score']:.2f}", f"{one['low']:.2f} to {one['high']:.2f}"), key == "trained"
    for other, one in differences(scores, "untrained").items():
        interval = f"{one['low']:+z.2f} to {one['high']:+z.2f}"
        yield (f"chosen − {other}", f"{one['score']:+z.2f}", interval), False
