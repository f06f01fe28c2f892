"""`selfsent encode`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from selfsent.cli.options import add_corpus_options, read


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("encode", help="write the vectors of a corpus to a file")
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id, or bundled")
    parser.add_argument("input", nargs="+", metavar="INPUT", help="a corpus, as for selfsent train")
    parser.add_argument(
        "--output", required=True, metavar="FILE", help=".npy, or .parquet with the texts beside the vectors"
    )
    parser.add_argument("--fast", action="store_true", help="compute in bfloat16")
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Encode the corpus."""
    from selfsent.cli.console import counting, notice
    from selfsent.encoder import load_encoder
    from selfsent.errors import SettingsError
    from selfsent.search import FORMATS, encode_to_file

    output = Path(options.output)
    if output.suffix not in FORMATS:
        raise SettingsError(f"--output {output} must end in {' or '.join(FORMATS)}")
    corpus = read(options, options.input)
    model = load_encoder(options.model)
    with counting("encoding") as encoded:
        rows, size = encode_to_file(model, corpus, output, options.fast, lambda count: encoded(count, len(corpus)))
    notice(f"{rows:,} vectors of {size} numbers in {output}, in the order of the distinct sentences of the corpus")
