"""Encoding speed on the suite `sts`: selfsent against `SentenceTransformer.encode` with its defaults.

    python benchmarks/sts_speed.py MODEL --data DIR                # every sentence of the suite
    python benchmarks/sts_speed.py MODEL --data DIR --limit 20     # a quick look: 20 pairs of each set
    OMP_NUM_THREADS=1 RAYON_NUM_THREADS=1 python benchmarks/sts_speed.py MODEL --data DIR --fast --processor-time

Both sides run the same loop over the data sets, in turn: encode the left sentences, the right ones, take the cosine and
its Spearman with the scores. selfsent remembers sentences that it has seen in this suite, as `selfsent evaluate` does;
the other side encodes what it is given. Loading and imports are left out, and both must come to the same scores (within
0.02 points in float32, 0.05 in bfloat16, 0.2 in 8 bits). With --fast and --int8 selfsent computes in fewer bits where
the processor has them, else in float32, as its commands do. With --processor-time, other work on the machine does not
count; it is for single threads. selfsent's interval (1,000 resamples) is left out: the other side has none. Tokens are
those that went through the transformer, padding included.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sides import base_of, machine

from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import Rows, Store
from selfsent.evaluation.encoders import Encoder
from selfsent.evaluation.stats.metrics import cosines
from selfsent.evaluation.tasks.sts import STS
from selfsent.files import write_json
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.models.precision import quick_precision, quicken

TOLERANCE = {"float32": 0.02, "bfloat16": 0.05, "int8": 0.2}


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


@dataclass
class Side:
    """One of the two: how it compares sentences, and what it took and found, by data set."""

    similarity: Callable[[list[str], list[str]], np.ndarray]
    seconds: dict[str, float] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    tokens: int = 0

    def count(self, transformer: Any) -> None:
        """Count the tokens that go through a transformer."""

        def add(module: Any, inputs: Any) -> None:
            self.tokens += inputs[0].numel()

        transformer.get_input_embeddings().register_forward_pre_hook(add)

    def score(self, rows: Rows, clock: Callable[[], float]) -> None:
        """Score one data set."""
        start = clock()
        found = spearmanr(self.similarity(rows["sentence1"], rows["sentence2"]), rows["score"])[0]
        self.seconds[rows.name], self.scores[rows.name] = clock() - start, 100 * float(found)


def sides(base: str, device: str, bits: dict[str, bool], warm: list[str]) -> dict[str, Side]:
    """Both sides, loaded and warm."""
    # Saved in float16, as bundled-raw is, it would be run so, which is several times slower on a CPU.
    peer = SentenceTransformer(base, device=device, model_kwargs={"dtype": torch.float32})
    model = quicken(load_encoder(base).to(device), **bits)

    def theirs(left: list[str], right: list[str]) -> np.ndarray:
        return cosines(peer.encode(left, show_progress_bar=False), peer.encode(right, show_progress_bar=False))

    theirs(warm, warm)
    encode(model, warm)
    found = {
        "ours": Side(Encoder(lambda texts: encode(model, texts), "model").similarity),
        "theirs": Side(theirs),
    }
    found["ours"].count(model.transformer)
    found["theirs"].count(peer[0].model)
    return found


def figures(sets: list[Rows], both: dict[str, Side]) -> dict[str, Any]:
    """What has been measured so far."""
    done = [rows for rows in sets if rows.name in both["theirs"].scores and rows.name in both["ours"].scores]
    total = {name: sum(side.seconds[rows.name] for rows in done) for name, side in both.items()}
    return {
        "sets": [rows.name for rows in done],
        "sentences": sum(2 * len(rows) for rows in done),
        "distinct": len({text for rows in done for name in ("sentence1", "sentence2") for text in rows[name]}),
        "total_seconds": total,
        "ratio": total["theirs"] / total["ours"],
        **{
            name: {key: value for key, value in vars(side).items() if key != "similarity"}
            for name, side in both.items()
        },
    }


def main() -> None:
    """Run the comparison and print the ratio last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a sentence-transformers directory, bundled, or all-MiniLM-L6-v2")
    parser.add_argument("--data", type=Path, required=True, help="mirror of the data sets")
    parser.add_argument("--limit", type=int, help="pairs of each set (default: all)")
    parser.add_argument("--fast", action="store_true", help="selfsent computes in bfloat16, where there is any")
    parser.add_argument("--int8", action="store_true", help="selfsent computes some products in 8 bits, where it can")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="for both sides")
    parser.add_argument("--processor-time", action="store_true", help="seconds of the processor, not of the clock")
    parser.add_argument("--output", type=Path, help="write all figures as JSON, again after every data set")
    options = parser.parse_args()
    clock = time.process_time if options.processor_time else time.perf_counter
    bits = {"fast": options.fast, "int8": options.int8}
    precision = quick_precision(options.device, **bits)
    sets = data_sets(Store(options.data), options.limit)
    both = sides(base_of(options.model), options.device, bits, sets[0]["sentence1"][:64])
    asked = {"model": options.model, "limit": options.limit, "fast": options.fast, "device": options.device}
    asked |= {"precision": precision, "processor_time": options.processor_time, **machine()}
    for number, rows in enumerate(sets):
        for name in ("ours", "theirs") if number % 2 == 0 else ("theirs", "ours"):
            both[name].score(rows, clock)
        print(f"  {rows.name}: " + ", ".join(f"{name} {side.seconds[rows.name]:.1f} s" for name, side in both.items()))
        if options.output:
            write_json(options.output, asked | figures(sets, both))
    found, ours, theirs = figures(sets, both), both["ours"], both["theirs"]
    print(f"{found['sentences']:,} sentences, {found['distinct']:,} distinct, of {', '.join(found['sets'])}")
    print(f"{asked['processor']}, {options.device}, {asked['threads']} threads, {asked['precision']}")
    for name, side in both.items():
        print(f"  {name:6} {found['total_seconds'][name]:8.1f} s {side.tokens:12,} tokens")
    apart = max(abs(ours.scores[name] - theirs.scores[name]) for name in ours.scores)
    print(f"  scores differ by {apart:.4f} points at most")
    if apart > TOLERANCE[precision]:
        raise SystemExit(f"the scores differ by {apart:.3f} points: the two sides do not compute the same")
    print(f"sts {found['ratio']:.2f}x")


if __name__ == "__main__":
    main()
