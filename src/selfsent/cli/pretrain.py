"""`selfsent pretrain`."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from selfsent.cli.options import add_corpus_options, add_dataclass_options, add_hold_out, check, read
from selfsent.cli.recipe import resumable

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "pretrain",
        help="train a vocabulary and a small encoder from scratch",
        description="Train a vocabulary and a BERT-shaped encoder from scratch, with masked language modelling.",
        epilog="The encoder is in DIR/model: selfsent train CORPUS --base DIR.",
    )
    parser.add_argument(
        "corpus", nargs="+", metavar="CORPUS", help="files, directories, globs or a hub data set, as for selfsent train"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="the run directory; the model is in DIR/model")
    parser.add_argument(
        "--tokenizer", metavar="ENCODER", help="use the tokenizer of this encoder instead of training one"
    )
    parser.set_defaults(run=run, parser=parser)
    add_corpus_options(parser)
    _add_settings(parser)
    run_config = parser.add_argument_group("run")
    run_config.add_argument("--resume", action="store_true", help="go on with the run in DIR")
    run_config.add_argument("--overwrite", action="store_true", help="throw away the run in DIR")
    run_config.add_argument("--keep", type=int, default=2, metavar="N", help="checkpoints kept (default: 2)")
    add_hold_out(run_config)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    from selfsent.pretraining.options import DEFAULTS, Options
    from selfsent.settings import Settings

    add_dataclass_options(parser.add_argument_group("encoder"), Options)
    group = parser.add_argument_group("settings (one pass over the text if nothing says how long)")
    add_dataclass_options(group, Settings, DEFAULTS)


def run(options: argparse.Namespace) -> None:
    """Pretrain, then say where the encoder is."""
    check(options, options.corpus)
    from selfsent.cli.console import notice, show
    from selfsent.pretraining.options import Options
    from selfsent.pretraining.pretrain import pretrain
    from selfsent.settings import Settings

    def corpus() -> Corpus:
        found = read(options, options.corpus)
        notice(found.report.summary())
        return found

    names = {item.name for kind in (Options, Settings) for item in dataclasses.fields(kind)}
    with resumable(options.arguments, options.output):
        result = pretrain(
            corpus,
            options.output,
            tokenizer=options.tokenizer,
            resume=options.resume,
            overwrite=options.overwrite,
            keep=options.keep,
            hold_out=options.hold_out,
            **{name: value for name, value in vars(options).items() if name in names},
        )
    show(f"The same as a page, with curves: {result.directory / 'report.html'}")
    show(f"The model is in {result.directory / 'model'}")
