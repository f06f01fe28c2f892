r"""Whole commands that train a table: this build, the one before, and a script of sentence-transformers.

    python benchmarks/train_table.py --before ../before/src --output docs/results/speed/train_table.json
    python benchmarks/train_table.py --before ../before/src --pairs 60000 --output docs/results/speed/train_table.json

Without `--pairs`: `python:stdlib` from `bundled` by its neighbours, as in time_to_score.py, up to the score that the
peer ends with; ours takes twice the steps for it, since its first ones change the table less. The text was read before,
by both sides. With `--pairs`: from a file of pairs, which is read anew each time, to a trained table, in one pass with
the same loss, batch and rate. The sides alternate; medians are compared: seconds of the processor, which another
process does not lengthen, and megabytes at most. What is trained is scored once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sides import kept, machine
from time_to_score import scores, write_pairs
from without_torch import measured

from selfsent import read_corpus
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.tasks.context import ContextTask
from selfsent.files import write_json
from selfsent.models.bases import resolve

BASE, CORPUS = "bundled", "python:stdlib"
STEPS, PEER_STEPS, BATCH, RATE = 210, 105, 512, "4e-3"
"""Of training on neighbours; the rate is the peer's best."""
PASS_BATCH, PASS_RATE = 1024, "0.02"
"""Of one pass over a file of pairs, for both sides."""


def commands(options: argparse.Namespace, pairs: Path, corpus: Any, rows: np.ndarray) -> dict[str, list[str]]:
    """The command of ours, and the peer's; `pairs` is written."""
    train = [sys.executable, "-m", "selfsent", "train"]
    ours = ["--base", BASE, "--overwrite", "--whiten", "0", "--output", "SIDE"]
    peer = [sys.executable, str(Path(__file__).with_name("peer_neighbours.py")), str(pairs), str(resolve(BASE)), "peer"]
    if options.pairs:
        write_pairs(corpus, rows, pairs, options.pairs)
        ours = [*ours, "--method", "mnrl", "--text-columns", "anchor,positive", "--epochs", "1", "--hold-out", "0"]
        ours = [*train, str(pairs), *ours, "--batch-size", str(PASS_BATCH), "--learning-rate", PASS_RATE]
        about = [str(options.pairs // PASS_BATCH), str(PASS_BATCH), PASS_RATE]
    else:
        write_pairs(corpus, rows, pairs, (PEER_STEPS + 1) * BATCH)
        ours = [*train, CORPUS, *ours, "--keep-base", "0", "--steps", str(STEPS)]
        about = [str(PEER_STEPS), str(BATCH), RATE]
    for flag, value in zip(("--steps", "--batch-size", "--rate"), about, strict=True):
        peer += [flag, value]
    return {"new": ours, "before": ours, "peer": peer}


def main() -> None:
    """Measure, and write the figures after each round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, type=Path, help="the src folder of the build before")
    parser.add_argument("--pairs", type=int, help="lines of a file of pairs, in place of a text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    corpus = read_corpus(CORPUS)
    hold_out = HoldOut.of(corpus, dev=False)
    context = ContextTask(corpus, hold_out.test)
    sources = {"new": Path(__file__).resolve().parents[1] / "src", "before": options.before.resolve(), "peer": Path()}
    found: dict[str, list[tuple[float, float]]] = {side: [] for side in sources}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        todo = commands(options, folder / "pairs.jsonl", corpus, hold_out.train)
        about: dict[str, Any] = {"scores": {}}
        for number in range(options.rounds + 1):
            for side, command in todo.items():
                cache = folder / f"{side}-cache"
                if options.pairs:
                    shutil.rmtree(cache, ignore_errors=True)
                known = {**os.environ, "PYTHONPATH": str(sources[side]), "SELFSENT_CACHE": str(cache)}
                one = measured([side if part == "SIDE" else part for part in command], known, folder)
                if not number:  # it warms the caches
                    model = folder / "peer" if side == "peer" else folder / side / "model"
                    about["scores"][side] = scores(str(model), context)
                    continue
                found[side].append(one)
            if not number:
                continue
            medians = {
                side: [statistics.median(each) for each in zip(*runs, strict=True)] for side, runs in found.items()
            }
            about |= {"rounds": number, "cores": os.cpu_count(), "threads": os.environ.get("OMP_NUM_THREADS")}
            for side, (seconds, most) in medians.items():
                about[side] = {"seconds": round(seconds, 2), "megabytes": round(most)}
            for side in ("before", "peer"):
                ratios = [one / other for one, other in zip(medians[side], medians["new"], strict=True)]
                about[f"{side} / new"] = {"seconds": round(ratios[0], 2), "megabytes": round(ratios[1], 2)}
            key = f"{options.pairs} pairs" if options.pairs else f"{CORPUS} to the peer's score"
            print(number, key, json.dumps(about), flush=True)
            write_json(options.output, {"machine": machine(), "rows": {**kept(options.output), key: about}})


if __name__ == "__main__":
    main()
