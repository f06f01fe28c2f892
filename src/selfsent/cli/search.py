"""`selfsent search`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from selfsent.cli.fast import add_fast_options, load
from selfsent.cli.options import add_corpus_options, read


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("search", help="find the sentences of a corpus nearest to a query")
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id, or bundled")
    parser.add_argument("corpus", metavar="CORPUS", help="a corpus, as for selfsent train")
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what to look for")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="sentences a query (default: 10)")
    add_fast_options(parser)
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Search, and print cosine and sentence, best first."""
    from selfsent.cli.console import counting, show
    from selfsent.errors import SettingsError
    from selfsent.search import search

    if options.top < 1:
        raise SettingsError(f"--top is {options.top}; it must be at least 1")
    if not all(query.strip() for query in options.query):
        raise SettingsError("the query is empty")
    if files := [query for query in options.query if Path(query).suffix and Path(query).is_file()]:
        raise SettingsError(f"{files[0]} is a file, not a query: give several files as a folder or a pattern in quotes")
    corpus = read(options, options.corpus, least=1)
    model = load(options, corpus)
    with counting("searching") as searched:
        found = search(model, corpus, options.query, options.top, lambda count: searched(count, len(corpus)))
    import numpy as np

    for query, hits in zip(options.query, found, strict=True):
        if len(options.query) > 1:
            show(f"# {query}")
        texts = corpus.texts(np.array([row for row, _ in hits], dtype=np.int64))
        for (_, cosine), text in zip(hits, texts, strict=True):
            show(f"{cosine:.3f}  {text}")
