"""`selfsent cluster`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_result_options, load, read_with_vectors
from selfsent.cli.options import add_corpus_options
from selfsent.cli.outputs import check_outputs, write_outputs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from selfsent.data.corpus import Corpus
    from selfsent.search import Clusters


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "cluster",
        help="put the sentences of a corpus into groups of like meaning",
        description="Put the distinct sentences of a corpus into groups by k-means on their vectors, and show the words"
        " that tell each group from the others and its most typical sentence.",
    )
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id, or bundled")
    parser.add_argument("corpus", metavar="CORPUS", help="a corpus, as for selfsent train")
    parser.add_argument("--clusters", type=int, default=20, metavar="N", help="how many groups (default: 20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first centres (default: 0)")
    add_result_options(parser, "every sentence with its group")
    parser.add_argument("--page", metavar="FILE", help="write an HTML page: a map coloured by group, and the groups")
    parser.add_argument("--map", type=int, default=2000, metavar="N", help="sentences on the map (default: 2000)")
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Find the groups, print them, and write the sentences where wanted."""
    from selfsent.cli.console import counting, doing, notice, show
    from selfsent.errors import SettingsError
    from selfsent.report.maps import check_points
    from selfsent.search import encode_corpus, find_clusters
    from selfsent.search.tables import GROUPS, grouped, write_table

    if options.clusters < 2:
        raise SettingsError(f"--clusters is {options.clusters}; it must be at least 2")
    if not 0 <= options.seed < 2**32:
        raise SettingsError(f"--seed is {options.seed}; it must be at least 0 and below 2^32")
    check_points(options.map)
    check_outputs({"--output": options.output, "--page": options.page}, [options.corpus, options.encoded])
    corpus, stored = read_with_vectors(options)
    if len(corpus) < options.clusters:
        raise SettingsError(f"--clusters is {options.clusters}; the corpus has {len(corpus):,} distinct sentences")
    model = load(options, corpus)
    with counting("reading vectors" if stored else "encoding") as done:
        vectors = encode_corpus(model, corpus, lambda count: done(count, len(corpus)), stored)
    with doing() as say:
        say("grouping")
        found = find_clusters(vectors, options.clusters, options.seed)
        page = None if options.page is None else _page(options, found, corpus, vectors)
        del vectors
        shown = _table(found, corpus)
    if page is None or not write_outputs({options.page: lambda: page}):
        show(shown)
    if len(found.sizes) < options.clusters:
        notice(f"{len(found.sizes)} groups instead of {options.clusters}: the other sentences have equal vectors")
    if options.output:
        write_table(grouped(found, corpus), GROUPS, Path(options.output))
        notice(f"{len(corpus):,} sentences in {options.output}")


def _page(options: argparse.Namespace, found: Clusters, corpus: Corpus, vectors: NDArray[np.float32]) -> str:
    from selfsent.cli.console import notice
    from selfsent.report.cluster_page import cluster_page
    from selfsent.report.maps import slowness
    from selfsent.search import telling_words

    if line := slowness(min(options.map, len(corpus))):
        notice(line)
    words = telling_words((text for batch in corpus.batches() for text in batch), found)
    about = {"model": options.model, "corpus": corpus.source, "seed": options.seed}
    return cluster_page(found, words, corpus, vectors, about, options.map)


def _table(found: Clusters, corpus: Corpus) -> Table:
    from rich.table import Column, Table
    from rich.text import Text

    from selfsent.search import telling_words

    words = telling_words((text for batch in corpus.batches() for text in batch), found)
    table = Table(
        Column("cluster", justify="right"),
        Column("sentences", justify="right"),
        Column("telling words", ratio=2),
        Column("most typical sentence", ratio=3, no_wrap=True, overflow="ellipsis"),
        expand=True,
    )
    for number, size in enumerate(found.sizes):
        (typical,) = corpus.texts(found.typical(number))
        table.add_row(str(number), f"{size:,}", Text(", ".join(words[number])), Text(typical))
    return table
