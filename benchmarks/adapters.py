"""Adapters beside the whole network: memory and speed of training; and memory against the length of a text.

    python benchmarks/adapters.py lora --base MODEL --output docs/results/speed/lora.json
    python benchmarks/adapters.py long --output docs/results/speed/long_texts.json

`lora` takes steps of SimCSE's loss over batches of one length, AdamW and float32, in a process each: seconds of the
processor a step, without the first one, and the peak of resident memory, weights included. `long` encodes, and trains
on, one text by random networks of the shapes of ModernBERT and EmbeddingGemma: the peak above what is held before.
`--source FOLDER` measures the code of another checkout.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[1]
SHAPES: dict[str, dict[str, Any]] = {
    "modernbert": {"local_attention": 128, "global_attn_every_n_layers": 3},
    "gemma3_text": {
        **{"sliding_window": 512, "use_bidirectional_attention": True, "query_pre_attn_scalar": 64, "head_dim": 64},
        **{"num_key_value_heads": 1},
    },
}
LENGTHS = (1024, 2048, 4096, 8192)
BATCH, TOKENS, STEPS = 16, 32, 3


def resident(name: str) -> float:
    """MiB of this process: `VmRSS` now, `VmHWM` at most since `forget_peak`."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[name].split()[0]) / 1024


def forget_peak() -> float:
    """Begin a new peak; MiB now."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def random_base(folder: Path, kind: str, tokenizer: Any, **values: Any) -> Path:
    """A network of random weights in a folder."""
    from transformers import AutoConfig, AutoModel

    names = ("pad", "cls", "sep")
    special = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in names}
    special |= {"bos_token_id": tokenizer.cls_token_id, "eos_token_id": tokenizer.sep_token_id}
    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model(kind, **{**special, **values})).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def long_texts(kind: str, most: int) -> dict[str, dict[str, float]]:
    """Peak and seconds of one text of each length, encoded and trained on."""
    sys.path.insert(0, str(ROOT / "tests"))
    import tiny
    from selfsent.data.packed import Packed
    from selfsent.models.loading import load_encoder

    tokenizer = tiny.make_tokenizer("byte pairs")
    tokenizer.model_max_length = LENGTHS[-1]
    shape = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 6, "num_attention_heads": 4}
    shape |= {"vocab_size": len(tokenizer), "max_position_embeddings": LENGTHS[-1], **SHAPES[kind]}
    with tempfile.TemporaryDirectory() as folder:
        model = load_encoder(random_base(Path(folder), kind, tokenizer, **shape), "mean")
    found: dict[str, dict[str, float]] = {}
    for trains in (False, True):
        for tokens in (64, *(length for length in LENGTHS if length <= most)):  # the first one makes what is made once
            packed = Packed(np.random.default_rng(0).integers(10, 200, tokens), np.array([tokens]))
            before, began = forget_peak(), time.process_time()
            with torch.set_grad_enabled(trains):
                vectors = model.train(trains)(packed)
                if trains:
                    vectors.square().sum().backward()
            del vectors
            seconds = time.process_time() - began
            found[f"{'train' if trains else 'encode'} {tokens}"] = {
                "MiB": resident("VmHWM") - before,
                "seconds": seconds,
            }
    return found


def steps(base: str, rank: int) -> dict[str, float]:
    """Peak and seconds of a few steps; with rank 0 of the whole network."""
    from selfsent.data.packed import Packed
    from selfsent.methods import METHODS
    from selfsent.models.loading import load_encoder
    from selfsent.models.lora import put_lora
    from selfsent.settings import Settings
    from selfsent.training.checkpoint import distinct
    from selfsent.training.schedule import make_optimizer

    torch.manual_seed(0)
    model = load_encoder(base, "mean")
    if rank:
        put_lora(model, rank, base)
    options = METHODS["simcse"].options(mlp=False, delete_words=0.1)
    learner = METHODS["simcse"].learner(model, options).train()
    optimizer = make_optimizer(learner, Settings(learning_rate=1e-5))
    ids = np.random.default_rng(0).integers(1000, 9000, BATCH * TOKENS)
    views = [Packed(ids, np.full(BATCH, TOKENS)), Packed(ids[::-1].copy(), np.full(BATCH, TOKENS))]
    weights, seconds = forget_peak(), []
    for _ in range(STEPS):
        began = time.process_time()
        loss = learner(views)
        loss.total.backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.process_time() - began)
    trained = sum(weight.numel() for weight in learner.parameters() if weight.requires_grad)
    kept = sum(each.numel() * each.element_size() for each in distinct(learner).values())
    return {
        "peak, MiB": resident("VmHWM"),
        "above the weights, MiB": resident("VmHWM") - weights,
        "seconds": float(np.median(seconds[1:])),
        "weights": sum(weight.numel() for weight in model.transformer.parameters()),
        "trained": trained,
        "checkpoint, MB": kept / 1e6 + 8 * trained / 1e6,
    }


def alone(*arguments: object, source: Path) -> dict[str, Any]:
    """What a process of its own prints."""
    known = {**os.environ, "PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "one", *map(str, arguments)]
    done = subprocess.run(command, env=known, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(*arguments, found, flush=True)
    return found


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["lora", "long", "one"])
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--base")
    parser.add_argument("--tokenizer", help="of the network of random weights: a folder")
    parser.add_argument("--source", type=Path, default=ROOT)
    parser.add_argument("--most", type=int, default=LENGTHS[-1])
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    if args.what == "one":
        kind, *rest = args.arguments
        if kind == "steps":
            print(json.dumps(steps(rest[0], int(rest[1]))))
        else:
            print(json.dumps(long_texts(rest[0], int(rest[1]))))
        return
    from selfsent.files import read_json, write_json

    found: dict[str, Any] = {}
    if args.what == "long":
        found = {kind: alone("long", kind, args.most, source=args.source) for kind in SHAPES}
    else:
        from transformers import AutoTokenizer

        with tempfile.TemporaryDirectory() as folder:
            tokenizer = AutoTokenizer.from_pretrained(args.tokenizer or args.base)
            large = random_base(Path(folder), "bert", tokenizer, vocab_size=30522)
            for name, base in (("given", args.base), ("110 M", str(large))):
                found[name] = {rank: alone("steps", base, rank, source=args.source) for rank in (0, 16)}
    if args.output:
        write_json(args.output, {**read_json(args.output), "before" if args.source != ROOT else "now": found})


if __name__ == "__main__":
    main()
