"""Pages: single HTML files that open anywhere, offline. All text in them is escaped; only maps have a script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from selfsent.display import shortened

Curve = Sequence[tuple[int, float]]
"""Steps and values."""

_NAME = 80
"""Maximum number of characters of a name in a drawing."""
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


def dots(rows: Sequence[tuple[str, Mapping[str, Any], bool]], best: str | None, line: str | None) -> dict[str, Any]:
    """Layout of a drawing: a dot with its 95 % interval for each of `rows`, the best first, over an axis.

    Args:
        rows: name, score and whether it only counts words, as TF-IDF and BM25 do.
        best: name of the best row, which is blue.
        line: name of the row at whose score a line is; None for differences, which have theirs at zero.
    """
    rows = sorted(rows, key=lambda row: -float(row[1]["score"]))
    middle = 0.0 if line is None else next(score["score"] for name, score, _ in rows if name == line)
    drawn = []
    ticks = _ticks([middle, *(score[end] for _, score, _ in rows for end in ("low", "high"))])
    low, scale = ticks[0], 100 / (ticks[-1] - ticks[0])

    def position(value: float) -> float:
        return round((value - low) * scale, 2)

    for name, score, words in rows:
        place = {end: position(score[end]) for end in ("low", "high")} | {"x": position(score["score"])}
        colour = BEST if name == best else WORDS if words else OTHER
        said = f"{score['score']:+.1f}" if line is None else f"{score['score']:.1f}"
        drawn.append({"name": shortened(name, _NAME), "score": said, "colour": colour, **place})
    return {
        "axis": [(position(tick), f"{tick:+g}" if line is None and tick else f"{tick:g}") for tick in ticks],
        **{"middle": position(middle), "line": line, "best": best, "dots": drawn},
        "words": any(words for *_, words in rows),
        "bare": any(score["low"] == score["high"] for _, score, _ in rows),
    }


def _ticks(values: Sequence[float]) -> list[float]:
    """Round numbers around values, some four to eight."""
    span = (max(values) - min(values)) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= span / 6)
    first, last = math.floor(min(values) / step), math.ceil(max(values) / step)
    return [round(step * number, 10) for number in range(first, max(last, first + 1) + 1)]


def over_price(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Layout of scores over prices, on a logarithmic axis: positions in per cent, from below and from the left.

    Args:
        rows: each with `number`, `name`, `price` above 0, `score`, `low` and `high`, and `colour`.
    """
    ups = _ticks([row[end] for row in rows for end in ("low", "high")])
    prices = [math.log10(row["price"]) for row in rows]
    first, last = math.floor(min(prices)), math.ceil(max(prices))
    last = max(last, first + 1)

    def up(score: float) -> float:
        return round(100 * (score - ups[0]) / (ups[-1] - ups[0]), 2)

    def across(power: float) -> float:
        return round(100 * (power - first) / (last - first), 2)

    drawn = [
        dict(row) | {"x": across(power), "y": up(row["score"]), "bottom": up(row["low"]), "top": up(row["high"])}
        for row, power in zip(rows, prices, strict=True)
    ]
    return {
        "points": drawn,
        "up": [(up(tick), f"{tick:g}") for tick in ups],
        "across": [(across(power), f"{10.0**power:,.10g}") for power in range(first, last + 1)],
    }


def gains_by_alpha(candidates: Sequence[Mapping[str, Any]], alpha: float) -> dict[str, Any]:
    """Layout of the gain over the base by the share that is kept of a training, with intervals, on both halves.

    Args:
        candidates: of a warranty: `alpha`, and for `dev` and `test` `gain`, `low` and `high`.
        alpha: of the chosen one.
    """
    halves = {"where chosen": "dev", "on the other half": "test"}
    gains = [each[half][end] for each in candidates for half in halves.values() for end in ("gain", "low", "high")]
    ticks = _ticks([0.0, *gains])
    width, height, left = 560, 260, 40

    def place(across: float, gain: float) -> tuple[float, float]:
        up = (gain - ticks[0]) / (ticks[-1] - ticks[0])
        return round(left + (width - left - 16) * across, 1), round(8 + (height - 36) * (1 - up), 1)

    lines = []
    for (name, half), colour in zip(halves.items(), (BEST, WORDS), strict=True):
        points = [(place(each["alpha"], each[half]["gain"]), each) for each in candidates]
        bars = [(x, place(0, each[half]["low"])[1], place(0, each[half]["high"])[1]) for (x, _), each in points]
        drawn = " ".join(f"{x},{y}" for (x, y), _ in points)
        lines.append({"name": name, "colour": colour, "points": drawn, "bars": bars})
    return {
        **{"width": width, "height": height, "left": left, "lines": lines, "chosen": place(alpha, 0)[0]},
        "up": [(place(0, tick)[1], f"{tick:+g}" if tick else "0") for tick in ticks],
        "across": [(place(each["alpha"], 0)[0], f"{each['alpha']:.0%}") for each in candidates],
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
