"""`selfsent evaluate`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from selfsent.cli.options import add_corpus_options, read


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "evaluate",
        help="score a model",
        description="Score a model on published tasks, or without labels on the held-out documents of a corpus.",
    )
    parser.add_argument(
        "model", nargs="+", metavar="MODEL", help="a directory, a hub id, module:factory, or an .npz of vectors"
    )
    parser.add_argument("--suite", metavar="NAME", help="a suite of tasks, such as sts")
    parser.add_argument("--task", metavar="NAME", help="one task, such as stsb")
    parser.add_argument(
        "--documents", nargs="+", metavar="CORPUS", help="a corpus with documents, for the label-free score"
    )
    parser.add_argument("--data", metavar="DIR", help="mirror of the data sets (default: SELFSENT_DATA, then the hub)")
    parser.add_argument("--fast", action="store_true", help="compute in bfloat16")
    parser.add_argument(
        "--json", metavar="FILE", help="write the result as JSON; - for standard output and nothing else there"
    )
    add_corpus_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Score every model, and print or write the results."""
    from selfsent import api
    from selfsent.cli.console import notice, show
    from selfsent.errors import SettingsError
    from selfsent.files import write_json

    if not (options.suite or options.task or options.documents):
        raise SettingsError("nothing to score: give --task, --suite or --documents")
    documents = read(options, options.documents) if options.documents else None
    results = []
    for model in options.model:
        result = api.evaluate(
            model, suite=options.suite, task=options.task, documents=documents, data=options.data, fast=options.fast
        )
        for line in result.warnings:
            notice(f"warning: {line}")
        results.append(result)
    plain = [result.to_json() for result in results]
    value = plain[0] if len(plain) == 1 else plain
    if options.json == "-":
        import sys

        sys.stdout.write(json.dumps(value) + "\n")
        return
    if options.json:
        write_json(Path(options.json), value)
    for result in results:
        show(result.table())
        for name, reason in result.absent.items():
            notice(f"{name} is absent: {reason}")
