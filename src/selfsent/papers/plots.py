"""Plots of the analyses, as PNG or SVG. Needs matplotlib, an optional dependency."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.errors import OutputError, SettingsError
from selfsent.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from selfsent.evaluation.side_by_side import Spread
    from selfsent.papers.analysis import Space, WordImportance

FORMATS = (".png", ".svg")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""The colour-blind-safe palette of Okabe and Ito."""
GRID = "#e5e5e5"
KINDS = {
    **{"NOUN": "nouns", "PROPN": "names", "VERB": "verbs", "ADJ": "adjectives", "ADV": "adverbs", "PRON": "pronouns"},
    **{"DET": "determiners", "ADP": "prepositions", "CONJ": "conjunctions", "PART": "particles", "NUM": "numbers"},
    "PUNCT": "punctuation",
}
"""Displayed names of parts of speech."""
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "font.size": 10,
    # Dollar signs in a model's name are literal.
    "text.parse_math": False,
    "savefig.bbox": "tight",
    # The same data gives the same file.
    "svg.hashsalt": "selfsent",
    "svg.fonttype": "none",
}


def check_plots(paths: Sequence[str | Path]) -> None:
    """Check the output of plots, before any slow work.

    Raises:
        OutputError: neither PNG nor SVG.
        SettingsError: matplotlib is not installed.
    """
    for path in map(Path, paths):
        if path.suffix not in FORMATS:
            raise OutputError(f"the plot {path} must end in {' or '.join(FORMATS)}")
    if paths and find_spec("matplotlib") is None:
        raise SettingsError("plots need matplotlib: pip install 'selfsent[plot]'")


def draw(plot: Callable[[Axes], None], paths: Sequence[str | Path]) -> None:
    """Draw a plot and write it to files, each atomically.

    Raises:
        OutputError: a file cannot be written.
    """
    from matplotlib import rc_context

    # Not pyplot: it keeps every figure in memory and chooses a window backend.
    from matplotlib.figure import Figure

    with rc_context(STYLE):  # texts and lines read it on creation
        figure = Figure(figsize=(6, 3.6))
        plot(figure.add_subplot())
        for path in paths:
            save(figure, path)


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure atomically.

    Raises:
        OutputError: the file cannot be written.
    """
    from matplotlib import rc_context

    kind = Path(path).suffix[1:]
    with rc_context(STYLE), atomic_file(Path(path)) as temporary:
        figure.savefig(temporary, format=kind, dpi=200, metadata={"Date": None} if kind == "svg" else None)


def plot_words(axes: Axes, found: Mapping[str, WordImportance]) -> None:
    """Importance of parts of speech: a bar for each model, before a grey one for their frequency.

    Args:
        axes: to draw on.
        found: by model.
    """
    first, models = next(iter(found.values())), list(found.values())
    tags = sorted(first.present, key=lambda tag: -max(one.decisive.get(tag, 0.0) for one in models))
    thick = 0.74 / len(found)
    figure: Any = axes.figure
    figure.set_figheight(1.2 + len(tags) * (0.16 + 0.14 * len(found)))
    shares = [100 * first.present[tag] for tag in tags]
    chance = axes.barh(range(len(tags)), shares, 0.92, color="#dddddd", label="share of all words")
    for number, (name, one) in enumerate(found.items()):
        positions = [row + (number - (len(found) - 1) / 2) * thick for row in range(len(tags))]
        values = [100 * one.decisive.get(tag, 0.0) for tag in tags]
        bars = axes.barh(positions, values, 0.86 * thick, color=COLOURS[number % len(COLOURS)], label=name)
        axes.bar_label(bars, [f"{value:.0f}" if value >= 0.5 else "" for value in values], padding=3, fontsize=8)
    axes.set_yticks(range(len(tags)), [KINDS.get(tag, tag) for tag in tags])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(tags) - 0.4, -0.6)
    axes.set_xlabel(f"% of {first.sentences:,} sentences whose decisive word is of this kind")
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    _legend(axes, last=chance)


def plot_corpus_size(axes: Axes, curve: Mapping[int, Spread], metric: str) -> None:
    """The score over the number of training sentences; bars are standard deviations over seeds.

    Args:
        axes: to draw on.
        curve: the score over seeds by size, ascending.
        metric: name of the score.
    """
    sizes, means = list(curve), [spread.mean for spread in curve.values()]
    deviations = [spread.deviation for spread in curve.values()]
    axes.errorbar(sizes, means, yerr=deviations, color=COLOURS[0], marker="o", capsize=3, linewidth=1.5)
    _logarithmic(axes, sizes)
    _label(axes, "training sentences", metric)


def plot_space(axes: Axes, found: Sequence[Space]) -> None:
    """Alignment against uniformity, one point per model; the lower left is best."""
    for number, one in enumerate(found):
        axes.scatter(one.uniformity, one.alignment, color=COLOURS[number % len(COLOURS)], s=45, label=one.model)
    # From the best value to that of equal vectors, so that plots of different models are comparable.
    axes.set_xlim(-4.1, 0.1)
    axes.set_ylim(0, 1.25 * max(one.alignment for one in found) or 1)
    _label(axes, "uniformity (less is better)", "alignment (less is better)")
    _legend(axes)


def _label(axes: Axes, across: str, up: str) -> None:
    axes.set(xlabel=across, ylabel=up)
    axes.grid(color=GRID, linewidth=0.6)


def _legend(axes: Axes, last: Any = None) -> None:
    """Place the legend above the plot, where it hides no data."""
    handles, _ = axes.get_legend_handles_labels()
    handles.sort(key=lambda handle: handle is last)
    axes.legend(handles=handles, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)


def _logarithmic(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic axis with ticks at the sizes, as far as labels do not overlap."""
    from math import log

    axes.set_xscale("log")
    span = log(max(sizes) / min(sizes)) or 1.0
    ticks: list[int] = []
    for size in sorted(set(sizes)):
        if not ticks or log(size / ticks[-1]) > span / 8:
            ticks.append(size)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
