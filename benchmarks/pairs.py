"""The most similar pairs among 10,000 sentences, from loaded model to answer, against `paraphrase_mining`.

    python benchmarks/pairs.py
    python benchmarks/pairs.py --sentences 100000 --corpus text.txt.zst --repetitions 1

Ours and theirs alternate; medians are compared, encoding included. Beside the times: how much of it is encoding, how
many of the best pairs both sides name, and how far their cosines are apart.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import paraphrase_mining
from sides import alternate, base_of, machine, medians, sentences

from selfsent.encoder import load_encoder
from selfsent.encoding import encode
from selfsent.files import write_json
from selfsent.search.pairs import Pair, most_similar_pairs
from selfsent.search.vectors import unit

Mined = dict[tuple[int, int], float]


def named(pairs: list[Pair]) -> Mined:
    """Cosine by rows."""
    return {(pair.first, pair.second): pair.cosine for pair in pairs}


def main() -> None:
    """Run the comparison and print the ratio last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", default="bundled")
    parser.add_argument("--corpus", help="any corpus (default: STS-B from SELFSENT_DATA, else python:stdlib)")
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--top", type=int, default=100)
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[32, 128], help="of the peer")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--output", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    texts, source = sentences(options.sentences, options.corpus)
    base = base_of(options.base)
    model = load_encoder(base)
    # As it was saved, the bundled encoder would be run in float16, which is slow on a CPU.
    how = {"dtype": torch.float32}
    peer = SentenceTransformer(base, device="cpu", local_files_only=True, model_kwargs=how)
    encoding: list[float] = []

    def ours() -> Mined:
        start = time.perf_counter()
        vectors = unit(encode(model, texts))
        encoding.append(time.perf_counter() - start)
        return named(most_similar_pairs(vectors, options.top))

    def theirs(batch_size: int) -> Mined:
        found = paraphrase_mining(peer, texts, batch_size=batch_size)[: options.top]
        return {(min(i, j), max(i, j)): float(score) for score, i, j in found}

    encode(model, texts[:256])
    peer.encode(texts[:256])
    sides = {"ours": ours, **{f"theirs batch {s}": (lambda s=s: theirs(s)) for s in options.batch_sizes}}
    seconds, found = alternate(sides, options.repetitions)
    taken = medians(seconds)
    fastest = min((side for side in taken if side != "ours"), key=lambda side: taken[side])
    both = found["ours"].keys() & found[fastest].keys()
    apart = max((abs(found["ours"][pair] - found[fastest][pair]) for pair in both), default=0.0)
    described = machine()
    print(described)
    print(f"\n{len(texts):,} sentences of {source}, {options.base}")
    for side, median in taken.items():
        print(f"  {side:18} {median:8.2f} s")
    print(f"  of ours, {np.median(encoding):.2f} s are encoding")
    print(f"  {len(both)} of {len(found['ours'])} pairs are named by both, cosines at most {apart:.1e} apart")
    ratio = taken[fastest] / taken["ours"]
    print(f"\npairs {ratio:.2f}x")
    if options.output:
        report: dict[str, Any] = {
            "machine": described,
            "corpus": source,
            "sentences": len(texts),
            "base": options.base,
            "seconds": seconds,
            "encoding_seconds": encoding,
            "pairs_in_common": len(both),
            "top": options.top,
            "largest_difference": apart,
            "ratio": ratio,
        }
        write_json(options.output, report)


if __name__ == "__main__":
    main()
