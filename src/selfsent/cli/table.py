"""`selfsent table`."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from selfsent.cli.options import add_corpus_options, add_dataclass_options, check, read

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "table",
        help="make an untrained table of token vectors, with a vocabulary of your text",
        description="Learn a vocabulary on your text, and make a table with a random vector for each token: a base to"
        " train from, for text in any language.",
        epilog="Train it on text with documents: selfsent train CORPUS --base DIR. Or after a teacher, on any text:"
        " selfsent train CORPUS --base DIR --method distil --teacher ENCODER",
    )
    parser.add_argument("corpus", nargs="*", metavar="CORPUS", help="as for selfsent train; none with --tokenizer")
    parser.add_argument("--output", required=True, metavar="DIR", help="the table is in DIR/model")
    parser.add_argument(
        "--tokenizer", metavar="ENCODER", help="take the vocabulary of this encoder instead of learning one"
    )
    parser.add_argument("--overwrite", action="store_true", help="throw away what is in DIR")
    parser.set_defaults(run=run, parser=parser)
    add_corpus_options(parser)
    _add_settings(parser)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    from selfsent.pretraining.options import TableOptions

    add_dataclass_options(parser.add_argument_group("table"), TableOptions)


def run(options: argparse.Namespace) -> None:
    """Make the table, and say where it is."""
    if options.corpus:
        check(options, options.corpus)
    from selfsent.cli.console import notice, show
    from selfsent.pretraining.options import TableOptions
    from selfsent.pretraining.pretrain import make_table

    def corpus() -> Corpus:
        found = read(options, options.corpus)
        notice(found.report.summary())
        return found

    names = {item.name for item in dataclasses.fields(TableOptions)}
    place = make_table(
        corpus if options.corpus else None,
        options.output,
        tokenizer=options.tokenizer,
        overwrite=options.overwrite,
        **{name: value for name, value in vars(options).items() if name in names},
    )
    show(f"The table is in {place}")
