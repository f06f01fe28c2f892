"""`selfsent analyse`: the papers' analyses, each as a table, JSON and a plot."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_fast_options, quick
from selfsent.cli.options import add_corpus_options, add_dataclass_options, read
from selfsent.cli.outputs import check_outputs, write_outputs
from selfsent.display import counted
from selfsent.errors import SettingsError
from selfsent.settings import Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from selfsent.evaluation.datasets.declared import Rows, Store
    from selfsent.evaluation.encoders import Encoder


def add_parser(commands: Any) -> None:
    """Add the command and its analyses."""
    parser = commands.add_parser(
        "analyse",
        help="the papers' analyses: words, space, corpus-size, labels, sizes",
        description="The papers' analyses.",
    )
    kinds = parser.add_subparsers(dest="analysis", required=True, metavar="ANALYSIS")
    for name, about, models, run in (
        ("words", "which kinds of words decide a similarity", "+", _words),
        ("space", "alignment and uniformity of the vectors", "+", _space),
        ("labels", "how many labelled pairs an unsupervised model is worth", 1, _labels),
    ):
        kind = kinds.add_parser(name, help=about, description=f"{about.capitalize()}.")
        kind.add_argument("model", nargs=models, metavar="MODEL", help="as for selfsent evaluate")
        kind.add_argument("--pairs", metavar="FILE", help="a file with columns sentence1, sentence2, score")
        kind.add_argument("--task", metavar="NAME", help="the pairs of a task, such as stsb-dev, instead")
        _add_common(kind, run)
        if name == "labels":
            kind.add_argument(
                "--labelled", required=True, metavar="FILE", help="a file with columns sentence1, sentence2, score"
            )
            kind.add_argument(
                "--trainer", required=True, metavar="MODULE:FUNCTION", help="(pairs, scores) -> a model with encode"
            )
            kind.add_argument("--least", type=int, default=10, metavar="N", help="fewest pairs to try (default: 10)")
        else:
            kind.add_argument(
                "--least",
                type=float,
                default=0.8,
                metavar="X",
                help="pairs with this share of the highest score, or more, mean the same (default: 0.8)",
            )
    _add_corpus_size(kinds)
    sizes = kinds.add_parser(
        "sizes",
        help="how large the tasks of USEB are",
        description="How large the tasks of USEB are, here and published.",
    )
    sizes.add_argument("task", nargs="+", metavar="TASK", help="askubuntu, cqadupstack, twitterpara or scidocs")
    sizes.add_argument("--json", metavar="FILE", help="everything, as one object; - for standard output alone")
    sizes.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA)")
    sizes.set_defaults(run=_sizes, plot=[])


def _add_corpus_size(kinds: Any) -> None:
    about = "How the score grows with the number of training sentences."
    parser = kinds.add_parser("corpus-size", help="how much text helps", description=about)
    parser.add_argument("corpus", nargs="+", metavar="CORPUS", help="as for selfsent train")
    parser.add_argument("--output", required=True, metavar="DIR", help="where the runs go; finished ones are used")
    parser.add_argument("--method", default="tsdae", metavar="NAME", help="see selfsent methods (default: tsdae)")
    parser.add_argument("--base", metavar="ENCODER", help="as for selfsent train")
    parser.add_argument("--sizes", metavar="N,N", help="sentences (default: a 64th, 16th and 4th of them, and all)")
    parser.add_argument("--seeds", default="0", metavar="N,N", help="seeds, with a run for each (default: 0)")
    parser.add_argument("--task", metavar="NAME", help="score on a task (default: label-free, on held-out documents)")
    add_corpus_options(parser)
    unset = argparse.Namespace(**{item.name: None for item in dataclasses.fields(Settings)})
    group = parser.add_argument_group("settings of the runs (the defaults are the method's)")
    add_dataclass_options(group, Settings, unset)
    _add_common(parser, _corpus_size)


def _add_common(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], None]) -> None:
    parser.add_argument("--plot", action="append", default=[], metavar="FILE", help=".png or .svg; may be repeated")
    parser.add_argument("--json", metavar="FILE", help="everything, as one object; - for standard output alone")
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA, then the hub)")
    add_fast_options(parser)
    parser.set_defaults(run=run)


def _words(options: argparse.Namespace) -> None:
    from selfsent.evaluation.tasks.analysis import similar_pairs, word_importance
    from selfsent.report.plots import plot_words

    rows, _ = _prepare(options)
    pairs = similar_pairs(rows, options.least)
    found = {encoder.name: word_importance(encoder, *pairs) for encoder in _encoders(options)}
    first = next(iter(found.values()))
    kinds = (
        [kind, *(f"{100 * one.decisive.get(kind, 0):.1f}" for one in found.values()), f"{100 * share:.1f}"]
        for kind, share in first.present.items()
    )
    table = _table(["decisive word, %", *found, "all words"], kinds)
    _finish(options, table, {"pairs": rows.name, "words": _plain(found)}, lambda: plot_words(found))


def _space(options: argparse.Namespace) -> None:
    from selfsent.evaluation.tasks.analysis import space
    from selfsent.report.plots import plot_space

    rows, _ = _prepare(options)
    found = [space(encoder, rows, options.least) for encoder in _encoders(options)]
    cells = ([one.model, f"{one.alignment:.3f}", f"{one.uniformity:.3f}"] for one in found)
    table = _table(["model", "alignment", "uniformity"], cells)
    _finish(options, table, {"pairs": rows.name, "space": _plain(found)}, lambda: plot_space(found))


def _labels(options: argparse.Namespace) -> None:
    import numpy as np

    from selfsent.evaluation.encoders import as_encoder, load_object
    from selfsent.evaluation.tasks.analysis import labelled_worth
    from selfsent.evaluation.tasks.own import read_pairs
    from selfsent.evaluation.tasks.sts import score_pairs
    from selfsent.report.plots import plot_labels

    rows, _ = _prepare(options)
    labelled, trainer = read_pairs(options.labelled), load_object(options.trainer)
    (encoder,) = _encoders(options)
    # The file may be sorted; its first pairs must be like the others.
    order = np.random.default_rng(0).permutation(len(labelled))
    pairs = list(zip(labelled["sentence1"], labelled["sentence2"], strict=True))

    def supervised(count: int) -> float:
        chosen = order[:count]
        model = trainer([pairs[row] for row in chosen], [labelled["score"][row] for row in chosen])
        return score_pairs(rows, as_encoder(model)).score

    found = labelled_worth(supervised, lambda: score_pairs(rows, encoder).score, options.least, len(labelled))
    table = _table(["labelled pairs", rows.name], ([f"{n:,}", f"{score:.2f}"] for n, score in sorted(found.tried)))
    table.add_row(f"{encoder.name}, none", f"{found.goal:.2f}")
    worth = counted(found.pairs, "labelled pair") if found.pairs else f"more than all {len(labelled):,} labelled pairs"
    table.caption = f"{encoder.name} is worth {worth}"
    plain = {"model": encoder.name, "pairs": rows.name, "labels": _plain(found)}
    _finish(options, table, plain, lambda: plot_labels(found, rows.name, encoder.name))


def _corpus_size(options: argparse.Namespace) -> None:
    from selfsent.cli.console import doing, notice
    from selfsent.evaluation.tasks.analysis import corpus_size_curve
    from selfsent.methods import get_method
    from selfsent.report.plots import plot_corpus_size
    from selfsent.training.plan import make_plan

    _check(options)
    if hasattr(options, "seed"):
        raise SettingsError("corpus-size trains with several seeds: give --seeds instead of --seed")
    seeds = _numbers("--seeds", options.seeds, least=0)
    sizes = _numbers("--sizes", options.sizes, least=2) if options.sizes else None
    names = {item.name for item in dataclasses.fields(Settings)}
    changes = {name: value for name, value in vars(options).items() if name in names}
    if make_plan(get_method(options.method), options.base).reads_documents:
        raise SettingsError(
            f"corpus-size draws sentences one by one, and {options.method} reads what stands beside them: name another"
            " --method"
        )
    train_rows, score, metric, corpus = _training(options)
    everything = len(train_rows)
    sizes = sizes or sorted({max(2, everything // part) for part in (64, 16, 4, 1)})
    if max(sizes) > everything:
        raise SettingsError(f"--sizes asks for {max(sizes):,} texts; there are {everything:,} to train on")

    with doing() as now:

        def train_and_score(size: int, seed: int) -> float:
            import numpy as np

            from selfsent import api

            now(f"{corpus.report.counted(size)}, seed {seed}")
            rows = np.sort(np.random.default_rng(seed).choice(train_rows, size, replace=False))
            place = Path(options.output) / f"{size}-{seed}"
            # A finished run is read, one that was stopped goes on.
            api.train(
                corpus.texts(rows),
                options.method,
                options.base,
                place,
                seed=seed,
                resume=True,
                data=options.data,
                **changes,
            )
            found = score(str(place / "model"))
            notice(f"{corpus.report.counted(size)}, seed {seed}: {metric} {found:.2f}")
            return found

        points = corpus_size_curve(train_and_score, sizes, seeds)
    cells = ([f"{p.size:,}", f"{p.mean:.2f}" + (f" ± {p.deviation:.2f}" if len(seeds) > 1 else "")] for p in points)
    plain = {"method": options.method, "base": options.base, "metric": metric, "seeds": seeds, "curve": _plain(points)}
    _finish(options, _table([f"{corpus.report.unit}s", metric], cells), plain, lambda: plot_corpus_size(points, metric))


def _sizes(options: argparse.Namespace) -> None:
    from selfsent.evaluation.datasets.declared import Store
    from selfsent.evaluation.tasks.sizes import sizes

    _check(options)
    store = Store(options.data)
    found = [sizes(task, store) for task in options.task]

    def shown(figure: float | None) -> str:
        return "" if figure is None else f"{figure:,.1f}".removesuffix(".0")

    cells = (
        [one.task, name, shown(figure), shown(one.published.get(name))]
        for one in found
        for name, figure in one.here.items()
    )
    _finish(options, _table(["task", "", "here", "published"], cells), {"sizes": _plain(found)}, None)


def _training(options: argparse.Namespace) -> tuple[Any, Callable[[str], float], str, Any]:
    """Rows to train on, what scores a model, what that is called, and the corpus."""
    import numpy as np

    from selfsent.evaluation.datasets.declared import Store
    from selfsent.evaluation.encoders import as_encoder
    from selfsent.evaluation.suites import TASKS, check_request
    from selfsent.evaluation.tasks.context import SCORE_NAME, ContextTask, split_documents
    from selfsent.report.scoring import check_dev_data

    store = Store(options.data)
    by_task = options.task and options.task != SCORE_NAME
    if by_task:
        check_request(task=options.task)
        check_dev_data(options.task, store)
    corpus = read(options, options.corpus)
    bits = quick(options)
    if by_task:
        run = TASKS[options.task]
        everything = np.arange(len(corpus))
        return everything, lambda m: run(as_encoder(m, **bits), store).score, options.task, corpus
    train_rows, held = split_documents(corpus)
    task = ContextTask(corpus, held)
    return train_rows, lambda m: task.score(as_encoder(m, **bits)).score, SCORE_NAME, corpus


def _check(options: argparse.Namespace) -> None:
    from selfsent.report.plots import check_plots

    given = [getattr(options, name, None) for name in ("pairs", "labelled")]
    given += [*getattr(options, "corpus", ()), *(getattr(options, "without", None) or ())]
    check_outputs({"--json": options.json, **{f"--plot {path}": path for path in options.plot}}, given)
    check_plots(options.plot)


def _prepare(options: argparse.Namespace) -> tuple[Rows, Store]:
    """Everything that can be wrong is found out before a model is loaded."""
    from selfsent.evaluation.datasets.declared import Store
    from selfsent.evaluation.encoders import check_model
    from selfsent.evaluation.suites import load_pairs

    _check(options)
    store = Store(options.data)
    rows = load_pairs(options.task, options.pairs, store)
    for model in options.model:
        check_model(model)
    return rows, store


def _encoders(options: argparse.Namespace) -> Iterable[Encoder]:
    from selfsent.evaluation.encoders import as_encoder

    bits = quick(options)
    return (as_encoder(model, **bits) for model in options.model)


def _numbers(flag: str, text: str, least: int) -> list[int]:
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise SettingsError(
            f"{flag} is {text}; it must be whole numbers with commas between, such as 1000,10000"
        ) from None
    if numbers[0] < least:
        raise SettingsError(f"{flag} has {numbers[0]}; each must be at least {least}")
    return numbers


def _plain(found: Any) -> Any:
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        return dataclasses.asdict(found)
    if isinstance(found, dict):
        return {name: _plain(one) for name, one in found.items()}
    return [_plain(one) for one in found]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(caption_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(Text(heading), justify="right" if number else "left")
    for cells in rows:
        table.add_row(*map(Text, cells))
    return table


def _finish(options: argparse.Namespace, table: Table, plain: Any, plot: Callable[[], Figure] | None) -> None:
    """Write and show the result."""
    from selfsent.cli.console import notice, show
    from selfsent.report.plots import save

    if plot and options.plot:
        figure = plot()
        for path in options.plot:
            save(figure, path)
            notice(f"the plot is in {path}")
    if not write_outputs({options.json: lambda: json.dumps(plain, ensure_ascii=False) + "\n"}):
        show(table)
