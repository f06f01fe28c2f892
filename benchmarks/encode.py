"""Encoding speed against `SentenceTransformer.encode`: same model, sentences and machine, from text to vectors.

    python benchmarks/encode.py                  # bundled-raw and all-MiniLM-L6-v2, in under 20 minutes
    python benchmarks/encode.py --full           # all batch sizes of the peer

Ours and theirs alternate; medians are compared. The peer's fastest setting whose vectors are the float32 ones (cosine
0.999 or more to its own defaults) is what ours is held against; the ratio to its defaults stands beside it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import DEVICE, MINILM, alternate, base_of, machine, medians, ours_in_every_precision, peer, sentences
from numpy.typing import NDArray

from selfsent.files import write_json
from selfsent.models.encoding import encode
from selfsent.models.precision import computes_bfloat16

SAME = 0.999
Vectors = NDArray[np.float32]
Side = Callable[[], Vectors]


def theirs(base: str, texts: list[str], full: bool) -> dict[str, Side]:
    """The defaults, larger batches, and fewer bits."""

    def side(batch_size: int = 32, dtype: torch.dtype = torch.float32, compiled: bool = False) -> Side:
        model = peer(base, dtype)
        if compiled:
            model[0].model.compile(dynamic=True)
        return lambda: np.asarray(model.encode(texts, batch_size=batch_size, show_progress_bar=False), np.float32)

    sides = {"theirs defaults": side()}
    sides |= {f"theirs batch {size}": side(size) for size in ((8, 64, 128, 256) if full else (128,))}
    if computes_bfloat16(DEVICE):
        half = torch.bfloat16
        sides["theirs bfloat16"] = side(dtype=half)
        if full:
            sides |= {f"theirs bfloat16, batch {size}": side(size, half) for size in (64, 128)}
            sides["theirs bfloat16, compiled"] = side(dtype=half, compiled=True)
    for size in (128, 512, 2048) if DEVICE == "cuda" else ():
        for kind in (torch.bfloat16, torch.float16):
            sides[f"theirs {str(kind)[6:]} batch {size}"] = side(size, kind)
    return sides


def cosine(vectors: Vectors, reference: Vectors) -> tuple[float, float]:
    """Smallest and mean cosine to the peer's own float32 vectors."""
    product = (vectors * reference).sum(axis=1)
    cosines = product / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(reference, axis=1))
    return float(cosines.min()), float(cosines.mean())


def compare(name: str, texts: list[str], options: Any) -> dict[str, Any]:
    """One base: a line for each setting, and the ratios."""
    base = base_of(name)
    ours = ours_in_every_precision(base)
    sides: dict[str, Side] = {f"ours {name}": partial(encode, model, texts) for name, model in ours.items()}
    sides |= theirs(base, texts, options.full)
    encode(ours["float32"], texts[:256])
    seconds, vectors = alternate(sides, options.repetitions)
    taken = medians(seconds)
    rows = {}
    print(f"\n{name}, {len(texts):,} sentences")
    for side, median in taken.items():
        least, mean = cosine(vectors[side], vectors["theirs defaults"])
        rows[side] = {
            "seconds": seconds[side],
            "sentences_per_second": len(texts) / median,
            "smallest_cosine": least,
            "mean_cosine": mean,
        }
        print(
            f"  {side:26} {len(texts) / median:8.1f} sentences/s"
            f"   cosine to float32: least {least:.6f}, mean {mean:.6f}"
        )
    fair = [side for side, row in rows.items() if row["smallest_cosine"] >= SAME]
    fastest = {who: min(taken[side] for side in fair if side.startswith(who)) for who in ("ours", "theirs")}
    return {
        "rows": rows,
        "ratio": fastest["theirs"] / fastest["ours"],
        "ratio_to_defaults": taken["theirs defaults"] / fastest["ours"],
        "ratios_to_defaults": {side: taken["theirs defaults"] / taken[side] for side in rows if side[:4] == "ours"},
    }


def main() -> None:
    """Run the comparison and print the ratios last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bases", nargs="+", default=["bundled-raw", MINILM])
    parser.add_argument("--corpus", help="any corpus (default: STS-B from SELFSENT_DATA, else python:stdlib)")
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="every batch size")
    parser.add_argument("--output", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    texts, source = sentences(options.sentences, options.corpus)
    report: dict[str, Any] = {"machine": machine(), "sentences": len(texts), "corpus": source, "bases": {}}
    print(report["machine"])
    for name in options.bases:
        report["bases"][name] = compare(name, texts, options)
    print()
    for name, figures in report["bases"].items():
        for side, ratio in figures["ratios_to_defaults"].items():
            print(f"encode {name}, {side} against defaults {ratio:.2f}x")
    for name, figures in report["bases"].items():
        label = "encode" if len(report["bases"]) == 1 else f"encode {name}"
        print(f"{label} {figures['ratio']:.2f}x")
    if options.output:
        write_json(options.output, report)


if __name__ == "__main__":
    main()
