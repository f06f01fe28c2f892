"""What a borrowed GPU is to tell, in one run: CUDA paths against their twins, and the share of its peak in training.

    python benchmarks/gpu.py --output docs/results/speed/gpu.json   # on a GPU, in ten minutes
    python benchmarks/gpu.py --smoke                                # the same on a CPU, with a small encoder

First come the tests that need a GPU. Then `simcse` (two views), `mlm` and encoding are timed at BERT-base's shape in
bfloat16, on sentences of all lengths. Operations are 6 · weights · tokens of training and 2 · weights · tokens of
encoding, weights without embeddings and tokens without padding; the peak is that of a large matrix product here, not
the one in the data sheet.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from harness import BERT_BASE, DEVICE, base_of, machine, sentences, wait_for_device
from trainers import ours

from selfsent.files import write_json
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.models.precision import into_bfloat16

TESTS = ("tests/fast/test_borders.py", "tests/contract/test_two_processes.py")
VIEWS = {"simcse": 2, "mlm": 1}
"""Times a method reads each sentence."""
AIM = 0.35


def peak(size: int) -> float:
    """Operations a second of a square product in bfloat16, the best of five."""
    one, other = (torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    best = 0.0
    for _ in range(6):  # the first one loads the kernel
        wait_for_device()
        start = time.perf_counter()
        one @ other
        wait_for_device()
        best = max(best, 2 * size**3 / (time.perf_counter() - start))
    return best


def shares(base: str, texts: list[str], batch_size: int, most: float) -> dict[str, dict[str, float]]:
    """Seconds, and share of the peak, of each method and of encoding."""
    encoder = load_encoder(base_of(base), "mean").to(DEVICE)
    weights = sum(each.numel() for name, each in encoder.transformer.named_parameters() if "embeddings" not in name)
    tokens = sum(map(len, encoder.tokenizer(texts, truncation=True, max_length=64)["input_ids"]))
    rows: dict[str, dict[str, float]] = {}
    for method, views in VIEWS.items():
        ours(method, texts[: 4 * batch_size], base_of(base), batch_size, "bfloat16", 0)  # kernels are loaded
        seconds = ours(method, texts, base_of(base), batch_size, "bfloat16", 0).seconds
        rows[method] = {"seconds": seconds, "share": 6 * weights * tokens * views / seconds / most}
    for precision, model in (("float32", encoder), ("bfloat16", into_bfloat16(copy.deepcopy(encoder)))):
        encode(model, texts[: 4 * batch_size])
        start = time.perf_counter()
        encode(model, texts)
        seconds = time.perf_counter() - start
        rows[f"encode in {precision}"] = {"seconds": seconds, "share": 2 * weights * tokens / seconds / most}
    return rows


def main() -> None:
    """Run the tests, then the timings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="on a CPU: bundled-raw on 256 sentences, nothing written")
    parser.add_argument("--source", help="corpus to read (default: STS-B, else the standard library)")
    parser.add_argument("--sentences", type=int, default=50_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if DEVICE == "cpu" and not options.smoke:
        raise SystemExit("torch finds no CUDA device; --smoke tries the script on a CPU")
    said = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rs", *TESTS], check=False).returncode
    base, count, size = ("bundled-raw", 256, 512) if options.smoke else (BERT_BASE, options.sentences, 8192)
    texts, source = sentences(count, options.source)
    most = peak(size)
    rows: dict[str, Any] = shares(base, texts, 16 if options.smoke else options.batch_size, most)
    found = {"machine": machine(), "source": source, "sentences": len(texts), "peak": most, "tests": said, "rows": rows}
    print(json.dumps(found, indent=1))
    for method, row in rows.items():
        print(f"{method}: {row['seconds']:.1f} s, {row['share']:.1%} of the peak (aim of training: {AIM:.0%})")
    if options.output:
        write_json(options.output, found)
    sys.exit(said)


if __name__ == "__main__":
    main()
