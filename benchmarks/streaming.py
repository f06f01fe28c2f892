"""Training from a corpus of many files and millions of sentences: peak memory and speed of each method.

    python benchmarks/streaming.py --steps 300 -- text/*.txt.zst

Each method is a whole `selfsent train` in a process of its own, from opening the corpus to the scores; its peak
resident memory is what the operating system counted. Corpus and tokens are made by the first one, whose seconds and
peak contain that. What looks at every sentence once (flow, whitening, zscore) gets as many sentences of the corpus as
the others see. Methods that are in the output already are not run again.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from cost import measure
from sides import machine

from selfsent.files import write_json

STEPPING = ("tsdae", "simcse", "mlm", "ct", "ct-inbatch", "infomax", "bootstrap", "ntxent")
LOOK_ONCE = ("flow", "whitening", "zscore")
"""They encode every sentence before, or instead of, the first step."""
METHODS = (*STEPPING, *LOOK_ONCE)


def train(method: str, sources: list[str], steps: int, batch: int, base: str, folder: Path) -> dict[str, Any]:
    """What a run of one method costs, and how fast its steps are."""
    run = folder / "run"
    arguments = ["train", *sources, "--method", method, "--base", base, "--output", str(run), "--overwrite"]
    arguments += ["--steps", str(steps), "--batch-size", str(batch)]
    if method in LOOK_ONCE:
        arguments += ["--sentences", str(steps * batch)]
    costs = measure(arguments, folder)
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    speeds = [line["sentences_per_second"] for line in lines if "sentences_per_second" in line]
    sentences = record["asked"]["corpus"]["sentences"]
    return {
        "method": method,
        "sentences": sentences,
        "steps": record["steps"],
        **costs,
        "sentences_per_second": statistics.median(speeds) if speeds else sentences / record["seconds"],
    }


def main() -> None:
    """Run the methods that are missing, and print a line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="+", metavar="FILE")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS, metavar="NAME")
    parser.add_argument("--base", default="bundled-raw")
    parser.add_argument("--runs", type=Path, default=Path("runs/streaming"), help="for the cache and the last run")
    parser.add_argument("--output", type=Path, default=Path("docs/results/speed/streaming.json"))
    options = parser.parse_args()
    settings = {"files": len(options.sources), "steps": options.steps, "batch_size": options.batch_size}
    rows: list[dict[str, Any]] = []
    if options.output.is_file():
        old = json.loads(options.output.read_text(encoding="utf-8"))
        if old["settings"] != settings:
            raise SystemExit(f"{options.output} was measured with {old['settings']}: name another --output")
        rows = old["rows"]
    options.runs.mkdir(parents=True, exist_ok=True)
    for method in options.methods:
        if method in {row["method"] for row in rows}:
            continue
        size = options.steps, options.batch_size
        rows.append(train(method, options.sources, *size, options.base, options.runs))
        write_json(options.output, {"machine": machine(), "settings": settings, "base": options.base, "rows": rows})
        row = rows[-1]
        figures = f"{row['seconds']:7.1f} s  peak {row['peak_mb']:7.1f} MB  {row['sentences_per_second']:7.1f}/s"
        print(f"{method:11} of {row['sentences']:>10,} sentences  {figures}", flush=True)


if __name__ == "__main__":
    main()
