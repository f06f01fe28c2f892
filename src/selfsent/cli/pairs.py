"""`selfsent pairs`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_result_options, again, labelled, load, read_with_vectors, text_of
from selfsent.cli.index import add_index_options, open_index, shown_columns, take_words, what_was_searched
from selfsent.cli.options import add_corpus_options, add_language_option
from selfsent.cli.outputs import write_outputs
from selfsent.display import counted

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.data.vector_files import VectorsFile
    from selfsent.models.encoder import Encoder
    from selfsent.search import Pair
    from selfsent.search.index import Index


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "pairs",
        help="find the most similar pairs of texts in a corpus",
        description="Find the pairs of different texts that are most alike: by the cosine of their vectors and by the"
        " words that they share. All pairs are compared, unless --approximate or --index is given.",
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
    parser.add_argument(
        "--threshold", type=float, default=-1.0, metavar="X", help="smallest score that counts, as it is shown"
    )
    parser.add_argument(
        "--word-weight",
        type=float,
        metavar="W",
        help="a pair's score is (cosine + W x words) / (1 + W), where words is how many words both texts share, by"
        " TF-IDF; 0: the cosine alone (default: 0.5)",
    )
    add_language_option(parser)
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
    """Find the pairs, and print score and sentences, best first."""
    from selfsent.cli.console import notice, show
    from selfsent.errors import SettingsError
    from selfsent.lexical import Analyzer
    from selfsent.lexical.weight import PAIR_WEIGHT, check_weight
    from selfsent.search.pairs import by_words
    from selfsent.search.tables import pair_columns, with_texts, write_table

    if options.top < 1:
        raise SettingsError(f"--top is {options.top}; it must be at least 1")
    if not -1 <= options.threshold <= 1:
        raise SettingsError(f"--threshold is {options.threshold}; a score lies between -1 and 1")
    weight = PAIR_WEIGHT if options.word_weight is None else options.word_weight
    check_weight(weight)
    Analyzer(options.language)
    take_words(options)
    place: Corpus | Index
    if options.index is not None:
        place = open_index(options)
        if "text" not in place.columns:
            if options.word_weight or options.language:
                raise SettingsError(f"{place.path} has no texts: leave out --word-weight and --language")
            weight = 0.0
        pairs, recall = _in_index(place, options, weight)
    else:
        place, stored = read_with_vectors(options)
        pairs, recall = _find(load(options, place), place, stored, options, weight)
    if weight:
        pairs = by_words(pairs, place, options.top, options.threshold, weight, options.language)
    rows = list(with_texts(pairs, place, weight))
    if options.output:
        write_table(rows, pair_columns(place), Path(options.output), options.safe_csv)
        notice(f"{counted(len(pairs), 'pair')} in {options.output}")
    about: dict[str, Any] = {**what_was_searched(options), "word_weight": weight, "pairs": rows}
    about |= {"recall": recall} if options.approximate or options.index is not None else {}
    written = write_outputs({options.json: lambda: json.dumps(about, ensure_ascii=False) + "\n"})
    names = shown_columns(options, place)
    for row in rows if not (written or options.output) else ():
        one, other = (labelled(row, names, side) + text_of(row, side) for side in "12")
        show(f"{row['score']:.3f}  {one}{again(row['repeats1'])}\n       {other}{again(row['repeats2'])}")
    if not pairs:
        notice(f"no pair has a score of {options.threshold} or more")


def _find(
    model: Encoder, corpus: Corpus, stored: VectorsFile | None, options: argparse.Namespace, weight: float
) -> tuple[list[Pair], float | None]:
    """The pairs by cosine, and what share of them an index finds, which is not known of the exact answer."""
    from selfsent.cli.console import counting
    from selfsent.search import encode_corpus
    from selfsent.search.approximate import approximately_most_similar_pairs
    from selfsent.search.cells import require_index
    from selfsent.search.pairs import blocks, most_similar_pairs, proposed

    if options.approximate:
        require_index()
    count, least = proposed(options.top, options.threshold, weight)
    with counting("reading vectors" if stored else "encoding") as done:
        vectors = encode_corpus(model, corpus, lambda count: done(count, len(corpus.input_rows)), stored)
    with counting("comparing") as compared:
        if not options.approximate:
            total = blocks(len(vectors))
            return most_similar_pairs(vectors, count, least, lambda n: compared(n, total)), None
        pairs, recall = approximately_most_similar_pairs(
            vectors, options.top, least, advance=lambda n: compared(n, len(vectors)), proposed=count
        )
    _tell(recall)
    return pairs, recall


def _in_index(index: Index, options: argparse.Namespace, weight: float) -> tuple[list[Pair], float | None]:
    """The pairs of an index by cosine, and what share of them it finds."""
    from selfsent.cli.console import counting
    from selfsent.search.approximate import pairs_in_cells
    from selfsent.search.pairs import proposed

    count, least = proposed(options.top, options.threshold, weight)
    with counting("comparing") as compared:
        pairs, recall = pairs_in_cells(
            index.cells, options.top, least, advance=lambda n: compared(n, len(index)), proposed=count
        )
    _tell(recall)
    return pairs, recall


def _tell(recall: float | None) -> None:
    from selfsent.cli.console import notice

    found = "unknown: no such pair has a text of the sample" if recall is None else f"{recall:.1%}"
    notice(f"share of the most similar pairs that the index finds, measured on a sample: {found}")
