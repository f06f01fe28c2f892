"""`selfsent pairs`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_result_options, again, labelled, load, read_with_vectors, text_of
from selfsent.cli.index import add_index_options, open_index, shown_columns, take_words, what_was_searched
from selfsent.cli.options import add_corpus_options
from selfsent.cli.outputs import write_outputs
from selfsent.display import counted

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.evaluation.vectors import VectorsFile
    from selfsent.models.encoder import Encoder
    from selfsent.search import Pair
    from selfsent.search.index import Index


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "pairs",
        help="find the most similar pairs of texts in a corpus",
        description="Find the pairs of different texts with the largest cosines. All pairs are compared, unless"
        " --approximate or --index is given.",
        usage="selfsent pairs MODEL CORPUS [options]\n       selfsent pairs --index DIR [options]",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="MODEL CORPUS",
        help="a directory, a hub id, or bundled; and a corpus, as for selfsent train",
    )
    parser.gathers = "words"
    parser.add_argument("--top", type=int, default=100, metavar="N", help="pairs at most (default: 100)")
    parser.add_argument("--threshold", type=float, default=-1.0, metavar="X", help="smallest cosine that counts")
    parser.add_argument(
        "--approximate",
        action="store_true",
        help="for millions of texts: compare only where neighbours are likely, and say what share of the pairs that"
        " finds (needs the extra `index`)",
    )
    add_result_options(parser, "the pairs")
    add_index_options(parser, loads=False)
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Find the pairs, and print cosine and sentences, best first."""
    from selfsent.cli.console import notice, show
    from selfsent.errors import SettingsError
    from selfsent.search.tables import pair_columns, with_texts, write_table

    if options.top < 1:
        raise SettingsError(f"--top is {options.top}; it must be at least 1")
    if not -1 <= options.threshold <= 1:
        raise SettingsError(f"--threshold is {options.threshold}; a cosine lies between -1 and 1")
    take_words(options)
    place: Corpus | Index
    if options.index is not None:
        place = open_index(options)
        pairs, recall = _in_index(place, options)
    else:
        place, stored = read_with_vectors(options)
        pairs, recall = _find(load(options, place), place, stored, options)
    rows = list(with_texts(pairs, place))
    if options.output:
        write_table(rows, pair_columns(place), Path(options.output), options.safe_csv)
        notice(f"{counted(len(pairs), 'pair')} in {options.output}")
    about: dict[str, Any] = {**what_was_searched(options), "pairs": rows}
    about |= {"recall": recall} if options.approximate or options.index is not None else {}
    written = write_outputs({options.json: lambda: json.dumps(about, ensure_ascii=False) + "\n"})
    names = shown_columns(options, place)
    for row in rows if not (written or options.output) else ():
        one, other = (labelled(row, names, side) + text_of(row, side) for side in "12")
        show(f"{row['cosine']:.3f}  {one}{again(row['repeats1'])}\n       {other}{again(row['repeats2'])}")
    if not pairs:
        notice(f"no pair has a cosine of {options.threshold} or more")


def _find(
    model: Encoder, corpus: Corpus, stored: VectorsFile | None, options: argparse.Namespace
) -> tuple[list[Pair], float | None]:
    """The pairs, and what share of them an index finds, which is not known of the exact answer."""
    from selfsent.cli.console import counting
    from selfsent.search import encode_corpus
    from selfsent.search.approximate import approximately_most_similar_pairs
    from selfsent.search.cells import require_index
    from selfsent.search.pairs import blocks, most_similar_pairs

    if options.approximate:
        require_index()
    with counting("reading vectors" if stored else "encoding") as done:
        vectors = encode_corpus(model, corpus, lambda count: done(count, len(corpus.origins)), stored)
    with counting("comparing") as compared:
        if not options.approximate:
            total = blocks(len(vectors))
            return most_similar_pairs(vectors, options.top, options.threshold, lambda n: compared(n, total)), None
        pairs, recall = approximately_most_similar_pairs(
            vectors, options.top, options.threshold, advance=lambda n: compared(n, len(vectors))
        )
    _tell(recall)
    return pairs, recall


def _in_index(index: Index, options: argparse.Namespace) -> tuple[list[Pair], float | None]:
    """The pairs of an index, and what share of them it finds."""
    from selfsent.cli.console import counting
    from selfsent.search.approximate import pairs_in_cells

    with counting("comparing") as compared:
        pairs, recall = pairs_in_cells(
            index.cells, options.top, options.threshold, advance=lambda n: compared(n, len(index))
        )
    _tell(recall)
    return pairs, recall


def _tell(recall: float | None) -> None:
    from selfsent.cli.console import notice

    found = "unknown: no such pair has a text of the sample" if recall is None else f"{recall:.1%}"
    notice(f"share of the most similar pairs that the index finds, measured on a sample: {found}")
