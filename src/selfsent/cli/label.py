"""`selfsent label`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.options import add_corpus_options, check, read
from selfsent.errors import SettingsError
from selfsent.naming import names

if TYPE_CHECKING:
    from selfsent.comparison.label import Judgements

_HELP = "0 to 5 (5: they mean the same), or y or n; u takes the last answer back, s skips, q goes: then Enter"


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "label",
        help="judge pairs of your own sentences, for compare --dev FILE and evaluate --pairs FILE",
        description="Draw the pairs of sentences that are most worth judging, and ask about them one by one. They are"
        " spread over all similarities, first those that the models see differently. Every answer is written at once:"
        " stop with q, and start the same command again to go on.",
    )
    parser.add_argument("corpus", nargs="+", metavar="CORPUS", help="sentences, as selfsent train takes them")
    parser.add_argument(
        "--models",
        type=names,
        default=("bundled", "tfidf"),
        metavar="MODEL[,MODEL]",
        help="models that are to be told apart, as selfsent evaluate takes them (default: bundled,tfidf)",
    )
    parser.add_argument("--output", default="pairs.tsv", metavar="FILE", help="tab-separated (default: pairs.tsv)")
    parser.add_argument("--count", type=int, default=100, metavar="N", help="pairs in all (default: 100)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="draw other pairs (default: 0)")
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Draw, ask and write."""
    if options.count < 2:
        raise SettingsError(f"--count is {options.count}; it must be at least 2")
    if not sys.stdin.isatty():
        raise SettingsError(
            "label asks you about pairs of sentences, and standard input is no terminal: run it in one, or write a file"
            " of text, text, score, separated by tabs, yourself"
        )
    check(options, options.corpus)
    from selfsent.cli.console import notice
    from selfsent.comparison.label import Judgements, draw_pairs, spread_sentences
    from selfsent.evaluation.encoders import as_encoder, check_model

    for model in options.models:
        check_model(model)
    corpus = read(options, options.corpus)
    sentences = spread_sentences(corpus, options.seed)
    Judgements(Path(options.output), [])  # what is wrong with it shows before models are loaded
    encoders = [as_encoder(model) for model in options.models]
    drawn = draw_pairs(sentences, encoders, 2 * options.count, options.seed)  # some may be skipped
    judgements = Judgements(Path(options.output), [(sentences[a], sentences[b]) for a, b in drawn])
    notice(_HELP)
    _ask(judgements, options.count)
    count = len(judgements.answers)
    notice(f"{count} pair{'s' * (count != 1)} in {options.output}")
    if len(set(judgements.answers.values())) > 1:
        notice(f"choose by them: selfsent compare ... --dev {options.output}")


def _ask(judgements: Judgements, count: int) -> None:
    from selfsent.cli.console import shortened, show
    from selfsent.comparison.label import KEYS

    while pair := judgements.next:
        if len(judgements.answers) >= count:
            return
        show(f"\n{len(judgements.answers) + 1} of {count}")
        for text in pair:
            show(f"  {shortened(text)}")
        try:
            key = input("> ").strip().lower()
        except EOFError:
            return
        if key == "q":
            return
        if key == "s":
            judgements.skip()
        elif key == "u":
            show("  taken back" if judgements.undo() else "  there is nothing to take back")
        elif key in KEYS:
            judgements.answer(key)
        else:
            show(f"  {_HELP}")
