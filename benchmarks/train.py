"""Training speed against sentence-transformers' own trainer: same sentences, base, batch size and machine.

    python benchmarks/train.py                 # tsdae and simcse at batch 32, in under 20 minutes
    python benchmarks/train.py --batch-size 128 --base path/to/encoder --repetitions 5

Ours and theirs alternate; medians are compared. Both sides are timed from text to trained weights (reading files and
loading models left out, tokenising left in), over the same number of sentences, and both are then scored on the same
held-out sentences by the same code, so that a faster run that learned less would show. Precision is float32 for both
where the processor does not compute bfloat16; otherwise both are tried in both, and the peer's fastest counts.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from selfsent import read_corpus
from selfsent.api import make_plan
from selfsent.encoder import load_encoder
from selfsent.methods import Learner, get_method
from selfsent.packing import concatenate
from selfsent.training.batches import Batches
from selfsent.training.loop import Habits, Loop
from selfsent.training.precision import computes_bfloat16
from selfsent.training.run_directory import RunDirectory, versions
from selfsent.training.tokens import build_table
from selfsent.views import Template

RATE = 1e-4
HELD_OUT = 512
OPTIONS: dict[str, dict[str, Any]] = {"tsdae": {}, "simcse": {"mlp": False}}


def sentences(count: int, source: str) -> tuple[list[str], list[str]]:
    """Sentences to train on and held-out ones, drawn once."""
    corpus = read_corpus(source)
    rows = np.random.default_rng(0).permutation(len(corpus))[: count + HELD_OUT]
    texts = corpus.texts(rows)
    return texts[HELD_OUT:], texts[:HELD_OUT]


def ours(method: str, texts: list[str], base: str, batch_size: int, precision: str) -> tuple[float, Learner, Any]:
    """Seconds, the trained learner, and the token slots wasted on padding."""
    with tempfile.TemporaryDirectory() as folder:
        plan = make_plan(
            get_method(method), base, batch_size=batch_size, learning_rate=RATE, steps=len(texts) // batch_size,
            precision=precision, **OPTIONS[method],
        )  # fmt: skip
        corpus = read_corpus(texts, cache=Path(folder) / "cache")
        torch.manual_seed(0)
        model = load_encoder(base, plan.pooling)
        learner = plan.method.learner(model, plan.options)
        directory = RunDirectory(Path(folder) / "run")
        directory.check(resume=False, overwrite=False)
        directory.match({})
        directory.begin()
        start = time.perf_counter()
        table = build_table(corpus, model.tokenizer, "text")
        template = Template.of(model.tokenizer, int(model.transformer.config.vocab_size))
        batches = Batches([table], np.arange(len(corpus)), plan.method.views(plan.options), template, plan.settings)
        loop = Loop(learner, batches, plan.settings, directory, Habits(checkpoint_every=10**9))
        loop.steps = plan.settings.steps or 0
        for step in range(loop.steps):
            loop.advance(step)
        seconds = time.perf_counter() - start
        used = slots = 0
        for step in range(min(20, loop.steps)):
            views = batches.views_of(batches.rows_at(step), 0)
            joined = views if method == "tsdae" else [concatenate(views)]
            used, slots = used + sum(v.tokens for v in joined), slots + sum(v.slots for v in joined)
    return seconds, learner, {"linear layers": 0.0, "attention": 1 - used / slots}


def theirs(method: str, texts: list[str], base: str, batch_size: int, precision: str) -> tuple[float, Any, float]:
    """Seconds, the trained loss module, and the share of token slots wasted on padding."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    torch.manual_seed(0)
    transformer = Transformer(base, model_kwargs={"dtype": torch.float32}, max_seq_length=128)
    model = SentenceTransformer(
        modules=[transformer, Pooling(transformer.get_embedding_dimension(), "cls")], device="cpu"
    )
    if method == "tsdae":
        # The decoder is loaded in the checkpoint's own precision, and the tied encoder with it: back to float32.
        loss: Any = losses.DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True).float()
        data = Dataset.from_dict({"damaged": texts, "text": texts})
        draw = random.Random(0)
        data.set_transform(
            lambda batch: {"damaged": [damaged(text, draw) for text in batch["text"]], "text": batch["text"]}
        )
    else:
        loss = losses.MultipleNegativesRankingLoss(model)
        data = Dataset.from_dict({"anchor": texts, "positive": texts})
    slots = used = 0
    collate = model.tokenizer
    for start in range(0, min(len(texts), 20 * batch_size), batch_size):
        mask = collate(
            texts[start : start + batch_size], padding=True, truncation=True, max_length=128, return_tensors="pt"
        )["attention_mask"]
        slots, used = slots + mask.numel(), used + int(mask.sum())
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            folder, per_device_train_batch_size=batch_size, num_train_epochs=1, learning_rate=RATE,
            warmup_steps=0.1, use_cpu=True, bf16=precision == "bfloat16", save_strategy="no",
            logging_strategy="no", report_to="none", disable_tqdm=True, dataloader_drop_last=True, seed=0,
            remove_unused_columns=False,
        )  # fmt: skip
        trainer = SentenceTransformerTrainer(model=model, args=arguments, train_dataset=data, loss=loss)
        start = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - start
    return seconds, loss, 1 - used / slots


def damaged(text: str, draw: random.Random, ratio: float = 0.6) -> str:
    """A sentence less 60 % of its words; one stays."""
    words = text.split()
    kept = [word for word in words if draw.random() >= ratio]
    return " ".join(kept or [draw.choice(words)])


@torch.no_grad()
def held_out_loss(side: str, method: str, trained: Any, held: list[str]) -> float:
    """Mean loss on held-out sentences: the same damaged words, batches and dropout-free networks for both sides.

    For SimCSE, where the two views differ by dropout alone, the encoder runs with dropout, seeded.
    """
    draw = random.Random(1)
    pairs = [(damaged(text, draw) if method == "tsdae" else text, text) for text in held]
    trained.train(method == "simcse")
    torch.manual_seed(0)
    total = count = 0.0
    for start in range(0, len(pairs), 32):
        part = pairs[start : start + 32]
        views = [[pair[column] for pair in part] for column in (0, 1)]
        if side == "ours":
            tokenizer = trained.model.tokenizer
            loss = trained([_packed(tokenizer, texts) for texts in views])
            total, count = total + float(loss.total), count + loss.count
        else:
            tokenizer = (trained.model if method == "simcse" else trained.encoder).tokenizer
            features = [
                dict(tokenizer(t, padding=True, truncation=True, max_length=128, return_tensors="pt")) for t in views
            ]
            size = int(features[1]["attention_mask"][:, 1:].sum()) if method == "tsdae" else len(part)
            total, count = total + float(trained(features, None)) * size, count + size
    return total / count


def _packed(tokenizer: Any, texts: list[str]) -> Any:
    from selfsent.packing import Packed

    ids = tokenizer(texts, truncation=True, max_length=128)["input_ids"]
    return Packed(np.concatenate([np.asarray(i) for i in ids]), np.array([len(i) for i in ids]))


def main() -> None:
    """Run the comparison and print the ratios last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=["tsdae", "simcse"], choices=list(OPTIONS))
    parser.add_argument("--base", default="bundled")
    parser.add_argument("--corpus", default="python:stdlib")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--sentences", type=int, default=1536)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--output", help="write all figures as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from transformers.utils import logging as transformers_logging

    from selfsent.bases import resolve

    transformers_logging.set_verbosity_error()
    base = str(resolve(options.base))
    precisions = ["float32", "bfloat16"] if computes_bfloat16("cpu") else ["float32"]
    texts, held = sentences(options.sentences, options.corpus)
    print(
        f"{len(texts)} sentences of {options.corpus}, batch {options.batch_size}, base {options.base},"
        f" precision {' and '.join(precisions)}"
    )
    print(f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, {json.dumps(versions())}")
    report: dict[str, Any] = {
        "versions": versions(),
        "options": {name: value for name, value in vars(options).items() if name != "output"},
        "threads": torch.get_num_threads(),
        "methods": {},
    }
    for method in options.methods:
        report["methods"][method] = compare(method, texts, held, base, options, precisions)
    print()
    for method, figures in report["methods"].items():
        print(f"{method} {figures['ratio']:.2f}x")
    if options.output:
        Path(options.output).write_text(json.dumps(report, indent=1))


def compare(
    method: str, texts: list[str], held: list[str], base: str, options: Any, precisions: list[str]
) -> dict[str, Any]:
    """Both sides in turn, in every precision; the fastest of each counts."""
    seconds: dict[tuple[str, str], list[float]] = {}
    losses: dict[tuple[str, str], list[float]] = {}
    waste: dict[str, Any] = {}
    for _ in range(options.repetitions):
        for precision in precisions:
            for side, run in (("ours", ours), ("theirs", theirs)):
                taken, trained, waste[side] = run(method, texts, base, options.batch_size, precision)
                seconds.setdefault((side, precision), []).append(taken)
                losses.setdefault((side, precision), []).append(held_out_loss(side, method, trained, held))
                print(
                    f"  {method} {side} {precision}: {taken:.1f} s, held-out loss {losses[side, precision][-1]:.4f}",
                    file=sys.stderr,
                )
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    fastest = {side: min(v for (s, _), v in medians.items() if s == side) for side in ("ours", "theirs")}
    print(f"\n{method}")
    for (side, precision), median in medians.items():
        loss = statistics.mean(losses[side, precision])
        print(f"  {side:6} {precision:8} {len(texts) / median:8.1f} sentences/s   held-out loss {loss:.4f}")
    shares = ", ".join(f"{name} {share:.1%}" for name, share in waste["ours"].items())
    print(f"  token slots wasted on padding: ours {shares}; theirs {waste['theirs']:.1%}")
    return {
        "seconds": {f"{side} {precision}": values for (side, precision), values in seconds.items()},
        "held_out_loss": {f"{side} {precision}": values for (side, precision), values in losses.items()},
        "waste": waste,
        "ratio": fastest["theirs"] / fastest["ours"],
    }


if __name__ == "__main__":
    main()
