"""Batches larger than memory: `--mini-batch-size` beside sentence-transformers' CachedMultipleNegativesRankingLoss.

    python benchmarks/cached.py TEXTS --output docs/results/speed/cached.json           # steps of both sides in turn
    python benchmarks/cached.py TEXTS --memory --output docs/results/speed/cached.json  # the peak at 64 and at 4,096

TEXTS has a sentence a line; a line and the next one are a pair. Both sides have the same base, pairs, loss, dropout,
mini-batches, float32 and AdamW. Ours are steps of the training loop, from the token table on; theirs begin with the
padded batch, without their trainer. Each peak is that of a process of its own, after two steps.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sides import DEVICE, alternate, base_of, machine, medians

from selfsent import read_corpus
from selfsent.data.batches import Batches
from selfsent.data.token_table import build_table
from selfsent.data.views.tokens import Template
from selfsent.files import read_json, write_json
from selfsent.methods import get_method
from selfsent.models.loading import load_encoder
from selfsent.training.loop import Loop
from selfsent.training.plan import Plan
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory

RATE, LENGTH, SCALE = 2e-5, 128, 20.0


def pairs_of(path: Path, count: int) -> list[tuple[str, str]]:
    """Lines and the next ones, each line in one pair."""
    with path.open(encoding="utf-8") as file:
        lines = list(dict.fromkeys(line.strip().replace("\t", " ") for line in file if line.strip()))[: 2 * count]
    return list(zip(lines[::2], lines[1::2], strict=True))


@contextmanager
def ours(pairs: list[tuple[str, str]], base: str, batch: int, mini: int | None, dropout: float) -> Iterator[Any]:
    """A function that takes a step and returns its loss."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "pairs.tsv").write_text("a\tb\n" + "".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
        corpus = read_corpus(place / "pairs.tsv", text_columns=["a", "b"], cache=place / "cache")
        plan = Plan.resolve(
            get_method("mnrl"), base, batch_size=batch, mini_batch_size=mini, learning_rate=RATE, steps=99,
            precision="float32", max_length=LENGTH, scale=SCALE, dropout=dropout, schedule="constant", warmup=0, clip=0,
        )  # fmt: skip
        torch.manual_seed(0)
        model = load_encoder(base, plan.pooling, dropout)
        model.mini_batch_size = mini
        learner = plan.method.learner(model, plan.on(corpus).options).to(DEVICE)
        directory = RunDirectory(place / "run")
        directory.check(resume=False, overwrite=False)
        directory.match({})
        directory.begin()
        tables = [build_table(corpus, model.tokenizer, column) for column in corpus.input_columns]
        template = Template.of(model.tokenizer, model.vocabulary_size)
        batches = Batches(tables, np.arange(len(corpus)), learner.options.views(), template, plan.settings)
        loop = Loop(learner, batches, plan.settings, directory, RunConfig(checkpoint_every=10**9))
        steps = iter(range(99))

        def step() -> float:
            total, count, *_ = loop.advance(next(steps))
            return total / count

        yield step


def theirs(pairs: list[tuple[str, str]], base: str, batch: int, mini: int, dropout: float) -> Callable[[], float]:
    """A function that takes a step and returns its loss."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss

    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), dropout)
    model = SentenceTransformer(base, device=DEVICE, model_kwargs={"dtype": torch.float32}, config_kwargs=rates)
    model.max_seq_length = LENGTH
    loss = CachedMultipleNegativesRankingLoss(model, scale=SCALE, mini_batch_size=mini).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    chosen = pairs[:batch]
    columns = [model.preprocess(list(column)) for column in zip(*chosen, strict=True)]

    def step() -> float:
        features = [{**column} for column in columns]
        value = loss(features, None)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(value.detach())

    return step


def peak(args: argparse.Namespace, batch: int, mini: int | None) -> float:
    """MiB of a process that takes two steps."""
    command = [sys.executable, __file__, str(args.texts), "--base", args.base, "--batch-size", str(batch), "--peak"]
    command += ["--mini-batch-size", str(mini or 0)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--base", default="bundled-encoder")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--mini-batch-size", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--processor-time", action="store_true", help="seconds of the processor, on a machine in use")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    base, mini = base_of(args.base), args.mini_batch_size or None
    if args.peak:
        with ours(pairs_of(args.texts, args.batch_size), base, args.batch_size, mini, args.dropout) as step:
            step(), step()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    found: dict[str, Any] = {"machine": machine(), "base": args.base, "processor_time": args.processor_time}
    if args.memory:
        sizes = {"64": (64, None), "64, mini 64": (64, 64), "4096, mini 64": (4096, 64)}
        found["peak, MiB"] = {name: peak(args, *how) for name, how in sizes.items()}
        found["ratio"] = found["peak, MiB"]["4096, mini 64"] / found["peak, MiB"]["64"]
    else:
        if args.processor_time:
            time.perf_counter = time.process_time
        pairs = pairs_of(args.texts, args.batch_size)
        with ours(pairs, base, args.batch_size, mini, args.dropout) as step:
            sides = {"ours": step, "theirs": theirs(pairs, base, args.batch_size, args.mini_batch_size, args.dropout)}
            seconds, losses = alternate(sides, args.repetitions)
        found |= {"batch_size": args.batch_size, "mini_batch_size": mini, "dropout": args.dropout, "seconds": seconds}
        found |= {"losses": losses, "medians": medians(seconds)}
        found["ratio"] = found["medians"]["theirs"] / found["medians"]["ours"]
    print(found)
    if args.output:
        known = read_json(args.output)
        name = f"{args.base}, " + (
            "memory" if args.memory else f"{args.batch_size} in {mini}, dropout {args.dropout:g}"
        )
        write_json(args.output, {**known, name: found})


if __name__ == "__main__":
    main()
