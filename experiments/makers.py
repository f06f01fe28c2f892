"""Every maker of views on the same sentences: how fast it is, how much it changes, and ten of its views to judge.

    python experiments/makers.py wikipedia.txt.zst --output docs/results/quality/makers.json
    python experiments/makers.py --table --output docs/results/quality/makers.json

Each maker says every sentence once. Speed is counted twice: in seconds of the clock, and in seconds of the processor,
those of the programs it runs (translators) included, which other work on the machine does not change. Starting it is
counted apart. Makers that are in the output already are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from sides import machine

from selfsent import read_corpus
from selfsent.augment.augmenter import Sentences
from selfsent.augment.difference import Difference
from selfsent.augment.registry import parse_maker
from selfsent.data.random import make_key
from selfsent.files import write_json

MAKERS = (
    "synonym",
    "synonym:sense=random",
    "mlm",
    "mlm:pick=best",
    "translate:pivot=spa",
    "translate:pivot=cat",
)


_WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def seconds() -> tuple[float, float]:
    """Of the clock, and of the processor for this program and those that it runs (as Linux counts them)."""
    used = sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime for who in _WHO)
    running: dict[int, list[tuple[int, float]]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent, *numbers = place.read_text().rpartition(")")[2].split()[1:15]
        except (OSError, ValueError):  # it has just ended
            continue
        ticks = sum(map(int, numbers[-4:])) / os.sysconf("SC_CLK_TCK")
        running.setdefault(int(parent), []).append((int(place.parent.name), ticks))
    waiting = [os.getpid()]
    while waiting:
        for number, ticks in running.get(waiting.pop(), []):
            waiting.append(number)
            used += ticks
    return time.perf_counter(), used


def judge(spec: str, texts: list[str], samples: list[str], seed: int = 0) -> dict[str, Any]:
    """What a maker costs and changes on some sentences, and its views of the samples."""
    begun = seconds()
    with parse_maker(spec).start() as change:
        started = seconds()
        views = change(Sentences(texts, np.arange(len(texts))), make_key(seed))
        clock, processor = (now - then for now, then in zip(seconds(), started, strict=True))
        shown = change(Sentences(samples, np.arange(len(samples))), make_key(seed))
    difference = Difference.of(texts, views)
    return {
        "views": len(views),
        "seconds_to_start": started[0] - begun[0],
        "views_per_second": len(views) / clock,
        "views_per_processor_second": len(views) / processor,
        "unchanged": difference.unchanged / len(views),
        "edit_distance": difference.distance / len(views),
        "length_ratio": difference.ratio / len(views),
        "samples": dict(zip(samples, shown, strict=True)),
    }


def table(rows: dict[str, Any]) -> str:
    """The figures as Markdown, and the samples below."""
    lines = [
        "| maker | views a second | views a second of the processor | unchanged | edit distance | length ratio |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for spec, row in rows.items():
        speeds = f"{row['views_per_second']:.3g} | {row['views_per_processor_second']:.3g}"
        lines.append(
            f"| `{spec}` | {speeds} | {row['unchanged']:.1%} | {row['edit_distance']:.1%} | {row['length_ratio']:.2f} |"
        )
    for spec, row in rows.items():
        lines += ["", f"| sentence | `{spec}` |", "|---|---|"]
        lines += [f"| {text} | {view} |" for text, view in row["samples"].items()]
    return "\n".join(lines)


def main() -> None:
    """Run the makers that are missing, or print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", nargs="?", metavar="CORPUS")
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--makers", nargs="+", default=MAKERS, metavar="SPEC")
    parser.add_argument("--samples", type=Path, help="a file with a sentence a line (default: ten of the corpus)")
    parser.add_argument("--output", type=Path, default=Path("docs/results/quality/makers.json"))
    parser.add_argument("--table", action="store_true", help="print what the output holds as Markdown, and run nothing")
    options = parser.parse_args()
    rows: dict[str, Any] = json.loads(options.output.read_text())["rows"] if options.output.exists() else {}
    if options.table or options.source is None:
        print(table(rows))
        return
    corpus = read_corpus(options.source)
    drawn = np.random.default_rng(0).permutation(len(corpus))[: options.sentences + 10]
    texts = corpus.texts(drawn)
    samples = options.samples.read_text(encoding="utf-8").splitlines() if options.samples else texts[-10:]
    for spec in options.makers:
        if spec not in rows:
            rows[spec] = judge(spec, texts[:-10], samples)
            write_json(options.output, {"machine": machine(), "corpus": Path(options.source).name, "rows": rows})
            print(f"{spec}: {rows[spec]['views_per_processor_second']:.3g} views a second of the processor", flush=True)


if __name__ == "__main__":
    main()
