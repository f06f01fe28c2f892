"""Pages: one HTML file each that opens anywhere, offline. All text in them is escaped, and only maps have a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

Curve = Sequence[tuple[int, float]]
"""Steps and losses."""

_WIDTH, _MARGIN, _ROW, _NAME = 440, 8, 38, 60
"""Of a drawing that is legible on a telephone, too: names stand above their lines."""
BEST, WORDS, OTHER = "#2a86c4", "#c07a1e", "#8c8c8c"
"""Of the best, of TF-IDF and BM25, and of all others. Legible on white and on black; written into the drawings, so
that they keep them wherever they are shown."""


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("selfsent.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> str:
    """A page.

    Args:
        template: name of a file in `templates`.
        **values: what it shows; text is escaped.
    """
    return _environment().get_template(template).render(**values)


def dots(rows: Sequence[Mapping[str, Any]], middle: float, best: str | None, line: str) -> dict[str, Any]:
    """Where the template draws a dot and its 95 % interval for each of `rows`, and a line through all.

    Args:
        rows: each with `name` and `score`, and with `words` where it is TF-IDF or BM25.
        middle: where the line goes through.
        best: the name of the best one.
        line: the name of what scores `middle`.
    """
    ends: list[float] = [value for row in rows for value in (row["score"]["low"], row["score"]["high"])]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return round(_MARGIN + (value - low) / span * (_WIDTH - 2 * _MARGIN - 36), 1)

    def dot(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
        name, score = row["name"], row["score"]
        return {
            "name": name if len(name) <= _NAME else name[: _NAME - 1] + "…",
            "text": _ROW * number + 15,
            "y": _ROW * number + 26,
            "x": place(score["score"]),
            "low": place(score["low"]),
            "high": place(score["high"]),
            "score": f"{score['score']:.1f}",
            "colour": BEST if name == best else WORDS if row.get("words") else OTHER,
        }

    return {
        "width": _WIDTH,
        "height": _ROW * len(rows) + 2,
        "middle": place(middle),
        "line": line,
        "best": best,
        "words": any(row.get("words") for row in rows),
        "bare": any(row["score"]["low"] == row["score"]["high"] for row in rows),
        "colours": {"best": BEST, "words": WORDS, "other": OTHER},
        "margin": _MARGIN,
        "dots": [dot(number, row) for number, row in enumerate(rows)],
    }


def curve(name: str, values: Curve, width: int = 230, height: int = 90) -> dict[str, Any]:
    """What the template draws of losses, two or more."""
    steps, losses = zip(*values, strict=True)
    low, high = min(losses), max(losses)
    points = " ".join(
        f"{width * (step - steps[0]) / (steps[-1] - steps[0]):.1f},"
        f"{4 + (height - 8) * (high - loss) / ((high - low) or 1):.1f}"
        for step, loss in values
    )
    told = f"{losses[0]:.3g} to {losses[-1]:.3g} in {steps[-1]:,} steps"
    return {"name": name, "points": points, "width": width, "height": height, "colour": BEST, "told": told}


def curves(metrics: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the template draws of a log.

    Args:
        metrics: its entries, each with its `step`.
        titles: which figures are drawn, and what they are called; those logged fewer than twice are left out.
    """
    found = {
        title: [(entry["step"], entry[name]) for entry in metrics if name in entry] for name, title in titles.items()
    }
    return [curve(title, values) for title, values in found.items() if len({step for step, _ in values}) > 1]


def nearest(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What the template shows of the sentences nearest to one, before and after."""
    return {"sentence": entry["sentence"], "pairs": list(zip(entry["before"], entry["after"], strict=True))}
