"""`selfsent encode`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from selfsent.cli.encoding import add_fast_options, load
from selfsent.cli.options import add_carry_options, add_corpus_options, carried, read
from selfsent.display import counted
from selfsent.errors import SettingsError


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "encode",
        help="write the vectors of a corpus to a file",
        description="Write a file with one vector for each row of the input, in its order, also for repeated and empty"
        " texts (zeros for empty ones). Killed or interrupted, the same command goes on. With --engine ray, on many"
        " cores, GPUs or machines, into a folder of .parquet files.",
    )
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id, or bundled")
    parser.add_argument("input", nargs="+", metavar="INPUT", help="a corpus, as for selfsent train")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help=".npy; .npz, as `embeddings`; or .parquet, with row numbers, ids and texts beside the vectors; with"
        " --engine ray a folder, here or elsewhere (s3://bucket/vectors)",
    )
    bulk = parser.add_argument_group("in bulk")
    bulk.add_argument(
        "--engine",
        choices=("ray",),
        help="share the work out with Ray Data: on the cluster of $RAY_ADDRESS, else on this machine",
    )
    bulk.add_argument("--workers", type=int, metavar="N", help="processes (default: one for each GPU, or each core)")
    bulk.add_argument("--cores", type=int, metavar="N", help="cores for each of them (default: 1)")
    parser.add_argument(
        "--prompt",
        choices=("query", "document"),
        help="put the model's prompt for queries, or for texts to be searched, in front of each text, if it has one;"
        " document is for files that search and index read (default: the model's default prompt, mostly none)",
    )
    add_fast_options(parser)
    add_carry_options(parser, ".parquet files")
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Encode the corpus."""
    from selfsent.cli.console import counting, notice
    from selfsent.cli.outputs import check_outputs
    from selfsent.data.corpus.remote import is_address
    from selfsent.search import check_output, encode_to_file

    if options.engine:
        from selfsent.cli.bulk import encode_in_bulk

        encode_in_bulk(options)
        return
    if options.workers is not None or options.cores is not None:
        raise SettingsError("--workers and --cores go with --engine ray")
    if is_address(options.output):
        raise SettingsError(f"--output {options.output} lies elsewhere: add --engine ray, or name a local file")
    output = Path(options.output)
    check_outputs({"--output": options.output}, [*options.input, *(options.without or ())])
    check_output(output)
    if output.suffix != ".parquet" and carried(options):
        raise SettingsError(
            f"{output} has room for vectors alone, in the order of the input's rows: give a .parquet file, or leave out"
            " --id-column and --keep"
        )
    corpus = read(options, options.input, min_rows=1)
    model = load(options, corpus)
    with counting("encoding") as encoded:
        made = encode_to_file(
            model, corpus, output, lambda count: encoded(count, len(corpus.input_rows)), options.prompt
        )
    if made.kept:
        notice(f"{made.kept:,} of them had been made before an earlier run stopped")
    one, kind = made.rows == 1, corpus.input_rows.unit
    each = "for the one row" if one else f"one for each {kind}" + " of the input" * (kind == "row") + ", in its order"
    notice(f"{counted(made.rows, 'vector')} of {made.size} numbers in {output}, {each}")
    if made.zeros:
        why = "empty, or left out with --without" if corpus.report.excluded else "empty"
        what = (
            "1 of them is all zeros: its text is"
            if made.zeros == 1
            else f"{made.zeros:,} of them are all zeros: their texts are"
        )
        notice(f"{what} {why}")
    if corpus.input_rows.split and output.suffix == ".npy":
        notice(f"{output} does not say which row a sentence is of: .parquet and .npz files do")
