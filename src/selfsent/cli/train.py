"""`selfsent train`."""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.augment.registry import parse_makers
from selfsent.cli.options import (
    Unset,
    add_corpus_options,
    add_dataclass_options,
    add_hold_out,
    add_label_options,
    add_method_options,
    add_model_options,
    check,
    read,
)
from selfsent.cli.recipe import is_recipe, resumable, run_recipe, show_seeds
from selfsent.naming import names
from selfsent.settings import Settings

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.recipes import Seeds
    from selfsent.report.run import Run


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "train",
        help="train an encoder on sentences, or on pairs and triples with labels or without",
        description="Train an encoder on unlabelled sentences, or on pairs and triples of texts with labels or without;"
        " score it before and after if the corpus has documents or pairs.",
        epilog="selfsent methods NAME lists the options of a method. With a recipe give only --output, --variant,"
        " --base, --data, --seed, --seeds, --resume and --overwrite; everything else stands in the recipe.",
    )
    parser.add_argument(
        "corpus",
        nargs="+",
        metavar="CORPUS",
        help="files (.txt .csv .tsv .jsonl .parquet, also .gz .zst .bz2), directories, globs, addresses (s3://...), -"
        " for standard input, a hub data set, or python:stdlib; or a recipe: FILE.yaml or a name of selfsent recipes",
    )
    parser.add_argument(
        "--method",
        metavar="NAME",
        help="a name from selfsent methods (default: chosen by the corpus; neighbours if it has documents)",
    )
    parser.add_argument(
        "--base",
        metavar="ENCODER",
        help="bundled, bundled-encoder, bundled-raw or bundled-raw-static, which ship with selfsent; gru, lstm or"
        " bilstm for a new, untrained network; bert:4x256 or albert:4x256 for a new transformer of 4 layers of 256;"
        " random-table for a table of random vectors; a directory or a hub id"
        " (default: the best that ships with selfsent and that the method can train)",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="the run directory; the model is in DIR/model")
    add_model_options(parser)
    parser.add_argument(
        "--views", metavar="MAKER[,MAKER]", help="make the two views first, as selfsent augment does: synonym, mlm ..."
    )
    add_corpus_options(parser, for_documents=True, for_training=True)
    add_label_options(parser)
    add_dataclass_options(parser.add_argument_group("settings (the defaults are the method's)"), Settings, Unset())
    _add_run_options(parser)
    parser.set_defaults(run=run)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    beside = parser.add_argument_group("run")
    beside.add_argument("--resume", action="store_true", help="go on with the run in DIR")
    beside.add_argument("--overwrite", action="store_true", help="throw away the run in DIR")
    beside.add_argument(
        "--checkpoint-every",
        type=int,
        metavar="N",
        help="steps between checkpoints (default: a tenth of the run, at least half a minute)",
    )
    beside.add_argument("--keep", type=int, default=2, metavar="N", help="checkpoints kept (default: 2)")
    beside.add_argument("--dev", metavar="TASK", help="score along the way: context, or a task such as stsb-dev")
    beside.add_argument(
        "--dev-every", type=int, metavar="N", help="steps between these scores (default: a tenth of the run)"
    )
    beside.add_argument(
        "--keep-best", action="store_true", help="keep the model with the best --dev score instead of the last"
    )
    beside.add_argument(
        "--track",
        type=names,
        default=(),
        metavar="NAME[,NAME]",
        help="also log to tensorboard (in DIR/trackers), wandb, mlflow ...",
    )
    beside.add_argument(
        "--map",
        dest="map_points",
        type=int,
        default=1000,
        metavar="N",
        help="sentences on the map of the run's page, 0 for no map (default: 1000)",
    )
    beside.add_argument("--sentences", type=int, metavar="N", help="train on N rows at most, drawn at random")
    add_hold_out(beside)
    beside.add_argument("--variant", metavar="NAME", help="which variant of a recipe (default: its first)")
    beside.add_argument("--seeds", type=int, metavar="N", help="run with N seeds, and summarise")
    beside.add_argument("--data", metavar="DIR", help="mirror of the evaluation data sets (default: SELFSENT_DATA)")


def run(options: argparse.Namespace) -> None:
    """Train, then print the scores before and after."""
    if is_recipe(options.corpus):
        run_recipe(options)
        return
    if not options.unknown:  # the value of an option not known yet would pass for a corpus
        check(options, options.corpus)
    if options.views:
        parse_makers(options.views)
    from selfsent.api import reads_documents
    from selfsent.cli.console import show
    from selfsent.methods import get_method, whose_option
    from selfsent.report.scores import neighbours_text, scores_table
    from selfsent.training.default import USUAL

    method = get_method(options.method or USUAL)
    # The options of the method are known only now: everything is parsed again with them.
    known = add_method_options(options.parser, method, options.head)
    arguments, started = options.arguments, options.started
    parser = options.parser
    parser.see = f"{parser.prog} --help, selfsent methods {method.name}"
    options, unknown = parser.parse_known_args(arguments[1:])
    parser.refuse(unknown, whose_option)
    options.started = started
    changes = {name: value for name, value in vars(options).items() if name in known}
    if options.split_sentences is None and not reads_documents(
        options.method, options.base, **_what(options), **changes
    ):
        options.split_sentences = False
    with resumable(arguments, options.output):
        if options.seeds is not None:
            show_seeds(_over_seeds(options, changes))
            return
        result = _train(options, changes)
    for scores in filter(None, (result.search, result.scores)):
        show(scores_table(scores))
    if result.scores or result.search:
        show(neighbours_text(result.neighbours))
        show(f"The same as a page, with curves: {result.directory / 'report.html'}")
    show(f"The model is in {result.directory / 'model'}")


def _over_seeds(options: argparse.Namespace, changes: dict[str, Any]) -> Seeds:
    from selfsent.api import check_train
    from selfsent.models.bases import resolve
    from selfsent.recipes import over_seeds

    @cache
    def corpus() -> Corpus:
        return _read(options)

    def check_all() -> dict[str, Any]:
        return check_train(corpus(), options.method, options.base, **_what(options), **changes)

    def train_one(seed: int, output: Path, resume: bool) -> dict[str, float]:
        own = argparse.Namespace(**{**vars(options), "output": output, "resume": resume, "overwrite": False})
        return _train(own, {**changes, "seed": seed}, corpus()).figures

    return over_seeds(
        options.seeds,
        options.output,
        train_one,
        first=changes.get("seed", 0),
        resume=options.resume,
        overwrite=options.overwrite,
        check=check_all,
        read=[] if options.base is None else [resolve(options.base)],
    )


def _read(options: argparse.Namespace) -> Corpus:
    from selfsent.cli.console import notice

    found = read(options, options.corpus)
    notice(found.report.summary())
    return found


def _what(options: argparse.Namespace) -> dict[str, Any]:
    """What is to be trained, and scored along the way."""
    names = "preset pooling dropout whiten head views sentences hold_out dev dev_every keep_best"
    return {name: getattr(options, name) for name in names.split()}


def _train(options: argparse.Namespace, changes: dict[str, Any], corpus: Corpus | None = None) -> Run:
    from selfsent import api
    from selfsent.training.budget import Clock

    return api.train(
        corpus or (lambda: _read(options)),
        options.method,
        options.base,
        options.output,
        **_what(options),
        resume=options.resume,
        overwrite=options.overwrite,
        checkpoint_every=options.checkpoint_every,
        keep=options.keep,
        trackers=options.track,
        map_points=options.map_points,
        data=options.data,
        clock=None if corpus else Clock(options.started),  # of several runs only the first would begin with the command
        **changes,
    )
