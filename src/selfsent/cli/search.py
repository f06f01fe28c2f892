"""`selfsent search`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_result_options, again, labelled, load, read_with_vectors, text_of
from selfsent.cli.index import (
    add_index_options,
    encoder_of,
    open_index,
    shown_columns,
    take_words,
    unit_of,
    what_was_searched,
)
from selfsent.cli.options import add_corpus_options, add_language_option
from selfsent.cli.outputs import write_outputs
from selfsent.display import counted

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.search import Hit, Index

    Found = list[list[Hit]]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "search",
        help="find the texts of a corpus nearest to a query",
        description="Find the texts of a corpus nearest to a query: by the cosine of their vectors and by BM25,"
        " the words that they share with it.",
        usage="selfsent search MODEL CORPUS QUERY [QUERY ...] [options]\n"
        "       selfsent search --index DIR QUERY [QUERY ...] [options]",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="MODEL CORPUS QUERY",
        help="a directory, a hub id, or bundled; a corpus, as for selfsent train; and what to look for",
    )
    parser.gathers = "words"
    parser.add_argument("--top", type=int, default=10, metavar="N", help="texts to find for each query (default: 10)")
    parser.add_argument(
        "--word-weight",
        type=float,
        metavar="W",
        help="a text's score is (cosine + W x words) / (1 + W), where words is BM25 as a share of what the query can"
        " reach; 0: the cosine alone (default: the model's own, such as 1.5 for bundled)",
    )
    add_language_option(parser)
    add_result_options(parser, "the texts found")
    add_index_options(parser, loads=True)
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Search, and print score and sentence, best first."""
    from selfsent.cli.console import notice
    from selfsent.data.corpus.clean import clean
    from selfsent.errors import SettingsError
    from selfsent.lexical.scores import check_weight
    from selfsent.search.tables import hit_columns, hits_with_texts, write_table

    if options.top < 1:
        raise SettingsError(f"--top is {options.top}; it must be at least 1")
    if options.word_weight is not None:
        check_weight(options.word_weight)
    given = take_words(options, "QUERY")
    queries = clean(given)[0]
    if not all(queries):
        raise SettingsError("the query is empty")
    # Of a query that is too long for a name, Path.is_file() would raise.
    if files := [query for query in given if Path(query).suffix and os.path.isfile(query)]:  # noqa: PTH113
        raise SettingsError(f"{files[0]} is a file, not a query: give several files as a folder or a pattern in quotes")
    search = _in_corpus if options.index is None else _in_index
    place, found, how = search(options, queries)
    rows = [list(hits_with_texts(query, hits, place)) for query, hits in zip(queries, found, strict=True)]
    if options.output:
        write_table(chain.from_iterable(rows), hit_columns(place), Path(options.output), options.safe_csv)
        notice(f"{counted(sum(map(len, rows)), unit_of(place))} in {options.output}")
    found_of = [
        {"query": query, "hits": [{k: v for k, v in hit.items() if k != "query"} for hit in hits]}
        for query, hits in zip(queries, rows, strict=True)
    ]
    about = {**what_was_searched(options), **how, "queries": found_of}
    if not write_outputs({options.json: lambda: json.dumps(about, ensure_ascii=False) + "\n"}) and not options.output:
        _show(queries, rows, shown_columns(options, place), how["word_weight"])


def _in_corpus(options: argparse.Namespace, queries: list[str]) -> tuple[Corpus, Found, dict[str, Any]]:
    from selfsent.cli.console import counting
    from selfsent.lexical import Analyzer
    from selfsent.search import search
    from selfsent.search.nearest import corpus_language

    Analyzer(options.language)  # a name that is none is refused now
    corpus, stored = read_with_vectors(options, min_rows=1)
    model = load(options, corpus)
    total = len(corpus.input_rows)
    weight = model.lexical_weight if options.word_weight is None else options.word_weight
    how: dict[str, Any] = {"word_weight": weight}
    if weight:
        how["language"] = options.language or corpus_language(corpus) or "none"
    with counting("searching") as searched:
        found = search(
            model,
            corpus,
            queries,
            options.top,
            lambda count: searched(count, total),
            stored,
            weight,
            how.get("language"),
        )
        return corpus, found, how


def _in_index(options: argparse.Namespace, queries: list[str]) -> tuple[Index, Found, dict[str, Any]]:
    from selfsent.cli.console import notice
    from selfsent.errors import DataError, SettingsError
    from selfsent.models.encoding import encode
    from selfsent.search.index import TFIDF_WEIGHT

    index = open_index(options)
    if options.language is not None:
        raise SettingsError("--index knows no stems yet: leave out --language, or search the texts themselves")
    weight = TFIDF_WEIGHT if options.word_weight is None else options.word_weight
    if "words" in index.columns:  # kept before results had a column of this name
        raise DataError(f"{index.path} has a column 'words', as results have: rename yours and index the texts again")
    if index.words is None:
        if options.word_weight:
            raise SettingsError(f"{index.path} counts no words: leave out --word-weight, or index the texts again")
        if "text" in index.columns and options.word_weight is None:
            notice(f"{index.path} was made before words were counted, so only cosines count: index the texts again")
        weight = 0.0
    vectors = encode(encoder_of(index, options), queries, side="query")
    if weight:
        notice("an index ranks by the cosine and TF-IDF, the older way; a search of the texts themselves uses BM25")
    return index, index.search(vectors, options.top, queries, weight), {"word_weight": weight}


def _show(queries: list[str], rows: list[list[dict[str, Any]]], names: Sequence[str], weight: float) -> None:
    from selfsent.cli.console import show

    for query, hits in zip(queries, rows, strict=True):
        if len(queries) > 1:
            show(f"# {query}")
        for row in hits:
            score = (row["cosine"] + weight * row["words"]) / (1 + weight)
            show(f"{score:.3f}  {labelled(row, names)}{text_of(row)}{again(row['repeats'])}")
