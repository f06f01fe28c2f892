"""`selfsent search`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from selfsent.cli.encoding import add_result_options, again, labelled, load, read_with_vectors
from selfsent.cli.options import add_corpus_options, carried
from selfsent.cli.outputs import write_outputs


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "search",
        help="find the texts of a corpus nearest to a query",
        description="Find the texts of a corpus whose vectors have the largest cosines to a query's.",
    )
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id, or bundled")
    parser.add_argument("corpus", metavar="CORPUS", help="a corpus, as for selfsent train")
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what to look for")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="texts to find for each query (default: 10)")
    add_result_options(parser, "the texts found")
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Search, and print cosine and sentence, best first."""
    from selfsent.cli.console import counting, notice
    from selfsent.data.corpus.clean import clean
    from selfsent.errors import SettingsError
    from selfsent.search import search
    from selfsent.search.tables import hit_columns, hits_with_texts, write_table

    if options.top < 1:
        raise SettingsError(f"--top is {options.top}; it must be at least 1")
    queries = clean(options.query)[0]
    if not all(queries):
        raise SettingsError("the query is empty")
    if files := [query for query in options.query if Path(query).suffix and Path(query).is_file()]:
        raise SettingsError(f"{files[0]} is a file, not a query: give several files as a folder or a pattern in quotes")
    corpus, stored = read_with_vectors(options, least=1)
    model = load(options, corpus)
    with counting("searching") as searched:
        found = search(
            model,
            corpus,
            queries,
            options.top,
            advance=lambda count: searched(count, len(corpus.origins)),
            file=stored,
        )
    rows = [list(hits_with_texts(query, hits, corpus)) for query, hits in zip(queries, found, strict=True)]
    if options.output:
        write_table(chain.from_iterable(rows), hit_columns(corpus), Path(options.output), options.safe_csv)
        notice(f"{corpus.report.counted(sum(map(len, rows)))} in {options.output}")
    found_of = [
        {"query": query, "hits": [{k: v for k, v in hit.items() if k != "query"} for hit in hits]}
        for query, hits in zip(queries, rows, strict=True)
    ]
    about = {"model": options.model, "corpus": options.corpus, "queries": found_of}
    if not write_outputs({options.json: lambda: json.dumps(about, ensure_ascii=False) + "\n"}) and not options.output:
        _show(queries, rows, carried(options))


def _show(queries: list[str], rows: list[list[dict[str, Any]]], names: Sequence[str]) -> None:
    from selfsent.cli.console import shortened, show

    for query, hits in zip(queries, rows, strict=True):
        if len(queries) > 1:
            show(f"# {query}")
        for row in hits:
            show(f"{row['cosine']:.3f}  {labelled(row, names)}{shortened(row['text'])}{again(row['repeats'])}")
