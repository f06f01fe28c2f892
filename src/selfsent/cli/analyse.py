"""`selfsent analyse`: the papers' analyses, each as a table, JSON and a plot."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from selfsent.cli.analysis_parts import add_common, check_files, finish, plain_of, table_of
from selfsent.cli.corpus_size import add_corpus_size
from selfsent.cli.encoding import quick
from selfsent.display import counted

if TYPE_CHECKING:
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
        add_common(kind, run)
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
    add_corpus_size(kinds)
    sizes = kinds.add_parser(
        "sizes",
        help="how large the tasks of USEB are",
        description="How large the tasks of USEB are, here and published.",
    )
    sizes.add_argument("task", nargs="+", metavar="TASK", help="askubuntu, cqadupstack, twitterpara or scidocs")
    sizes.add_argument("--json", metavar="FILE", help="everything, as one object; - for standard output alone")
    sizes.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA)")
    sizes.set_defaults(run=_sizes, plot=[])


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
    table = table_of(["decisive word, %", *found, "all words"], kinds)
    finish(options, table, {"pairs": rows.name, "words": plain_of(found)}, lambda: plot_words(found))


def _space(options: argparse.Namespace) -> None:
    from selfsent.evaluation.tasks.analysis import space
    from selfsent.report.plots import plot_space

    rows, _ = _prepare(options)
    found = [space(encoder, rows, options.least) for encoder in _encoders(options)]
    cells = ([one.model, f"{one.alignment:.3f}", f"{one.uniformity:.3f}"] for one in found)
    table = table_of(["model", "alignment", "uniformity"], cells)
    finish(options, table, {"pairs": rows.name, "space": plain_of(found)}, lambda: plot_space(found))


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
    table = table_of(["labelled pairs", rows.name], ([f"{n:,}", f"{score:.2f}"] for n, score in sorted(found.tried)))
    table.add_row(f"{encoder.name}, none", f"{found.goal:.2f}")
    worth = counted(found.pairs, "labelled pair") if found.pairs else f"more than all {len(labelled):,} labelled pairs"
    table.caption = f"{encoder.name} is worth {worth}"
    plain = {"model": encoder.name, "pairs": rows.name, "labels": plain_of(found)}
    finish(options, table, plain, lambda: plot_labels(found, rows.name, encoder.name))


def _sizes(options: argparse.Namespace) -> None:
    from selfsent.evaluation.datasets.declared import Store
    from selfsent.evaluation.tasks.sizes import sizes

    check_files(options)
    store = Store(options.data)
    found = [sizes(task, store) for task in options.task]

    def shown(figure: float | None) -> str:
        return "" if figure is None else f"{figure:,.1f}".removesuffix(".0")

    cells = (
        [one.task, name, shown(figure), shown(one.published.get(name))]
        for one in found
        for name, figure in one.here.items()
    )
    finish(options, table_of(["task", "", "here", "published"], cells), {"sizes": plain_of(found)}, None)


def _prepare(options: argparse.Namespace) -> tuple[Rows, Store]:
    """Everything that can be wrong is found out before a model is loaded."""
    from selfsent.evaluation.datasets.declared import Store
    from selfsent.evaluation.encoders import check_model
    from selfsent.evaluation.suites import load_pairs

    check_files(options)
    store = Store(options.data)
    rows = load_pairs(options.task, options.pairs, store)
    for model in options.model:
        check_model(model)
    return rows, store


def _encoders(options: argparse.Namespace) -> Iterable[Encoder]:
    from selfsent.evaluation.encoders import as_encoder

    bits = quick(options)
    return (as_encoder(model, **bits) for model in options.model)
