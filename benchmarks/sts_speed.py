"""Encoding speed on the suite `sts`: selfsent against `SentenceTransformer.encode` with its defaults.

    python benchmarks/sts_speed.py MODEL --data DIR                # every sentence of the suite
    python benchmarks/sts_speed.py MODEL --data DIR --limit 20     # a quick look: 20 pairs of each set
    OMP_NUM_THREADS=1 RAYON_NUM_THREADS=1 python benchmarks/sts_speed.py MODEL --data DIR --fast --processor-time

Both sides run the same loop over the data sets: encode the left sentences, the right ones, take the cosine and its
Spearman with the scores. selfsent remembers sentences that it has seen in this suite, as `selfsent evaluate` does;
the other side encodes what it is given. They alternate, loading and imports are left out, medians count, and both must
come to the same scores (within 0.02 points in float32, 0.05 in bfloat16). With --fast selfsent computes in bfloat16
where the processor has it, else in float32, as its commands do. With --processor-time, other work on the machine does
not count; it is for single threads. selfsent's interval (1,000 resamples) is left
out as well: the other side has none.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sides import base_of, machine

from selfsent.encoder import load_encoder
from selfsent.encoding import encode
from selfsent.errors import DataError
from selfsent.evaluation.datasets import Rows, Store
from selfsent.evaluation.encoders import Encoder
from selfsent.evaluation.statistics import cosines
from selfsent.evaluation.sts import STS
from selfsent.training.precision import computes_bfloat16

Scores = dict[str, float]
TOLERANCE = {False: 0.02, True: 0.05}


def data_sets(store: Store, limit: int | None) -> list[Rows]:
    """The sets of the suite that are here, cut to so many pairs."""
    found = []
    for dataset in STS:
        try:
            rows = store.load(dataset)
        except DataError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        columns = {name: rows[name][:limit] for name in ("sentence1", "sentence2", "score")}
        found.append(Rows(rows.name, columns, rows.fingerprint))
    return found


def run(
    sets: list[Rows], similarity: Callable[[list[str], list[str]], np.ndarray], clock: Callable[[], float]
) -> tuple[float, Scores]:
    """Seconds of the whole suite, and its scores times 100."""
    start = clock()
    scores = {
        rows.name: 100 * float(spearmanr(similarity(rows["sentence1"], rows["sentence2"]), rows["score"])[0])
        for rows in sets
    }
    return clock() - start, scores


def main() -> None:
    """Run the comparison and print the ratio last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a sentence-transformers directory, bundled, or all-MiniLM-L6-v2")
    parser.add_argument("--data", type=Path, required=True, help="mirror of the data sets")
    parser.add_argument("--limit", type=int, help="pairs of each set (default: all)")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--fast", action="store_true", help="selfsent computes in bfloat16, where there is any")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="for both sides")
    parser.add_argument("--processor-time", action="store_true", help="seconds of the processor, not of the clock")
    parser.add_argument("--output", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    clock = time.process_time if options.processor_time else time.perf_counter
    fast = options.fast and computes_bfloat16(options.device)
    sets = data_sets(Store(options.data), options.limit)
    base = base_of(options.model)
    peer = SentenceTransformer(base, device=options.device)
    model = load_encoder(base).to(options.device)

    def theirs(left: list[str], right: list[str]) -> np.ndarray:
        return cosines(peer.encode(left, show_progress_bar=False), peer.encode(right, show_progress_bar=False))

    def one(side: str) -> tuple[float, Scores]:
        if side == "theirs":
            return run(sets, theirs, clock)
        # A new one each time: it must not remember the sentences of the last repetition.
        return run(sets, Encoder(lambda texts: encode(model, texts, fast), "model").similarity, clock)

    warm = sets[0]["sentence1"][:64]
    encode(model, warm, fast)
    peer.encode(warm, show_progress_bar=False)
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    scores: dict[str, Scores] = {}
    for number in range(options.repetitions):
        for side in ("ours", "theirs") if number % 2 == 0 else ("theirs", "ours"):
            taken, scores[side] = one(side)
            seconds[side].append(taken)
            print(f"  {side}: {taken:.1f} s", file=sys.stderr)
    sentences = sum(2 * len(rows) for rows in sets)
    distinct = len({text for rows in sets for name in ("sentence1", "sentence2") for text in rows[name]})
    print(f"{sentences:,} sentences, {distinct:,} distinct, of {', '.join(rows.name for rows in sets)}")
    precision = "bfloat16" if fast else "float32"
    about = machine()
    print(f"{about['processor']}, {options.device}, {about['threads']} threads, {precision}")
    medians = {side: statistics.median(values) for side, values in seconds.items()}
    for side, median in medians.items():
        print(f"  {side:6} {median:8.1f} s   {sentences / median:8.0f} sentences/s")
    apart = max(abs(scores["ours"][name] - scores["theirs"][name]) for name in scores["ours"])
    print(f"  scores differ by {apart:.4f} points at most")
    ratio = medians["theirs"] / medians["ours"]
    if options.output:
        figures = {"seconds": seconds, "scores": scores, "sentences": sentences, "distinct": distinct, "ratio": ratio}
        asked = {"limit": options.limit, "fast": options.fast, "device": options.device}
        asked |= {"precision": precision, "processor_time": options.processor_time}
        options.output.write_text(json.dumps({**asked, **about, **figures}, indent=1) + "\n")
    if apart > TOLERANCE[fast]:
        raise SystemExit(f"the scores differ by {apart:.3f} points: the two sides do not compute the same")
    print(f"sts {ratio:.2f}x")


if __name__ == "__main__":
    main()
