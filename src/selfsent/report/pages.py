"""Pages: single HTML files that open anywhere, offline. All text in them is escaped; only maps have a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from selfsent.display import shortened

Curve = Sequence[tuple[int, float]]
"""Steps and values."""

_WIDTH, _MARGIN, _ROW, _NAME = 440, 8, 38, 60
"""Dimensions of a drawing that is legible on a phone, with names above their lines."""
_CURVE = 230, 90  # width and height
BEST, WORDS, OTHER = "#2a86c4", "#c07a1e", "#8c8c8c"
"""Colours of the best, of TF-IDF and BM25, and of others: legible on white and black."""


@cache
def _environment() -> Environment:
    return Environment(  # nosec B701 # all is escaped but Markdown, where `card` does it
        loader=PackageLoader("selfsent.report"),
        autoescape=lambda name: not (name or "").endswith(".md"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> str:
    """A page from a file in `templates`; text is escaped except in Markdown (`.md`)."""
    return _environment().get_template(template).render(**values)


def dots(rows: Sequence[Mapping[str, Any]], middle: float, best: str | None, line: str) -> dict[str, Any]:
    """Layout of a drawing: a dot with its 95 % interval for each of `rows`, and a reference line.

    Args:
        rows: each with `name` and `score`, and with `words` for TF-IDF and BM25.
        middle: score at the line.
        best: name of the best row.
        line: label of the line.
    """
    ends: list[float] = [value for row in rows for value in (row["score"]["low"], row["score"]["high"])]
    low, scale = min(ends), (_WIDTH - 2 * _MARGIN - 36) / ((max(ends) - min(ends)) or 1.0)

    def position(value: float) -> float:
        return round(_MARGIN + (value - low) * scale, 1)

    drawn = []
    for number, row in enumerate(rows):
        score = row["score"]
        drawn.append(
            {
                "name": shortened(row["name"], _NAME),
                "text": _ROW * number + 15,
                "y": _ROW * number + 26,
                **{"x": position(score["score"]), "low": position(score["low"]), "high": position(score["high"])},
                "score": f"{score['score']:.1f}",
                "colour": BEST if row["name"] == best else WORDS if row.get("words") else OTHER,
            }
        )
    return {
        **{"width": _WIDTH, "height": _ROW * len(rows) + 2, "margin": _MARGIN, "other": OTHER},
        **{"middle": position(middle), "line": line, "best": best, "dots": drawn},
        "words": any(row.get("words") for row in rows),
        "bare": any(row["score"]["low"] == row["score"]["high"] for row in rows),
    }


def curves(logs: Mapping[str, Curve]) -> list[dict[str, Any]]:
    """Layout of a curve for each log with at least two steps, by title."""
    found, (width, height) = [], _CURVE
    for name, values in logs.items():
        if len({step for step, _ in values}) < 2:
            continue
        steps, losses = zip(*values, strict=True)
        across, high, up = steps[-1] - steps[0], max(losses), (max(losses) - min(losses)) or 1
        points = " ".join(
            f"{width * (step - steps[0]) / across:.1f},{4 + (height - 8) * (high - loss) / up:.1f}"
            for step, loss in values
        )
        caption = f"{losses[0]:.3g} to {losses[-1]:.3g} in {steps[-1]:,} steps"
        shape = {"width": width, "height": height, "colour": BEST}
        found.append({"name": name, "points": points, "caption": caption, **shape})
    return found
