"""Plots of the analyses, as PNG or SVG. Needs matplotlib, which is not among the requirements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from selfsent.errors import OutputError, SettingsError
from selfsent.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from selfsent.evaluation.analysis import CurvePoint, LabelledWorth, Space, WordImportance

Given = ParamSpec("Given")
FORMATS = (".png", ".svg")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, which colour-blind readers can tell apart."""
GREY = "#999999"
_STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "font.size": 10,
    # A model's name is shown as it is, dollar signs included.
    "text.parse_math": False,
    "savefig.bbox": "tight",
    # The same data gives the same file.
    "svg.hashsalt": "selfsent",
    "svg.fonttype": "none",
}


def _styled(plot: Callable[Given, Figure]) -> Callable[Given, Figure]:
    """Texts and lines take their style when they are made, so all of a plot is made in ours."""

    @wraps(plot)
    def in_style(*arguments: Given.args, **options: Given.kwargs) -> Figure:
        from matplotlib import rc_context

        with rc_context(_STYLE):
            return plot(*arguments, **options)

    return in_style


def check_plots(paths: Sequence[str | Path]) -> None:
    """Refuse what cannot be plotted, before anything that takes long.

    Raises:
        OutputError: a file that is neither PNG nor SVG.
        SettingsError: matplotlib is not installed.
    """
    for path in map(Path, paths):
        if path.suffix not in FORMATS:
            raise OutputError(f"--plot {path} must end in {' or '.join(FORMATS)}")
    if paths and find_spec("matplotlib") is None:
        raise SettingsError("--plot needs matplotlib: pip install 'selfsent[plot]'")


def save(figure: Figure, path: str | Path) -> None:
    """Write a plot, whole or not at all.

    Raises:
        OutputError: the file cannot be written.
    """
    from matplotlib import rc_context

    kind = Path(path).suffix[1:]
    with rc_context(_STYLE), whole_file(Path(path)) as temporary:
        figure.savefig(temporary, format=kind, dpi=200, metadata={"Date": None} if kind == "svg" else None)


@_styled
def plot_words(found: dict[str, WordImportance]) -> Figure:
    """Which words a similarity hangs on: shares by part of speech, one bar a model, beside what chance would give.

    Args:
        found: by model.
    """
    first = next(iter(found.values()))
    tags = list(first.present)
    bars: dict[str, dict[str, float]] = {name: one.decisive for name, one in found.items()}
    bars["all words"] = first.present
    figure, axes = _axes(height=0.8 + 0.17 * len(tags) * (len(bars) + 1))
    for number, (name, shares) in enumerate(bars.items()):
        colour = GREY if number == len(found) else COLOURS[number % len(COLOURS)]
        places = [place + (number - (len(bars) - 1) / 2) * 0.8 / len(bars) for place in range(len(tags))]
        values = [100 * shares.get(tag, 0.0) for tag in tags]
        axes.barh(places, values, 0.8 / len(bars), color=colour, label=name)
    axes.set_yticks(range(len(tags)), tags)
    axes.set_ylim(len(tags) - 0.5, -0.5)
    axes.set_xlabel(f"% of {first.sentences:,} sentences whose decisive word is of this kind")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    _legend(axes)
    return figure


@_styled
def plot_corpus_size(points: Sequence[CurvePoint], metric: str) -> Figure:
    """The score over the number of training sentences; bars are standard deviations over seeds.

    Args:
        points: ascending by size.
        metric: what the score is.
    """
    figure, axes = _axes()
    sizes, means = [point.size for point in points], [point.mean for point in points]
    deviations = [point.deviation for point in points]
    axes.errorbar(sizes, means, yerr=deviations, color=COLOURS[0], marker="o", capsize=3, linewidth=1.5)
    _logarithmic(axes, sizes)
    axes.set_xlabel("training sentences")
    axes.set_ylabel(metric)
    axes.grid(color="#dddddd", linewidth=0.6)
    return figure


@_styled
def plot_labels(found: LabelledWorth, metric: str, model: str) -> Figure:
    """The score of supervised training over the number of labelled pairs, and the unsupervised score it must reach.

    Args:
        found: what the bisection tried.
        metric: what the score is.
        model: name of the unsupervised model.
    """
    figure, axes = _axes()
    tried = sorted(found.tried)
    axes.plot(*zip(*tried, strict=True), color=COLOURS[0], marker="o", linewidth=1.5, label="supervised")
    axes.axhline(found.goal, color=COLOURS[1], linestyle="--", linewidth=1.5, label=f"{model}, without labels")
    if found.pairs is not None:
        axes.axvline(found.pairs, color=GREY, linestyle=":", label=f"overtaken at {found.pairs:,} pairs")
    _logarithmic(axes, [pairs for pairs, _ in tried])
    axes.set_xlabel("labelled pairs")
    axes.set_ylabel(metric)
    axes.grid(color="#dddddd", linewidth=0.6)
    _legend(axes)
    return figure


@_styled
def plot_space(found: Sequence[Space]) -> Figure:
    """Alignment against uniformity, one point a model; the lower left is best."""
    figure, axes = _axes()
    for number, one in enumerate(found):
        axes.scatter(one.uniformity, one.alignment, color=COLOURS[number % len(COLOURS)], s=45, label=one.model)
    # From the best value to that of vectors all alike, so that plots of other models look alike.
    axes.set_xlim(-4.1, 0.1)
    axes.set_ylim(0, 1.25 * max(one.alignment for one in found) or 1)
    axes.set_xlabel("uniformity (less is better)")
    axes.set_ylabel("alignment (less is better)")
    axes.grid(color="#dddddd", linewidth=0.6)
    _legend(axes)
    return figure


def _axes(height: float = 3.6) -> tuple[Figure, Axes]:
    # Not pyplot: it keeps every figure in memory and picks a backend for windows.
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(6, height))
    return figure, figure.add_subplot()


def _legend(axes: Axes) -> None:
    """Above the plot, where nothing can be taken for data or hide it."""
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)


def _logarithmic(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic axis that names the sizes that were tried, as far as their names do not overlap."""
    from math import log

    axes.set_xscale("log")
    span = log(max(sizes) / min(sizes)) or 1.0
    ticks: list[int] = []
    for size in sorted(set(sizes)):
        if not ticks or log(size / ticks[-1]) > span / 8:
            ticks.append(size)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
