"""`selfsent export`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "export",
        help="write a model as a graph for ONNX Runtime or any other that reads ONNX",
        description="Write a model as a graph from token ids to sentence vectors, pooling included, with its tokenizer."
        " Nothing is written if the graph's vectors differ from torch's.",
    )
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id, or bundled")
    parser.add_argument(
        "--normalize", action="store_true", help="give the vectors length 1, even if the model does not"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="directory to write")
    parser.add_argument("--overwrite", action="store_true", help="replace the export that is there")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Export the model."""
    from selfsent.cli.console import doing, notice
    from selfsent.models.export import check_export, export

    output = Path(options.output)
    check_export(output, options.overwrite)
    from selfsent.models.loading import load_encoder

    model = load_encoder(options.model)
    with doing() as say:
        say("making a graph")
        made = export(model, output, options.normalize)
    notice(
        f"ONNX graph in {output}: {made.size} numbers a sentence, smallest cosine to torch's vectors"
        f" {made.smallest_cosine:.6f}, largest difference {made.largest_difference:.1e}"
    )
