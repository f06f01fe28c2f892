"""What a command costs against the size of its corpus: time, peak memory and bytes on disk.

    python benchmarks/cost.py --sizes 10000 100000 1000000 -- text/*.txt.zst
    python benchmarks/cost.py --commands read --sizes 10000000 -- text/*.txt.zst
    python benchmarks/cost.py --model bundled --method neighbours --commands read train encode index \
        --output docs/results/speed/cost_table.json -- text/*.txt.zst

Each command and size is a process of its own (the corpus is read, cleaned and tokenised in it as well); its peak
resident memory is what the operating system counted. What is measured already is not measured again, unless the
output is removed; several of these may fill one output, each with other commands or sizes. The curves are drawn beside
it. Sources with too few sentences are gone through again, with a number behind each sentence.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import alone_at, machine, measured

from selfsent import read_corpus
from selfsent.files import atomic_file, write_json

EXACT_PAIRS = 100_000
"""Sentences beyond which `pairs` compares through an index."""
PANELS = (("seconds", "seconds"), ("peak_mb", "peak memory, MB"), ("disk_mb", "on disk, MB"))


def command(name: str, size: int, place: Path, folder: Path, model: str, method: str) -> list[str]:
    """The command line."""
    text, documents = str(place / "text.txt"), str(place / "documents.txt")
    run = ["--base", model, "--batch-size", "32", "--output", str(folder / "run")]
    return {
        "read": ["train", text, *run, "--method", "simcse", "--delete-words", "0.3", "--steps", "1"],
        "train": ["train", documents, *run, "--method", *method.split(), "--steps", "10"],
        "encode": ["encode", model, text, "--output", str(folder / "vectors.npy")],
        "index": ["index", model, text, "--output", str(folder / "index")],
        "pairs": ["pairs", model, text, *(["--approximate"] if size > EXACT_PAIRS else [])],
    }[name]


def write_sentences(sources: list[str], count: int, folder: Path) -> None:
    """Write `count` distinct sentences: those of the sources in order, over again numbered.

    documents.txt has 20 to a document, text.txt no documents: reading it is not followed by scoring.
    """
    corpus = read_corpus([Path(source) for source in sources], cache=folder / "source")  # strings would be texts
    written = 0
    with (folder / "text.txt").open("w") as plain, (folder / "documents.txt").open("w") as documents:
        for turn in itertools.count(1):
            tail = f" {turn}" if turn > 1 else ""
            for batch in corpus.batches():
                for text in batch[: count - written]:
                    plain.write(text + tail + "\n")
                    documents.write(text + tail + "\n" + ("\n" if written % 20 == 19 else ""))
                    written += 1
                if written == count:
                    return


def measure(arguments: list[str], folder: Path) -> dict[str, float]:
    """What a command of selfsent costs, and the megabytes that it leaves on disk."""
    environment = {**os.environ, "SELFSENT_CACHE": str(folder / "cache")}
    row = measured([sys.executable, "-m", "selfsent", *arguments], environment)
    return row | {"disk_mb": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20}


def rows_in(output: Path) -> list[dict[str, Any]]:
    """The rows that the output holds, by size."""
    rows: list[dict[str, Any]] = json.loads(output.read_text())["rows"] if output.is_file() else []
    return rows


def is_measured(output: Path, name: str, size: int) -> bool:
    """Whether the output holds a command at a size."""
    return (name, size) in {(row["command"], row["sentences"]) for row in rows_in(output)}


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """A panel a figure, a line a command, as SVG."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(PANELS), figsize=(12, 3.6), layout="constrained")
    for panel, (key, label) in zip(panels, PANELS, strict=True):
        for name in dict.fromkeys(row["command"] for row in rows):
            line = [(row["sentences"], row[key]) for row in rows if row["command"] == name]
            panel.plot(*zip(*line, strict=True), marker="o", label=name)
        panel.set(xlabel="sentences", title=label, xscale="log")
        panel.set(**({"ylim": (0, None)} if key == "peak_mb" else {"yscale": "log"}))
        panel.grid(alpha=0.3)
    panels[1].legend(loc="lower right")
    with atomic_file(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None})


def main() -> None:
    """Measure what is missing, print a line each, and draw the curves."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--commands", nargs="+", default=["read", "train", "encode", "pairs"])
    parser.add_argument("--model", default="bundled-raw")
    parser.add_argument("--method", default="tsdae", help="that `train` trains with, and its options")
    parser.add_argument("--output", type=Path, default=Path("docs/results/speed/cost.json"))
    options = parser.parse_args()
    for size in sorted(options.sizes):
        if all(is_measured(options.output, name, size) for name in options.commands):
            continue
        with tempfile.TemporaryDirectory() as place:
            write_sentences(options.sources, size, Path(place))
            for name in options.commands:
                if is_measured(options.output, name, size):
                    continue
                with tempfile.TemporaryDirectory(dir=place) as folder:
                    arguments = command(name, size, Path(place), Path(folder), options.model, options.method)
                    row = {"command": name, "sentences": size, **measure(arguments, Path(folder))}
                with alone_at(options.output):
                    rows = sorted([*rows_in(options.output), row], key=lambda each: int(each["sentences"]))
                    write_json(options.output, {"machine": machine(), "model": options.model, "rows": rows})
                figures = f"peak {row['peak_mb']:8.1f} MB  on disk {row['disk_mb']:8.1f} MB"
                print(f"{name:7} {size:>10,} sentences  {row['seconds']:8.1f} s  {figures}", flush=True)
    rows = rows_in(options.output)
    draw(rows, options.output.with_suffix(".svg"))


if __name__ == "__main__":
    main()
