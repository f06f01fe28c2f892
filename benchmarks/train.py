"""Training speed against sentence-transformers' own trainer: same sentences, base, batch size and machine.

    python benchmarks/train.py                       # bundled-raw at batch 32, in under 20 minutes
    python benchmarks/train.py --full                # two bases, batches of 8, 32 and 128
    python benchmarks/train.py --methods tsdae --bases path/to/encoder --batch-sizes 128 --repetitions 5
    python benchmarks/train.py --methods tsdae simcse --bases bert-base --batch-sizes 128 --sentences 100000  # a GPU

Ours and theirs alternate, every repetition with a seed of its own; medians are compared. Both sides are timed from text
to trained weights (reading files and loading models left out, tokenising left in), over the same number of sentences,
on a GPU where there is one. Both are then scored on the same held-out sentences by the same measure, and on STS-B where
SELFSENT_DATA is set, so that a faster run that learned less would show. Precision is float32 for both where the
processor does not compute bfloat16; otherwise both are tried in both, and the peer's fastest is what ours is held
against. `infomax` and `bootstrap` have no counterpart there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from harness import DEVICE, MINILM, base_of, machine
from held_out import held_out_loss
from trainers import OPTIONS, ours, theirs

from selfsent import evaluate, read_corpus
from selfsent.files import write_json
from selfsent.models.precision import computes_bfloat16

HELD_OUT = 512
ALONE = ("infomax", "bootstrap")
SAME = 1.02
"""Times the loss it is held against, a setting still counts as one of the same quality."""


def draw_sentences(count: int, source: str) -> tuple[list[str], list[str]]:
    """Sentences to train on and held-out ones, drawn once."""
    corpus = read_corpus(source)
    rows = np.random.default_rng(0).permutation(len(corpus))[: count + HELD_OUT]
    texts = corpus.texts(rows)
    return texts[HELD_OUT:], texts[:HELD_OUT]


def compare(method: str, base: str, batch_size: int, texts: list[str], held: list[str], options: Any) -> dict[str, Any]:
    """Both sides in turn, in every precision."""
    precisions = ["float32", "bfloat16"] if computes_bfloat16(DEVICE) else ["float32"]
    sides = {"ours": ours} if method in ALONE else {"ours": ours, "theirs": theirs}
    rows: dict[str, dict[str, Any]] = {}
    if DEVICE == "cuda":
        # Libraries and kernels are loaded by whoever comes first.
        for precision in precisions:
            for train in sides.values():
                train(method, texts[: 4 * batch_size], base_of(base), batch_size, precision, 0)
    for repetition in range(options.repetitions):
        for precision in precisions:
            for side, train in sides.items():
                run = train(method, texts, base_of(base), batch_size, precision, repetition)
                fresh: dict[str, Any] = {"seconds": [], "held_out_loss": [], "stsb": []}
                row = rows.setdefault(f"{side} {precision}", fresh)
                row["seconds"].append(run.seconds)
                said = ""
                if method not in ALONE:
                    row["held_out_loss"].append(held_out_loss(side, method, run.loss, run.encoder.tokenizer, held))
                    said = f", held-out loss {row['held_out_loss'][-1]:.4f}"
                if os.environ.get("SELFSENT_DATA"):
                    row["stsb"].append(sts_b(run.encoder))
                    said += f", STS-B {row['stsb'][-1]:.2f}"
                print(f"  {method} {side} {precision}: {run.seconds:.1f} s{said}", file=sys.stderr, flush=True)
    for row in rows.values():
        row["sentences_per_second"] = len(texts) / statistics.median(row["seconds"])
    found: dict[str, Any] = {"method": method, "base": base, "batch_size": batch_size, "rows": rows}
    if method not in ALONE:
        speed, plain = (rows[side]["sentences_per_second"] for side in (fastest(rows, "ours"), "theirs float32"))
        found["ratio"] = speed / rows[fastest(rows, "theirs")]["sentences_per_second"]
        found["ratio_to_float32"] = speed / plain
    return found


def fastest(rows: dict[str, dict[str, Any]], who: str) -> str:
    """Of the settings of `ours` or `theirs`, the fastest that ends at the loss of its own float32, or that."""

    def loss(side: str) -> float:
        return float(np.mean(rows[side]["held_out_loss"]))

    plain = f"{who} float32"
    others = [side for side in rows if side.startswith(who) and side != plain and np.isfinite(loss(side))]
    fair = [side for side in others if loss(side) <= SAME * loss(plain)]
    return max([plain, *fair], key=lambda side: float(rows[side]["sentences_per_second"]))


def sts_b(encoder: Any) -> float:
    """Spearman correlation on STS-B's test set."""
    model = getattr(encoder, "sentence_transformer", encoder).eval()
    return float(evaluate(model, task="stsb").scores["stsb"].score)


def show(found: dict[str, Any]) -> None:
    """The rows of one comparison."""
    print(f"\n{name_of(found)}")
    for side, row in found["rows"].items():
        loss = f"   held-out loss {statistics.mean(row['held_out_loss']):.4f}" if row["held_out_loss"] else ""
        quality = f"   STS-B {statistics.mean(row['stsb']):.2f}" if row["stsb"] else ""
        print(f"  {side:16} {row['sentences_per_second']:8.1f} sentences/s{loss}{quality}")


def name_of(found: dict[str, Any]) -> str:
    """A comparison in words."""
    return f"{found['method']} {found['base']} batch {found['batch_size']}"


def main() -> None:
    """Run the comparisons and print the ratios last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=list(OPTIONS), choices=list(OPTIONS), metavar="NAME")
    parser.add_argument("--bases", nargs="+", metavar="BASE", help="default: bundled-raw; with --full MiniLM, too")
    parser.add_argument("--batch-sizes", nargs="+", type=int, metavar="N", help="default: 32; with --full 8, 32, 128")
    parser.add_argument("--corpus", default="python:stdlib")
    parser.add_argument("--sentences", type=int, default=1024)
    parser.add_argument("--repetitions", type=int, help="default: 3, or 2 where both sides are tried in two precisions")
    parser.add_argument("--full", action="store_true", help="both bases, three batch sizes")
    parser.add_argument("--processor-time", action="store_true", help="seconds of the processor, on a machine in use")
    parser.add_argument("--output", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    if options.processor_time:
        time.perf_counter = time.process_time
    options.repetitions = options.repetitions or (2 if computes_bfloat16(DEVICE) else 3)
    bases = options.bases or (["bundled-raw", MINILM] if options.full else ["bundled-raw"])
    sizes = options.batch_sizes or ([8, 32, 128] if options.full else [32])
    texts, held = draw_sentences(options.sentences, options.corpus)
    report: dict[str, Any] = {
        "machine": machine(), "corpus": options.corpus, "sentences": len(texts), "repetitions": options.repetitions,
        "processor_time": options.processor_time, "comparisons": [],
    }  # fmt: skip
    print(report["machine"])
    print(f"{len(texts):,} sentences of {options.corpus}")
    for base in bases:
        for size in sizes:
            for method in options.methods:
                report["comparisons"].append(compare(method, base, size, texts, held, options))
                show(report["comparisons"][-1])
                if options.output:
                    write_json(options.output, report)
    print()
    several = len(bases) * len(sizes) > 1
    for found in report["comparisons"]:
        if "ratio" in found:
            print(f"{name_of(found) if several else found['method']} {found['ratio']:.2f}x")


if __name__ == "__main__":
    main()
