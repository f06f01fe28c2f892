"""`selfsent compare`."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from selfsent.cli.recipe import resumable
from selfsent.errors import SettingsError
from selfsent.models.heads.options import POOLINGS
from selfsent.naming import names
from selfsent.settings import Settings

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "compare",
        help="train with several methods for the same time, and choose the best encoder without labels",
        description="Train with several methods on the same sentences for the same time, from one base or several. The"
        " best encoder is chosen on documents that none was trained on, and scored on others that nothing was chosen"
        " by. TF-IDF and BM25 are scored beside all of them.",
        epilog="A method may have settings and options of its own, as selfsent train takes them:"
        ' --methods "neighbours, ct, simcse --pick-words 16 --no-mlp"',
    )
    parser.add_argument(
        "corpus", nargs="+", metavar="CORPUS", help="sentences with documents, as selfsent train takes them"
    )
    parser.add_argument(
        "--methods",
        metavar="NAME[,NAME]",
        help="methods with commas between (default: all that need no labels; with --resume, those in DIR)",
    )
    parser.add_argument(
        "--bases",
        "--base",
        type=names,
        default=("bundled",),
        metavar="ENCODER[,ENCODER]",
        help="one base or several, as for selfsent train; among several may be module:factory or glove:FILE, which are"
        " scored as they are (default: bundled)",
    )
    parser.add_argument(
        "--output",
        default="comparison",
        metavar="DIR",
        help="runs in DIR/methods, the best in DIR/model (default: comparison)",
    )
    parser.add_argument(
        "--dev",
        metavar="TASK",
        help="what to choose by: context, judges (the geometric mean of several label-free scores), a task such as"
        " stsb-dev, or a file of pairs from selfsent label (default: context, or judges without documents)",
    )
    parser.add_argument("--sentences", type=int, metavar="N", help="train on N rows at most, drawn at random")
    add_hold_out(parser)
    parser.add_argument("--data", metavar="DIR", help="mirror of the evaluation data sets (default: SELFSENT_DATA)")
    parser.add_argument(
        "--resume", action="store_true", help="go on in DIR, with its methods and seeds and those you add"
    )
    parser.add_argument("--overwrite", action="store_true", help="throw away what is in DIR")
    parser.add_argument("--seeds", type=int, metavar="N", help="train each method with N seeds (default: 1)")
    add_corpus_options(parser, for_documents=True)
    add_label_options(parser)
    settings = parser.add_argument_group("settings of each method; each has the whole --budget (default: 2m)")
    settings.add_argument("--pooling", choices=POOLINGS, help="instead of the base's, or each method's")
    settings.add_argument("--dropout", type=float, metavar="X", help="dropout rate of the encoder, instead of its own")
    add_dataclass_options(settings, Settings, Unset())
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Train and choose, then print what was chosen by, and the scores of the chosen one."""
    check(options, options.corpus)
    methods = None if options.methods is None else _methods(options.methods)
    from rich.text import Text

    from selfsent import comparison as selection
    from selfsent.cli.console import notice, show

    def corpus() -> Corpus:
        found = read(options, options.corpus)
        notice(found.report.summary())
        return found

    shared = {"pooling", "dropout", *(item.name for item in dataclasses.fields(Settings))}
    common = {name: value for name, value in vars(options).items() if name in shared and value is not None}
    with resumable(options.arguments, options.output):
        found = selection.compare(
            corpus,
            methods,
            options.bases,
            options.output,
            dev=options.dev,
            sentences=options.sentences,
            hold_out=options.hold_out,
            seeds=options.seeds,
            resume=options.resume,
            overwrite=options.overwrite,
            data=options.data,
            **common,
        )
    show(found.table())
    if tests := found.test_table():
        show("")
        show(tests)
    for line in found.remarks:
        show(line)
    headline, advice = found.conclusion
    show("")
    show(Text(headline, style="bold"))
    show(advice)
    if found.chosen:
        show(f"The model is in {Path(options.output) / 'model'}")
    show(f"The same as a page, with neighbours and losses: {Path(options.output) / selection.PAGE}")


def _methods(text: str) -> dict[str, dict[str, Any]]:
    """Methods between commas, each with options of its own, by what was written.

    Raises:
        SettingsError: there is no such method, or one stands there twice.
    """
    found: dict[str, dict[str, Any]] = {}
    for part in text.split(","):
        try:
            words = shlex.split(part)
        except ValueError as error:
            raise SettingsError(f"--methods {part.strip()!r}: {error}") from None
        if not words:
            raise SettingsError(f"--methods {text!r} has a comma with nothing beside it")
        name = " ".join(words)
        if name in found:
            raise SettingsError(f"--methods names {name!r} twice")
        found[name] = _method(words)
    return found


def _method(words: list[str]) -> dict[str, Any]:
    from selfsent.cli.main import Parser
    from selfsent.methods import get_method, whose_option

    method = get_method(words[0])
    parser = Parser(
        prog=f"selfsent compare --methods {method.name}", add_help=False, argument_default=argparse.SUPPRESS
    )
    parser.see = f"selfsent methods {method.name}"
    add_model_options(parser)
    add_dataclass_options(parser, Settings, Unset())
    known, _ = parser.parse_known_args(words[1:])
    add_method_options(parser, method, getattr(known, "head", None))
    given = parser.parse_known_args(words[1:])
    parser.refuse(given[1], whose_option)
    return {"method": method.name, **vars(given[0])}
