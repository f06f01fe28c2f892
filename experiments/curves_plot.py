"""Draw the scores of curves.yaml against steps: each colour is a method, each line a seed; other rates are dotted.

python experiments/curves_plot.py docs/results/quality/curves.json docs/images/curves.svg
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from grid import kept

from selfsent.papers.plots import COLOURS, GREY, save

EVERY, RATE = 2000, 0.0001
PANELS = {
    "TwitterPara, of the same tweets": ["twitterpara"],
    "STS-B (dev)": ["stsb-dev"],
    "mean of six tasks": ["stsb-dev", "stsb", "twitterpara", "ukp-aspect", "banking77-dev", "newsgroups-dev"],
}


def draw(rows: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Scores over steps, a line for each seed; from the untrained base, which is the grey line."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(PANELS), figsize=(3.6 * len(PANELS), 3.6), layout="constrained")
    curves: dict[tuple[str, float], list[list[Mapping[str, float]]]] = {}
    for row in rows.values():
        if "curve" in row:
            curves.setdefault((row["method"], row["learning_rate"]), []).append(row["curve"])
    base = next(row["scores"] for row in rows.values() if "method" not in row)
    methods = list(dict.fromkeys(method for method, _ in curves))
    for axis, (title, tasks) in zip(panels, PANELS.items(), strict=True):
        start = float(np.mean([base[task][0] for task in tasks]))
        axis.axhline(start, color=GREY, linewidth=1)
        for (method, rate), runs in curves.items():
            shown = f"{method}" if rate == RATE else f"{method} at {rate:g}"
            style = "-o" if rate == RATE else ":"
            for run in runs:
                points = [start, *(float(np.mean([point[task] for task in tasks])) for point in run)]
                steps = EVERY * np.arange(len(points))
                axis.plot(steps, points, style, color=COLOURS[methods.index(method)], markersize=3, label=shown)
        axis.set(xlabel="steps of 8", title=title)
    panels[0].set_ylabel("score x 100")
    found = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    save(figure, path)


if __name__ == "__main__":
    draw(kept(Path(sys.argv[1])), Path(sys.argv[2]))
