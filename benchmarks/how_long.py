"""What the usual commands take on a table of texts: reading, training with the default, encoding, searching.

    python benchmarks/how_long.py --sizes 1000 30000 -- text/wikipedia.txt.zst

A text is four consecutive sentences of a document, about as long as a ticket. Each command is a process of its own,
as a user starts it; `read` is one step of training with nothing scored, so nearly all of it is starting, reading and
tokenising. The base is `bundled`. Rows of other sizes stay in the output.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path

import numpy as np
from cost import measure
from sides import machine

from selfsent import read_corpus
from selfsent.files import write_json

SENTENCES = 4
"""Sentences of a text."""


def write_texts(sources: list[str], count: int, place: Path) -> Path:
    """Write the first `count` texts of the sources as a table with one column, `body`."""
    corpus = read_corpus(sources, cache=place / "source")
    path, written = place / "tickets.csv", 0
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["body"])
        documents = np.asarray(corpus.documents)
        for start in range(0, len(corpus) - SENTENCES, SENTENCES):
            if written < count and documents[start] == documents[start + SENTENCES - 1]:
                table.writerow([" ".join(corpus.texts(np.arange(start, start + SENTENCES)))])
                written += 1
    if written < count:
        raise SystemExit(f"the sources have {written:,} such texts, not {count:,}: give more of them")
    return path


def commands(table: Path, folder: Path) -> dict[str, list[str]]:
    """The command lines, each after those that it needs."""
    text, run, vectors = [str(table), "--text-column", "body"], str(folder / "run"), str(folder / "vectors.npy")
    query = "when was the bridge built"
    return {
        "read": ["train", *text, "--steps", "1", "--hold-out", "0", "--output", str(folder / "one")],
        "train": ["train", *text, "--output", run],
        "encode": ["encode", run, *text, "--output", vectors],
        "search": ["search", run, *text, query],
        "search --encoded": ["search", run, *text, "--encoded", vectors, query],
    }


def main() -> None:
    """Measure, and print a line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 30_000])
    parser.add_argument("--note", default="", help="what else the machine was doing")
    parser.add_argument("--output", type=Path, default=Path("docs/results/speed/how_long.json"))
    options = parser.parse_args()
    known = json.loads(options.output.read_text())["rows"] if options.output.is_file() else []
    rows = [row for row in known if row["texts"] not in options.sizes]
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as place:
            table, folder = write_texts(options.sources, size, Path(place)), Path(place) / "runs"
            folder.mkdir()
            for name, arguments in commands(table, folder).items():
                rows.append({"command": name, "texts": size, **measure(arguments, folder)})
                print(f"{name:16} {size:>9,} texts {rows[-1]['seconds']:8.1f} s", flush=True)
                report = {"machine": machine(), "note": options.note, "base": "bundled", "rows": rows}
                write_json(options.output, report)  # after each, as the next one may take long


if __name__ == "__main__":
    main()
