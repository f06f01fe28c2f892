"""`selfsent cluster`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_result_options, load, read_with_vectors
from selfsent.cli.options import add_corpus_options
from selfsent.display import counted

if TYPE_CHECKING:
    from rich.table import Table

    from selfsent.data.corpus import Corpus
    from selfsent.search import Clusters


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "cluster",
        help="put the texts of a corpus into groups of like meaning",
        description="Put the distinct texts of a corpus into groups by k-means on their vectors, and show the words"
        " that tell each group from the others and its most typical text.",
    )
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id, or bundled")
    parser.add_argument("corpus", metavar="CORPUS", help="a corpus, as for selfsent train")
    parser.add_argument("--clusters", type=int, default=20, metavar="N", help="how many groups (default: 20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first centres (default: 0)")
    add_result_options(parser, "every text with its group")
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Find the groups, print them, and write the sentences where wanted."""
    from selfsent.cli.console import counting, doing, notice, show
    from selfsent.errors import SettingsError
    from selfsent.search import encode_corpus, find_clusters
    from selfsent.search.tables import GROUPS, grouped, write_table

    if options.clusters < 2:
        raise SettingsError(f"--clusters is {options.clusters}; it must be at least 2")
    if not 0 <= options.seed < 2**32:
        raise SettingsError(f"--seed is {options.seed}; it must be at least 0 and below 2^32")
    corpus, stored = read_with_vectors(options)
    unit = corpus.report.unit
    if len(corpus) < options.clusters:
        raise SettingsError(
            f"--clusters is {options.clusters}; the corpus has {counted(len(corpus), f'distinct {unit}')}"
        )
    model = load(options, corpus)
    with counting("reading vectors" if stored else "encoding") as done:
        vectors = encode_corpus(model, corpus, lambda count: done(count, len(corpus)), stored)
    with doing() as say:
        say("grouping")
        found = find_clusters(vectors, options.clusters, options.seed)
        del vectors
        shown = _table(found, corpus)
    show(shown)
    if len(found.sizes) < options.clusters:
        notice(
            f"{counted(len(found.sizes), 'group')} instead of {options.clusters}: the other {unit}s have equal vectors"
        )
    if options.output:
        write_table(grouped(found, corpus), GROUPS, Path(options.output), options.safe_csv)
        notice(f"{corpus.report.counted(len(corpus))} in {options.output}")


def _table(found: Clusters, corpus: Corpus) -> Table:
    from rich.table import Column, Table
    from rich.text import Text

    from selfsent.search import telling_words

    words = telling_words((text for batch in corpus.batches() for text in batch), found)
    table = Table(
        Column("cluster", justify="right"),
        Column(f"{corpus.report.unit}s", justify="right"),
        Column("telling words", ratio=2),
        Column(f"most typical {corpus.report.unit}", ratio=3, no_wrap=True, overflow="ellipsis"),
        expand=True,
    )
    for number, size in enumerate(found.sizes):
        (typical,) = corpus.texts(found.typical(number))
        table.add_row(str(number), f"{size:,}", Text(", ".join(words[number])), Text(typical))
    return table
