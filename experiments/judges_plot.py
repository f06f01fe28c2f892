"""Draw what label-free scores and labels say of steps and learning rates.

    python experiments/judges_plot.py docs/results/quality/judges_rates.json docs/images/judges-steps.svg

The JSON is written by judges.py from judges_rates.yaml. Labels are drawn solid, label-free scores dashed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from domain import LEAKED
from grid import finished
from scipy.stats import gmean

from selfsent.evaluation.judges import MEAN_OF
from selfsent.papers.plots import COLOURS, GREY, save

METHODS = ("neighbours", "simcse", "bootstrap")
STEPS, RATES = (20, 60, 180, 540), (0.001, 0.004, 0.016, 0.05)
USUAL = 60, 0.004
TITLES = {"newsgroups": "news groups", "counsel": "counsel", "banking77": "bank queries, no documents"}


def label_free(row: Mapping[str, Any]) -> float:
    """`context`, or the geometric mean of the judges of single sentences."""
    found = {name: row["judges"][name][0] for name in MEAN_OF if name in row["judges"]}
    return float(found["context"] if "context" in found else gmean(list(found.values())))


def labelled(row: Mapping[str, Any]) -> float:
    """The mean of the corpus' own tests."""
    tests = {name: score[0] for name, score in row["labelled"].items() if not name.endswith("-dev")}
    return float(np.mean([score for name, score in tests.items() if name not in LEAKED]))


def named(method: str, steps: int, rate: float) -> str:
    """The title of the row with so many steps at this rate; both usual ones share a row."""
    return f"{method}, {steps} steps" if steps != USUAL[0] else f"{method} at {rate:g}"


def draw(rows: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Points over the untrained base: above against steps, below against rates."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, len(TITLES), figsize=(3.6 * len(TITLES), 5.6), layout="constrained")
    for column, (domain, title) in enumerate(TITLES.items()):
        base = rows[f"{domain} | bundled | untrained"]
        for axis, axis_values in zip(panels[:, column], (STEPS, RATES), strict=True):
            axis.axhline(0, color=GREY, linewidth=1)
            for method, colour in zip(METHODS, COLOURS, strict=False):
                for score, style, said in ((labelled, "-o", "labels"), (label_free, "--", "label-free")):
                    points = []
                    for value in axis_values:
                        steps, rate = (value, USUAL[1]) if axis_values is STEPS else (USUAL[0], value)
                        row = rows.get(f"{domain} | bundled | {named(method, int(steps), rate)}", {})
                        if "judges" in row:
                            points.append((value, score(row) - score(base)))
                    if points:
                        axis.plot(
                            *zip(*points, strict=True), style, color=colour, markersize=4, label=f"{method}, {said}"
                        )
            axis.set(xscale="log", xlabel="steps" if axis_values is STEPS else "learning rate")
            axis.set_xticks(axis_values, [f"{value:g}" for value in axis_values])
            axis.minorticks_off()
        panels[0, column].set_title(title)
    for axis in panels[:, 0]:
        axis.set_ylabel("points over the untrained base")
    shown = dict(zip(*reversed(panels[0, 0].get_legend_handles_labels()), strict=True))
    figure.legend(list(shown.values()), list(shown), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    save(figure, path)


if __name__ == "__main__":
    draw(finished(Path(sys.argv[1])), Path(sys.argv[2]))
