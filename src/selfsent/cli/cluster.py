"""`selfsent cluster`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfsent.cli.encoding import add_result_options, labelled, load, read_with_vectors
from selfsent.cli.options import add_corpus_options, carried
from selfsent.cli.outputs import write_outputs
from selfsent.display import counted

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
        help="put the texts of a corpus into groups of like meaning",
        description="Put the texts of a corpus into groups by k-means on their vectors, and show the words"
        " that tell each group from the others and its most typical text.",
    )
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id, or bundled")
    parser.add_argument("corpus", metavar="CORPUS", help="a corpus, as for selfsent train")
    parser.add_argument("--clusters", type=int, default=20, metavar="N", help="how many groups (default: 20)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first centres (default: 0)")
    add_result_options(parser, "every row of the corpus with its group")
    parser.add_argument("--page", metavar="FILE", help="write an HTML page: a map coloured by group, and the groups")
    parser.add_argument("--map", type=int, default=2000, metavar="N", help="texts on the map (default: 2000)")
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Find the groups, print them, and write the sentences where wanted."""
    from selfsent.cli.console import counting, doing, notice, show
    from selfsent.errors import SettingsError
    from selfsent.report.maps import check_points
    from selfsent.search import encode_corpus, find_clusters
    from selfsent.search.tables import group_columns, grouped, write_table

    if options.clusters < 2:
        raise SettingsError(f"--clusters is {options.clusters}; it must be at least 2")
    if not 0 <= options.seed < 2**32:
        raise SettingsError(f"--seed is {options.seed}; it must be at least 0 and below 2^32")
    check_points(options.map)
    corpus, stored = read_with_vectors(options)
    unit = corpus.report.unit
    if len(corpus) < options.clusters:
        has = counted(len(corpus), "different text")
        raise SettingsError(f"--clusters is {options.clusters}; the corpus has {has}")
    model = load(options, corpus)
    with counting("reading vectors" if stored else "encoding") as done:
        vectors = encode_corpus(model, corpus, lambda count: done(count, len(corpus.input_rows)), stored)
    with doing() as say:
        say("grouping")
        found = find_clusters(vectors, options.clusters, options.seed, corpus.input_rows.repeats)
        groups = _groups(found, corpus)
        page = None if options.page is None else _page(options, found, groups, corpus, vectors)
        del vectors
    about = {"model": options.model, "corpus": options.corpus, "clusters": groups}
    outputs = {options.json: lambda: json.dumps(about, ensure_ascii=False) + "\n", options.page: lambda: page or ""}
    if not write_outputs(outputs):
        show(_table(groups, carried(options), unit))
    if len(found.sizes) < options.clusters:
        notice(
            f"{counted(len(found.sizes), 'group')} instead of {options.clusters}: the other {unit}s have equal vectors"
        )
    if options.output:
        write_table(grouped(found, corpus), group_columns(corpus), Path(options.output), options.safe_csv)
        count = int(found.sizes.sum())
        notice(f"{counted(count, corpus.input_rows.unit)} in {options.output}")


def _page(
    options: argparse.Namespace,
    found: Clusters,
    groups: list[dict[str, Any]],
    corpus: Corpus,
    vectors: NDArray[np.float32],
) -> str:
    from selfsent.cli.console import notice
    from selfsent.report.cluster_page import cluster_page
    from selfsent.report.maps import slowness

    if line := slowness(min(options.map, len(corpus))):
        notice(line)
    about = {"model": options.model, "corpus": corpus.source, "seed": options.seed}
    return cluster_page(found, [group["words"] for group in groups], corpus, vectors, about, options.map)


def _groups(found: Clusters, corpus: Corpus) -> list[dict[str, Any]]:
    """Number, size, telling words and most typical sentence of each group."""
    from selfsent.search import telling_words
    from selfsent.search.tables import told

    words = telling_words((text for batch in corpus.batches() for text in batch), found)
    typical = told(corpus, (int(found.typical(number)[0]) for number in range(len(found.sizes))))
    return [
        {"cluster": number, "size": size, "words": words[number], "typical": typical[number]}
        for number, size in enumerate(found.sizes.tolist())
    ]


def _table(groups: list[dict[str, Any]], names: Sequence[str], unit: str) -> Table:
    from rich.table import Column, Table
    from rich.text import Text

    from selfsent.cli.console import shortened

    table = Table(
        Column("cluster", justify="right"),
        Column(f"{unit}s", justify="right"),
        Column("telling words", ratio=2),
        Column(f"most typical {unit}", ratio=3, overflow="fold"),
        expand=True,
    )
    for group in groups:
        typical = labelled(group["typical"], names) + shortened(group["typical"]["text"])
        table.add_row(str(group["cluster"]), f"{group['size']:,}", Text(", ".join(group["words"])), Text(typical))
    return table
