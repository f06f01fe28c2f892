"""`selfsent train`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from selfsent.cli.options import add_corpus_options, add_dataclass_options, read, refuse
from selfsent.settings import Settings

_SETTINGS_SEEN = "batch_size learning_rate steps epochs budget max_length seed".split()


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "train",
        help="train an encoder on unlabelled sentences",
        description="Train an encoder on unlabelled sentences; score it before and after where the corpus has documents.",
        epilog="The options of a method: selfsent methods NAME.",
    )
    parser.add_argument(
        "corpus",
        nargs="+",
        metavar="CORPUS",
        help="files (.txt .csv .tsv .jsonl .parquet, also .gz .zst), directories, globs, - for standard input,"
        " a hub data set, or python:stdlib",
    )
    parser.add_argument("--method", default="tsdae", metavar="NAME", help="see selfsent methods (default: tsdae)")
    parser.add_argument("--base", default="bundled", metavar="ENCODER", help="bundled, a directory or a hub id (default: bundled)")
    parser.add_argument("--output", required=True, metavar="DIR", help="the run directory; the model is in DIR/model")
    parser.add_argument("--settings", default=None, metavar="PRESET", dest="preset", help="published: exactly the paper's settings")
    parser.add_argument("--pooling", choices=("cls", "mean", "max", "lasttoken"), help="instead of the method's own")
    parser.add_argument("--dropout", type=float, metavar="X", help="dropout rate of the encoder, instead of its own")
    add_corpus_options(parser)
    add_dataclass_options(parser.add_argument_group("settings (the defaults are the method's)"), Settings, _Unset())
    habits = parser.add_argument_group("run")
    habits.add_argument("--resume", action="store_true", help="go on with the run in DIR")
    habits.add_argument("--overwrite", action="store_true", help="throw away the run in DIR")
    habits.add_argument("--checkpoint-every", type=int, metavar="N", help="steps between checkpoints (default: a tenth of the run)")
    habits.add_argument("--keep", type=int, default=2, metavar="N", help="checkpoints kept (default: 2)")
    habits.add_argument("--dev", metavar="TASK", help="score along the way: context, or a task such as stsb-dev")
    habits.add_argument("--dev-every", type=int, metavar="N", help="steps between these scores (default: a tenth of the run)")
    habits.add_argument("--keep-best", action="store_true", help="keep the model with the best --dev score instead of the last")
    habits.add_argument("--data", metavar="DIR", help="mirror of the evaluation data sets (default: SELFSENT_DATA)")
    parser.set_defaults(run=run, parser=parser)


class _Unset:
    """Stands for defaults that depend on the method."""

    def __getattr__(self, name: str) -> None:
        return None


def run(options: argparse.Namespace, extra: list[str], parser: argparse.ArgumentParser) -> None:
    """Train, then print the scores before and after."""
    from selfsent.methods import get_method

    method = get_method(options.method)
    own = options.parser.__class__(prog=f"selfsent train --method {method.name}", add_help=False)
    add_dataclass_options(own, method.options)
    given, rest = own.parse_known_args(extra)
    refuse(options.parser, rest)
    changes = {name: value for name, value in vars(options).items() if name in Settings.__dataclass_fields__}
    changes |= vars(given)
    _train(options, changes)


def _train(options: argparse.Namespace, changes: dict[str, Any]) -> None:
    from selfsent import api
    from selfsent.cli.console import counting, notice, show, training_bar
    from selfsent.report.terminal import neighbours_text, scores_table
    from selfsent.training.loop import Interrupted

    plan = api.make_plan(
        api.get_method(options.method), options.base, options.preset, options.pooling, options.dropout, **changes
    )
    corpus = read(options, options.corpus)
    notice(corpus.report.summary())
    chosen = {name: value for name, value in vars(plan.settings).items() if name in _SETTINGS_SEEN and value is not None}
    notice(f"{plan.method.name} from {options.base}: " + ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in chosen.items()))
    try:
        with counting("tokenising", len(corpus)) as tokenising, training_bar() as watch:
            result = api.train(
                corpus,
                options.method,
                options.base,
                options.output,
                preset=options.preset,
                pooling=options.pooling,
                dropout=options.dropout,
                resume=options.resume,
                overwrite=options.overwrite,
                checkpoint_every=options.checkpoint_every,
                keep=options.keep,
                dev=options.dev,
                dev_every=options.dev_every,
                keep_best=options.keep_best,
                data=options.data,
                notice=notice,
                watch=watch,
                tokenising=tokenising,
                **changes,
            )
    except Interrupted:
        command = " ".join(argument for argument in sys.argv[1:] if argument != "--overwrite")
        raise KeyboardInterrupt(f"stopped and saved; go on with: selfsent {command} --resume") from None
    if result.scores:
        show(scores_table(result.scores))
        show(neighbours_text(result.neighbours))
    show(f"The model is in {result.directory / 'model'}")
