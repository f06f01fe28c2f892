"""`selfsent augment`."""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path
from typing import Any

from selfsent.augment.registry import AUGMENTERS, parse_augmenter
from selfsent.cli.options import add_corpus_options, add_dataclass_options, add_label_options, check, read
from selfsent.display import counted
from selfsent.errors import guess

_DESCRIPTION = """Make two views of every sentence, as columns text, view1, view2, maker1 and maker2 of a parquet file.

With one maker, view1 is the sentence itself; two makers make a view each. Give --with again for further rows:

  selfsent augment sentences.txt --with synonym --output views.parquet
  selfsent augment sentences.txt --with translate:pivot=spa translate:pivot=cat --with synonym --output views.parquet
  selfsent train views.parquet --text-columns view1,view2 --method bootstrap --columns --output runs/bsl
"""

_EPILOG = "Was the command interrupted? Give it again, and it goes on where it stopped."


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "augment",
        help="make views of sentences: synonyms, guesses, translations there and back",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument("corpus", nargs="+", metavar="CORPUS", help="as for selfsent train")
    makers = ", ".join(f"{name} ({maker.about})" for name, maker in AUGMENTERS.items())
    parser.add_argument(
        "--with",
        nargs="+",
        action="append",
        required=True,
        metavar="MAKER",
        type=_spec,
        dest="makers",
        help=f"one maker or two, as NAME[:OPTION=VALUE]...: {makers}",
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="a .parquet file")
    parser.add_argument("--overwrite", action="store_true", help="throw away the file, and what an interruption left")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of everything random (default: 0)")
    add_corpus_options(parser)
    add_label_options(parser)
    known: set[str] = set()
    for name, maker in AUGMENTERS.items():
        # An option of several makers is one flag, which holds for all of them that do not say otherwise.
        names = {item.name for item in dataclasses.fields(maker)}
        if names - known:
            add_dataclass_options(parser.add_argument_group(f"options of {name}"), maker, but=known)
        known |= names
    parser.set_defaults(run=run)


def _spec(text: str) -> str:
    """A maker by name, for argparse; --with takes all that follows it, a corpus as well."""
    if text.partition(":")[0] not in AUGMENTERS:
        raise argparse.ArgumentTypeError(
            f"there is no maker {text!r}; {guess(text, AUGMENTERS)} (a CORPUS goes in front of --with)"
        )
    return text


def run(options: argparse.Namespace) -> None:
    """Make the views, then show how they differ, and some of them."""
    from selfsent.augment.make import augment, check_output, check_pairings
    from selfsent.cli.console import counting, notice, show
    from selfsent.cli.outputs import check_outputs

    names = {item.name for maker in AUGMENTERS.values() for item in dataclasses.fields(maker)}
    common = {name: value for name, value in vars(options).items() if name in names}
    pairings = [[parse_augmenter(spec, common) for spec in specs] for specs in options.makers]
    check_pairings(pairings)
    check_output(Path(options.output), options.overwrite)
    check_outputs({"--output": options.output}, [*options.corpus, *(options.without or [])])
    for maker in (maker for pairing in pairings for maker in pairing):
        maker.identity()  # finds out at once whether what it needs is there
    check(options, options.corpus)
    corpus = read(options, options.corpus)
    notice(corpus.report.summary())
    total, begun = len(corpus) * len(pairings), time.monotonic()
    try:
        with counting("making views") as count:
            views = augment(
                corpus,
                pairings,
                options.output,
                seed=options.seed,
                overwrite=options.overwrite,
                advance=lambda done: count(done, total),
                notice=notice,
            )
    except KeyboardInterrupt:
        again = "--overwrite begins anew" if options.overwrite else "the same command goes on from here"
        raise KeyboardInterrupt(f"stopped and kept; {again}") from None
    for row in views.sample():
        show("\n".join(f"{row['maker' + place]:>12}  {cut(row['view' + place])}" for place in "12") + "\n")
    for name, share in views.unchanged.items():
        show(f"{name}: {share:.1%} unchanged")
    rate = f" ({views.made / max(time.monotonic() - begun, 1e-9):,.0f} views/s)" if views.made else ""
    notice(f"{counted(views.rows, 'pair')} of views in {views.path}{rate}")


def cut(text: str) -> str:
    """The beginning of a text that is too long to read."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


_SHOWN = 300
"""Characters of a text in the sample."""
