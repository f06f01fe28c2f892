"""`selfsent analyse`: the papers' analyses, each as a table, JSON and a plot."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_fast_options, quick
from selfsent.cli.options import Unset, add_corpus_options, add_dataclass_options, read
from selfsent.cli.outputs import check_outputs, write_outputs
from selfsent.display import table_of
from selfsent.errors import SettingsError
from selfsent.settings import Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

    from selfsent.evaluation.datasets.declared import Rows
    from selfsent.evaluation.encoders import Encoder


def add_parser(commands: Any) -> None:
    """Add the command and its analyses."""
    parser = commands.add_parser(
        "analyse",
        help="the papers' analyses: words, space, corpus-size",
        description="The papers' analyses.",
    )
    kinds = parser.add_subparsers(dest="analysis", required=True, metavar="ANALYSIS")
    for name, about, run in (
        ("words", "which kinds of words decide a similarity", _words),
        ("space", "alignment and uniformity of the vectors", _space),
    ):
        kind = kinds.add_parser(name, help=about, description=f"{about.capitalize()}.")
        kind.add_argument("model", nargs="+", metavar="MODEL", help="as for selfsent evaluate")
        kind.add_argument("--pairs", metavar="FILE", help="a file with columns sentence1, sentence2, score")
        kind.add_argument("--task", metavar="NAME", help="the pairs of a task, such as stsb-dev, instead")
        share = "pairs with this share of the highest score, or more, mean the same (default: 0.8)"
        kind.add_argument("--least", type=float, default=0.8, metavar="X", help=share)
        _add_common(kind, run)
    _add_corpus_size(kinds)


def _add_corpus_size(kinds: Any) -> None:
    about = "How the score grows with the number of training sentences."
    parser = kinds.add_parser("corpus-size", help="how much text helps", description=about)
    parser.add_argument("corpus", nargs="+", metavar="CORPUS", help="as for selfsent train")
    parser.add_argument("--output", required=True, metavar="DIR", help="where the runs go; finished ones are used")
    parser.add_argument("--method", default="tsdae", metavar="NAME", help="see selfsent methods (default: tsdae)")
    parser.add_argument("--base", metavar="ENCODER", help="as for selfsent train")
    for flag, least, default, about in (
        ("--sizes", 2, None, "sentences (default: a 64th, 16th and 4th of them, and all)"),
        ("--seeds", 0, [0], "seeds, with a run for each (default: 0)"),
    ):
        parser.add_argument(flag, type=partial(_numbers, flag, least), default=default, metavar="N,N", help=about)
    parser.add_argument("--task", metavar="NAME", help="score on a task (default: label-free, on held-out documents)")
    add_corpus_options(parser)
    group = parser.add_argument_group("settings of the runs (the defaults are the method's)")
    add_dataclass_options(group, Settings, Unset())
    _add_common(parser, _corpus_size)


def _add_common(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], None]) -> None:
    parser.add_argument("--plot", action="append", default=[], metavar="FILE", help=".png or .svg; may be repeated")
    parser.add_argument("--json", metavar="FILE", help="everything, as one object; - for standard output alone")
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA, then the hub)")
    add_fast_options(parser)
    parser.set_defaults(run=run)


def _words(options: argparse.Namespace) -> None:
    from selfsent.papers.analysis import similar_pairs, word_importance
    from selfsent.papers.plots import plot_words

    rows = _pairs(options)
    pairs = similar_pairs(rows, options.least)
    found = {encoder.name: word_importance(encoder, *pairs) for encoder in _encoders(options)}
    first = next(iter(found.values()))
    kinds = (
        [kind, *(f"{100 * one.decisive.get(kind, 0):.1f}" for one in found.values()), f"{100 * share:.1f}"]
        for kind, share in first.present.items()
    )
    table = table_of(["decisive word, %", *found, "all words"], kinds)
    plain = {name: dataclasses.asdict(one) for name, one in found.items()}
    _finish(options, table, {"pairs": rows.name, "words": plain}, lambda axes: plot_words(axes, found))


def _space(options: argparse.Namespace) -> None:
    from selfsent.papers.analysis import space
    from selfsent.papers.plots import plot_space

    rows = _pairs(options)
    found = [space(encoder, rows, options.least) for encoder in _encoders(options)]
    cells = ([one.model, f"{one.alignment:.3f}", f"{one.uniformity:.3f}"] for one in found)
    table = table_of(["model", "alignment", "uniformity"], cells)
    plain = {"pairs": rows.name, "space": list(map(dataclasses.asdict, found))}
    _finish(options, table, plain, lambda axes: plot_space(axes, found))


def _corpus_size(options: argparse.Namespace) -> None:
    from selfsent.cli.console import doing, notice
    from selfsent.papers.corpus_size import check_corpus_size, corpus_size
    from selfsent.papers.plots import plot_corpus_size

    _check_files(options)
    if hasattr(options, "seed"):
        raise SettingsError("corpus-size trains with several seeds: give --seeds instead of --seed")
    names = {item.name for item in dataclasses.fields(Settings)}
    given: dict[str, Any] = {name: value for name, value in vars(options).items() if name in names}
    check_corpus_size(options.method, options.base, options.task, options.data)
    corpus, place = read(options, options.corpus), Path(options.output)
    given |= {name: getattr(options, name) for name in ("sizes", "seeds", "task", "data")}
    given |= {"ends": notice, "bits": quick(options)}
    with doing() as now:
        metric, curve = corpus_size(corpus, options.method, options.base, place, begins=now, **given)
    cells = ([f"{size:,}", str(spread)] for size, spread in curve.items())
    points = [{"size": size, "mean": one.mean, "deviation": one.deviation} for size, one in curve.items()]
    plain = {"method": options.method, "base": options.base, "metric": metric, "seeds": options.seeds, "curve": points}
    table = table_of([f"{corpus.report.unit}s", metric], cells)
    _finish(options, table, plain, lambda axes: plot_corpus_size(axes, curve, metric))


def _numbers(flag: str, least: int, text: str) -> list[int]:
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise SettingsError(
            f"{flag} is {text}; it must be whole numbers with commas between, such as 1000,10000"
        ) from None
    if numbers[0] < least:
        raise SettingsError(f"{flag} has {numbers[0]}; each must be at least {least}")
    return numbers


def _check_files(options: argparse.Namespace) -> None:
    """Refuse, before any work, a file that cannot be written or that is read."""
    from selfsent.papers.plots import check_plots

    given = [getattr(options, "pairs", None)]
    given += [*getattr(options, "corpus", ()), *(getattr(options, "without", None) or ())]
    check_outputs({"--json": options.json, **{f"--plot {path}": path for path in options.plot}}, given)
    check_plots(options.plot)


def _pairs(options: argparse.Namespace) -> Rows:
    """The scored pairs; everything that can be wrong is found out before a model is loaded."""
    from selfsent.evaluation.datasets.declared import Store
    from selfsent.evaluation.encoders import check_model
    from selfsent.evaluation.suites import load_pairs

    _check_files(options)
    rows = load_pairs(options.task, options.pairs, Store(options.data))
    for model in options.model:
        check_model(model)
    return rows


def _encoders(options: argparse.Namespace) -> Iterable[Encoder]:
    from selfsent.evaluation.encoders import as_encoder

    bits = quick(options)
    return (as_encoder(model, **bits) for model in options.model)


def _finish(options: argparse.Namespace, table: Table, plain: Any, plot: Callable[[Axes], None] | None = None) -> None:
    """Draw the plots that were asked for, and write the result as JSON, or show it as a table."""
    from selfsent.cli.console import notice, show
    from selfsent.papers.plots import draw

    if plot and options.plot:
        draw(plot, options.plot)
        for path in options.plot:
            notice(f"the plot is in {path}")
    if not write_outputs({options.json: lambda: json.dumps(plain, ensure_ascii=False) + "\n"}):
        show(table)
