"""The most similar pairs among 10,000 sentences, from loaded model to answer, against `paraphrase_mining`.

    python benchmarks/pairs.py
    python benchmarks/pairs.py --sentences 100000 --corpus text.txt.zst --repetitions 1

Ours and theirs alternate; medians are compared, encoding included, and the fastest of ours is held against the fastest
of theirs: in float32 or, where the processor computes it, in bfloat16. Beside the times: how much of it is encoding,
how many of the best pairs of their float32 each side finds, and how far the cosines are apart.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import DEVICE, alternate, base_of, machine, medians, ours_in_every_precision, peer, sentences
from sentence_transformers.util import paraphrase_mining

from selfsent.data.vector_files import unit
from selfsent.files import write_json
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.models.precision import computes_bfloat16
from selfsent.search.pairs import Pair, most_similar_pairs

SAME = 0.9
"""Share of the best pairs of their float32 that a setting has to find, to be one of the same quality."""
Mined = dict[tuple[int, int], float]


def named(pairs: list[Pair]) -> Mined:
    """Cosine by rows."""
    return {(pair.first, pair.second): pair.cosine for pair in pairs}


def main() -> None:
    """Run the comparison and print the ratio last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", default="bundled-raw")
    parser.add_argument("--corpus", help="any corpus (default: STS-B from SELFSENT_DATA, else python:stdlib)")
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--top", type=int, default=100)
    sizes = [32, 128] if DEVICE == "cpu" else [32, 128, 512, 2048]
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=sizes, help="of the peer")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--output", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    texts, source = sentences(options.sentences, options.corpus)
    base = base_of(options.base)
    encoding: dict[str, list[float]] = {}

    def ours(side: str, model: Encoder) -> Mined:
        start = time.perf_counter()
        vectors = unit(encode(model, texts))
        encoding.setdefault(side, []).append(time.perf_counter() - start)
        return named(most_similar_pairs(vectors, options.top))

    def theirs(model: Any, batch_size: int) -> Mined:
        found = paraphrase_mining(model, texts, batch_size=batch_size)[: options.top]
        return {(min(i, j), max(i, j)): float(score) for score, i, j in found}

    sides: dict[str, Callable[[], Mined]] = {
        f"ours {name}": partial(ours, f"ours {name}", model) for name, model in ours_in_every_precision(base).items()
    }
    low = (torch.bfloat16, torch.float16) if DEVICE == "cuda" else (torch.bfloat16,) * computes_bfloat16(DEVICE)
    for kind in (torch.float32, *low):
        model = peer(base, kind)
        sides |= {f"theirs {str(kind)[6:]}, batch {n}": partial(theirs, model, n) for n in options.batch_sizes}
    for run in sides.values():
        run()  # to warm up
    encoding.clear()
    seconds, found = alternate(sides, options.repetitions)
    taken = medians(seconds)
    exact = found[f"theirs float32, batch {options.batch_sizes[0]}"]
    both = {side: pairs.keys() & exact.keys() for side, pairs in found.items()}
    apart = {side: max((abs(found[side][p] - exact[p]) for p in pairs), default=0.0) for side, pairs in both.items()}
    fair = [side for side, pairs in both.items() if len(pairs) >= SAME * len(exact)]
    best, fastest = (
        min((side for side in fair if side.startswith(who)), key=lambda side: taken[side]) for who in ("ours", "theirs")
    )
    described = machine()
    print(described)
    print(f"\n{len(texts):,} sentences of {source}, {options.base}")
    for side, median in taken.items():
        print(
            f"  {side:26} {median:8.2f} s   {len(both[side])} of the {len(exact)} best pairs of their float32,"
            f" cosines at most {apart[side]:.1e} apart"
        )
    for side, taken_by in encoding.items():
        print(f"  of {side}, {np.median(taken_by):.2f} s are encoding")
    ratio = taken[fastest] / taken[best]
    print(f"\npairs {ratio:.2f}x")
    if options.output:
        report: dict[str, Any] = {
            "machine": described,
            "corpus": source,
            "sentences": len(texts),
            "base": options.base,
            "seconds": seconds,
            "encoding_seconds": encoding,
            "pairs_in_common": {side: len(pairs) for side, pairs in both.items()},
            "top": options.top,
            "largest_difference": apart,
            "fastest": [best, fastest],
            "ratio": ratio,
        }
        write_json(options.output, report)


if __name__ == "__main__":
    main()
