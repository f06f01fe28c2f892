"""The page of a comparison of methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    bases, words = found["bases"], found["baselines"]
    rows = [{"name": name, "score": score} for name, score in bases.items()]
    rows += [{"name": name, "score": score, "words": True} for name, score in words.items()]
    rows += [{"name": each["name"], "score": each["dev"], **each} for each in found["candidates"]]
    rows.sort(key=lambda row: -row["score"]["score"])
    best_base = max(bases, key=lambda name: bases[name]["score"])
    task = "the next sentence in development documents, MRR@10 × 100" if found["dev"] == "context" else found["dev"]
    return render(
        "comparison.html",
        headline=found["headline"],
        advice=found["advice"],
        remarks=[line + "." for line in found["remarks"]],
        task=task,
        drawing=dots(rows, bases[best_base]["score"], found["best"], best_base),
        scores=list(_scores(rows, found["best"])),
        test=list(_tests(found["tests"], found["best"])),
        neighbours=[nearest(entry) for entry in neighbours],
        curves=[curve(name, values) for name, values in curves.items() if len(values) > 1],
        about=[((key, str(value)), False) for key, value in about.items()],
    )


def _mean(candidate: Mapping[str, Any]) -> str:
    """`37.65`, or `37.65 ± 0.31 over 3 seeds`."""
    shown, count = f"{candidate['dev']['score']:.2f}", len(candidate["seeds"])
    return shown if candidate["deviation"] is None else f"{shown} ± {candidate['deviation']:.2f} over {count} seeds"


def _scores(rows: Sequence[Mapping[str, Any]], best: str) -> Iterator[Row]:
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
                _difference(gain),
                f"{gain['p']:.3f}",
                " to ".join(f"{count:,}" for count in dict.fromkeys((min(steps), max(steps))) if count),
                f"{row['seconds']:.0f}" if row["seconds"] else "",
            ]
        yield [*cells, *[""] * (7 - len(cells))], row["name"] == best


def _tests(scores: Mapping[str, Any], best: str) -> Iterator[Row]:
    for name, one in sorted(scores.items(), key=lambda each: -float(each[1]["score"])):
        less = _difference(one["best_minus_it"]) if name != best else ""
        yield (name, f"{one['score']:.2f}", f"{one['low']:.2f} to {one['high']:.2f}", less), name == best


def _difference(found: Mapping[str, Any]) -> str:
    return f"{found['difference']:+z.2f} [{found['low']:+z.2f}, {found['high']:+z.2f}]"
