"""What each fast path is worth: end-to-end speed with it and without it, in turn, in one process.

    python benchmarks/fast_paths.py --output docs/results/speed/fast_paths.json

A row is kept for each kind of processor: run it on every kind, and what is there of others stays. A path that gains
less than a tenth in none of its cases can go. Training: sentences of STS-B's training pairs, from text to weights.
Encoding: the same sentences, from text to vectors.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from sides import base_of, machine, medians, sentences
from trainers import ours

from selfsent.fast import attention, filled_rows
from selfsent.files import write_json
from selfsent.methods import method as methods
from selfsent.models import encoding
from selfsent.models.loading import load_encoder
from selfsent.models.precision import computes_bfloat16, quicken
from selfsent.models.token_states import TokenStates
from selfsent.training import loop as loops

Without = Callable[[], Any]


@contextmanager
def in_turn() -> Iterator[None]:
    """Batches one after the other."""

    def one_by_one(work: Callable[[Any], None], items: Any, device: Any) -> None:
        for item in items:
            work(item)

    with patch.object(encoding, "share_out", one_by_one):
        yield


TRAINING: dict[str, tuple[str, Without, tuple[tuple[str, str, int], ...]]] = {
    "packed rows": (
        "linear layers see no padding",
        partial(patch.object, TokenStates, "_try_packed", lambda self: False),
        (("simcse", "bundled-raw", 32), ("simcse", "all-MiniLM-L6-v2", 32)),
    ),
    "attention in products": (
        "attention of short sentences in bfloat16, not fused",
        partial(patch.object, attention, "SHORT", {False: 0, True: 0}),
        (("simcse", "bundled-raw", 32), ("ct", "all-MiniLM-L6-v2", 32)),
    ),
    "lookups": (
        "gradients of embeddings are added to their rows",
        partial(patch.object, loops, "put_lookups", lambda module: None),
        (("simcse", "bundled-raw", 8), ("mlm", "all-MiniLM-L6-v2", 8)),
    ),
    "rows of few lengths": (
        "products in bfloat16 are compiled once for each shape",
        partial(patch.object, filled_rows, "_compiles", lambda device: False),
        (("tsdae", "bundled-raw", 8), ("simcse", "bundled-raw", 32), ("simcse", "all-MiniLM-L6-v2", 32)),
    ),
    "two threads": (
        "two networks at the same time",
        partial(patch.object, methods, "at_once", lambda one, other: (one(), other())),
        (("ct", "bundled-raw", 8), ("ct", "all-MiniLM-L6-v2", 32)),
    ),
}
"""What each path is for, how to go without it, and where it is measured: method, base and batch size."""
ENCODING: dict[str, tuple[str, Without, str]] = {
    "packed rows": ("see above", partial(patch.object, TokenStates, "_try_packed", lambda self: False), "float32"),
    "attention in products": (
        "attention of short sentences in bfloat16, not fused",
        partial(patch.object, attention, "SHORT", {False: 0, True: 0}),
        "bfloat16",
    ),
    "two threads, encoding": ("each core has batches of its own", in_turn, "float32"),
    "laid-out weights": (
        "weights of --fast as oneDNN reads them",
        partial(patch, "selfsent.fast.bfloat16.lays_out_bfloat16", lambda: False),
        "bfloat16",
    ),
    "bfloat16": (
        "--fast",
        partial(patch, "selfsent.models.precision.computes_bfloat16", lambda device: False),
        "bfloat16",
    ),
    "8 bits": ("--int8", partial(patch, "selfsent.models.precision.computes_int8", lambda device: False), "int8"),
}
"""The same for encoding: the precision in place of the method."""


def seconds_of(work: Callable[[int], float], without: Without, repetitions: int) -> dict[str, list[float]]:
    """Seconds with the path and without it, in turn; each time with another seed, as products are kept for a shape."""
    found: dict[str, list[float]] = {"with": [], "without": []}
    for seed in range(repetitions):
        found["with"].append(work(seed))
        with without():
            found["without"].append(work(seed))
    return found


def train(method: str, base: str, batch: int, texts: list[str], precision: str, seed: int) -> float:
    """Seconds of a training."""
    return ours(method, texts, base_of(base), batch, precision, seed).seconds


def encode(base: str, texts: list[str], precision: str, seed: int) -> float:
    """Seconds from text to vectors, the second time of two."""
    model = load_encoder(base_of(base), "mean")
    quicken(model, fast=precision == "bfloat16", int8=precision == "int8")
    encoding.encode(model, texts[:500])
    start = time.perf_counter()
    encoding.encode(model, texts)
    return time.perf_counter() - start


def main() -> None:
    """Measure what is missing for this kind of processor, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=512, help="to train on")
    parser.add_argument("--path", help="the name of one path, to measure it alone")
    options = parser.parse_args()
    low = computes_bfloat16("cuda" if torch.cuda.is_available() else "cpu")
    kind, precision = ("with bfloat16", "bfloat16") if low else ("without bfloat16", "float32")
    kind = "with AMX" if machine()["capability"] == "AMX" else kind
    report: dict[str, Any] = json.loads(options.output.read_text()) if options.output.is_file() else {}
    here = report.setdefault(kind, {"machine": machine(), "rows": {}})
    texts, _ = sentences(4096, None)
    jobs: dict[str, tuple[str, Without, Callable[[int], float]]] = {}
    for name, (what, without, cases) in TRAINING.items():
        for method, base, batch in cases:
            work = partial(train, method, base, batch, texts[: options.sentences], precision)
            jobs[f"{name} | {method}, {base}, batch {batch}"] = what, without, work
    for name, (what, without, form) in ENCODING.items():
        for base in ("bundled-raw", "all-MiniLM-L6-v2"):
            jobs[f"{name} | encode, {base}, {form}"] = what, without, partial(encode, base, texts, form)
    for key, (what, without, work) in jobs.items():
        if key in here["rows"] or options.path not in (None, key.partition(" | ")[0]):
            continue
        found = seconds_of(work, without, options.repetitions)
        middle = medians(found)
        ratio = round(middle["without"] / middle["with"], 3)
        here["rows"][key] = {"what": what, "seconds": found, "ratio": ratio}
        write_json(options.output, report)
        print(f"{key}: {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
