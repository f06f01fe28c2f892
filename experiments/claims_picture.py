"""One picture of all claims: the paper's difference and ours, with its interval, on one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LIMIT, LINEAR = 62.0, 10.0
"""Ends of the axis, and from where on it is logarithmic."""
COLOURS = {"holds": "#1b7837", "fails": "#b2182b", "undecided": "#b8860b"}
PAPER, OLDER = "#222222", "#8a9ab0"


def lines_of(figures: Sequence[Mapping[str, Any]]) -> list[tuple[str, float | None, list[Mapping[str, Any]]]]:
    """For each claim its title, the paper's difference, and those of ours."""
    found = []
    for claim in figures:
        values = claim["theirs"]
        change = values[0] - values[1] if values else None
        if claim["of_four"]:
            change -= values[2] - values[3]
        found.append((claim["id"], change, [*claim["ours"], *claim["before"]]))
    return found


def draw(figures: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the picture as SVG.

    Args:
        figures: what `claims.made` gives.
        path: of the file.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    settings = {"svg.hashsalt": "claims", "svg.fonttype": "none", "font.size": 8}
    with rc_context(settings):
        count = len(figures) + len({claim["paper"] for claim in figures})
        figure = Figure(figsize=(7.6, 0.21 * count + 1.1), layout="constrained")
        axes = figure.add_subplot()
        place, labels, paper = 0.0, list[tuple[float, str]](), ""
        for claim, (title, change, ours) in zip(figures, lines_of(figures), strict=True):
            if claim["paper"] != paper:
                paper, place = claim["paper"], place + 1
                axes.text(-LIMIT + 4, place - 1, paper, fontweight="bold", va="center")
            labels.append((place, title))
            axes.axhline(place, color="#eeeeee", linewidth=0.6, zorder=0)
            if change is not None:
                _point(axes, change, place, PAPER, "D", None, None)
            shown = [each for each in ours if "difference" in each]
            for number, each in enumerate(shown):
                under = "verdict" in each
                ends = each["seeds"] if under else each
                at = place + 0.5 * ((number + 0.5) / len(shown) - 0.5)
                colour = COLOURS[each["verdict"]] if under else OLDER
                _point(axes, each["difference"], at, colour, "o", ends.get("low"), ends.get("high"))
            place += 1
        axes.axvline(0, color="#555555", linewidth=0.8, zorder=0)
        axes.set_xscale("symlog", linthresh=LINEAR, linscale=2)
        axes.set_xlim(-LIMIT, LIMIT)
        ticks = (-50, -10, -5, 0, 5, 10, 50)
        axes.set_xticks(ticks, [f"{tick:+d}".replace("+0", "0") for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(place, -0.8)
        axes.set_yticks([at for at, _ in labels], [text for _, text in labels])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("points by which the first row of the claim is above the second")
        marks = [
            ("D", PAPER, "paper"),
            *(("o", colour, f"by the protocol: {name}") for name, colour in COLOURS.items()),
        ]
        marks.append(("o", OLDER, "older figures, which decide nothing"))
        handles = [Line2D([], [], marker=m, color=c, linestyle="", markersize=4, label=text) for m, c, text in marks]
        figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        figure.savefig(path, format="svg", metadata={"Date": None})
    lines = (line.rstrip() for line in path.read_text(encoding="utf-8").splitlines())
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _point(axes: Any, value: float, place: float, colour: str, marker: str, low: Any, high: Any) -> None:
    """A difference with its interval."""
    if low is not None:
        axes.plot([low, high], [place, place], color=colour, linewidth=1)
    size, over = (4.5, 3) if marker == "D" else (3, 2)
    axes.plot([value], [place], marker=marker, color=colour, markersize=size, zorder=over)
