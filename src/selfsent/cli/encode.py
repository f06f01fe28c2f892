"""`selfsent encode`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from selfsent.cli.encoding import add_fast_options, load
from selfsent.cli.options import add_corpus_options, read
from selfsent.display import counted


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "encode",
        help="write the vectors of a corpus to a file",
        description="Write the vectors of a corpus to a file. Killed or interrupted, the same command goes on.",
    )
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id, or bundled")
    parser.add_argument("input", nargs="+", metavar="INPUT", help="a corpus, as for selfsent train")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help=".npy; .npz, as `embeddings`; or .parquet, with the texts beside the vectors",
    )
    add_fast_options(parser)
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Encode the corpus."""
    from selfsent.cli.console import counting, notice
    from selfsent.cli.outputs import check_outputs
    from selfsent.search import check_output, encode_to_file

    output = Path(options.output)
    check_outputs({"--output": options.output}, [*options.input, *(options.without or ())])
    check_output(output)
    corpus = read(options, options.input, least=1)
    model = load(options, corpus)
    with counting("encoding") as encoded:
        made = encode_to_file(model, corpus, output, lambda count: encoded(count, len(corpus)))
    if made.kept:
        notice(f"{made.kept:,} of them had been made before an earlier run stopped")
    notice(
        f"{counted(made.rows, 'vector')} of {made.size} numbers in {output}, in the order of the corpus' distinct"
        f" {corpus.report.unit}s"
    )
