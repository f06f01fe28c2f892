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


def dots(rows: Sequence[tuple[str, Mapping[str, Any], bool]], best: str | None, line: str) -> dict[str, Any]:
    """Layout of a drawing: a dot with its 95 % interval for each of `rows`, the best first, and a reference line.

    Args:
        rows: name, score and whether it only counts words, as TF-IDF and BM25 do.
        best: name of the best row, which is blue.
        line: name of the row at whose score the line is.
    """
    rows = sorted(rows, key=lambda row: -float(row[1]["score"]))
    ends: list[float] = [score[end] for _, score, _ in rows for end in ("low", "high")]
    low, scale = min(ends), (_WIDTH - 2 * _MARGIN - 36) / ((max(ends) - min(ends)) or 1.0)

    def position(value: float) -> float:
        return round(_MARGIN + (value - low) * scale, 1)

    drawn, middle = [], next(score["score"] for name, score, _ in rows if name == line)
    for number, (name, score, words) in enumerate(rows):
        place = {"text": _ROW * number + 15, "y": _ROW * number + 26, "x": position(score["score"])}
        place |= {end: position(score[end]) for end in ("low", "high")}
        colour = BEST if name == best else WORDS if words else OTHER
        about = {"name": shortened(name, _NAME), "score": f"{score['score']:.1f}", "colour": colour}
        drawn.append({**about, **place})
    return {
        **{"width": _WIDTH, "height": _ROW * len(rows) + 2, "margin": _MARGIN, "other": OTHER},
        **{"middle": position(middle), "line": line, "best": best, "dots": drawn},
        "words": any(words for *_, words in rows),
        "bare": any(score["low"] == score["high"] for _, score, _ in rows),
    }


def curves(logs: Mapping[str, Curve]) -> list[dict[str, Any]]:
    """Layout of a curve for each log with at least two steps, by title."""
    found, (width, height) = [], _CURVE
    for name, values in logs.items():
        if len({step for step, _ in values}) < 2:
            continue
        steps, losses = zip(*values, strict=True)
        across, high, up = steps[-1] - steps[0], max(losses), (max(losses) - min(losses)) or 1
        places = ((width * (step - steps[0]) / across, 4 + (height - 8) * (high - loss) / up) for step, loss in values)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        caption = f"{losses[0]:.3g} to {losses[-1]:.3g} in {steps[-1]:,} steps"
        shape = {"width": width, "height": height, "colour": BEST}
        found.append({"name": name, "points": points, "caption": caption, **shape})
    return found
