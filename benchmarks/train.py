"""Training speed against sentence-transformers' own trainer: same sentences, base, batch size and machine.

    python benchmarks/train.py                       # the bundled encoder at batch 32, in under 20 minutes
    python benchmarks/train.py --full                # two bases, batches of 8, 32 and 128
    python benchmarks/train.py --methods tsdae --bases path/to/encoder --batch-sizes 128 --repetitions 5

Ours and theirs alternate; medians are compared. Both sides are timed from text to trained weights (reading files and
loading models left out, tokenising left in), over the same number of sentences, and both are then scored on the same
held-out sentences by the same measure, and on STS-B where SELFSENT_DATA is set, so that a faster run that learned less
would show. Precision is float32 for both where the processor does not compute bfloat16; otherwise both are tried in
both, and the peer's fastest is what ours is held against. `infomax` and `bootstrap` have no counterpart there.

The share of the matrix product counts, for both sides, the operations that ours takes: those of real tokens, and of the
few slots of padding in attention. Padding of the peer is that of the undamaged sentences.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sides import MINILM, base_of, ceiling, machine
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from selfsent import evaluate, read_corpus
from selfsent.api import make_plan
from selfsent.encoder import load_encoder
from selfsent.files import write_json
from selfsent.methods import Learner, get_method
from selfsent.packing import IGNORED, Packed
from selfsent.training.batches import Batches
from selfsent.training.loop import Habits, Loop
from selfsent.training.precision import computes_bfloat16
from selfsent.training.run_directory import RunDirectory
from selfsent.training.tokens import build_table
from selfsent.views import Template

RATE, LENGTH, HELD_OUT = 1e-4, 128, 512
OPTIONS: dict[str, dict[str, Any]] = {
    "tsdae": {},
    "simcse": {"mlp": False},
    "ct": {"twin_dropout": True, "reduction": "sum"},
    "ct-inbatch": {},
    "mlm": {},
    "infomax": {},
    "bootstrap": {},
}
"""Of ours, so that both sides compute the same loss."""
ALONE = ("infomax", "bootstrap")
UNCOUNTED = {
    torch.ops.aten.addmm_: lambda _, left, right, *__, **___: 2 * left[0] * left[1] * right[1],
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: (
        lambda query, key, value, *_, **__: sdpa_flop_count(query, key, value)
    ),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda grad, query, key, value, *_, **__: sdpa_backward_flop_count(grad, query, key, value)
    ),
}
"""Operations, from the shapes, of what torch's counter leaves out."""
SAME = 1.02
"""Times the loss of its own float32 run, a setting still counts as one of the same quality."""
NEGATIVES = 7


@dataclass
class Trained:
    """What one side made of the sentences.

    Args:
        seconds: from text to weights.
        loss: the trained module with the loss.
        encoder: what is evaluated.
        work: floating-point operations for all sentences, or 0 where not counted.
        waste: share of the token slots that held padding: in linear layers, and in attention.
    """

    seconds: float
    loss: Any
    encoder: Any
    work: float
    waste: tuple[float, float]


def draw_sentences(count: int, source: str) -> tuple[list[str], list[str]]:
    """Sentences to train on and held-out ones, drawn once."""
    corpus = read_corpus(source)
    rows = np.random.default_rng(0).permutation(len(corpus))[: count + HELD_OUT]
    texts = corpus.texts(rows)
    return texts[HELD_OUT:], texts[:HELD_OUT]


def ours(method: str, texts: list[str], base: str, batch_size: int, precision: str) -> Trained:
    """Train with selfsent."""
    with tempfile.TemporaryDirectory() as folder:
        plan = make_plan(
            get_method(method), base, batch_size=batch_size, learning_rate=RATE, steps=len(texts) // batch_size,
            precision=precision, max_length=LENGTH, **OPTIONS[method],
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
        some = range(min(8, loop.steps))
        views = [view for step in some for view in batches.views_of(batches.rows_at(step), 0)]
        share = 1 - sum(view.tokens for view in views) / sum(view.slots for view in views)
        waste = 0.0 if model.runs_packed else share, share
        loop.optimizer.step = lambda: None  # type: ignore[method-assign]  # the same operations without consequences
        with FlopCounterMode(display=False, custom_mapping=UNCOUNTED) as counter:
            for step in some:
                loop.advance(step)
        work = counter.get_total_flops() * loop.steps / len(some)
    return Trained(seconds, learner, model, work, waste)


def theirs(method: str, texts: list[str], base: str, batch_size: int, precision: str) -> Trained:
    """Train with sentence-transformers; `mlm` with transformers' trainer, as its documentation has it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    torch.manual_seed(0)
    transformer = Transformer(base, model_kwargs={"dtype": torch.float32}, max_seq_length=LENGTH)
    pooling = Pooling(transformer.get_embedding_dimension(), get_method(method).pooling)
    model = SentenceTransformer(modules=[transformer, pooling], device="cpu")
    slots = used = 0
    for start in range(0, min(len(texts), 8 * batch_size), batch_size):
        mask = padded(model.tokenizer, texts[start : start + batch_size])["attention_mask"]
        slots, used = slots + mask.numel(), used + int(mask.sum())
    with tempfile.TemporaryDirectory() as folder:
        arguments = {
            "output_dir": folder, "per_device_train_batch_size": batch_size, "num_train_epochs": 1,
            "learning_rate": RATE, "warmup_steps": 0.1, "use_cpu": True, "bf16": precision == "bfloat16",
            "save_strategy": "no", "logging_strategy": "no", "report_to": "none", "disable_tqdm": True,
            "dataloader_drop_last": True, "seed": 0, "remove_unused_columns": False,
        }  # fmt: skip
        trainer, loss = (their_mlm if method == "mlm" else their_loss)(method, texts, model, base, arguments)
        start_time = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - start_time
    share = 1 - used / slots
    return Trained(seconds, loss, model, 0.0, (share, share))


def their_loss(method: str, texts: list[str], model: Any, base: str, arguments: dict[str, Any]) -> tuple[Any, Any]:
    """The trainer and the loss of a method that sentence-transformers has."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer import losses

    draw = random.Random(0)
    if method == "tsdae":
        # The decoder is loaded in the checkpoint's own precision, and the tied encoder with it: back to float32.
        loss: Any = losses.DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True).float()
        data = Dataset.from_dict({"damaged": texts, "text": texts})
        data.set_transform(
            lambda batch: {"damaged": [damaged(text, draw) for text in batch["text"]], "text": batch["text"]}
        )
    elif method == "ct":
        loss = losses.ContrastiveTensionLoss(model)
        others = [draw.choice(texts) if row % (NEGATIVES + 1) else text for row, text in enumerate(texts)]
        data = Dataset.from_dict({"first": texts, "second": others})
    elif method == "ct-inbatch":
        loss, data = losses.ContrastiveTensionLossInBatchNegatives(model), Dataset.from_dict({"text": texts})
    else:
        loss = losses.MultipleNegativesRankingLoss(model)
        data = Dataset.from_dict({"anchor": texts, "positive": texts})
    trainer = SentenceTransformerTrainer(
        model=model, args=SentenceTransformerTrainingArguments(**arguments), train_dataset=data, loss=loss
    )
    return trainer, loss


def their_mlm(_: str, texts: list[str], model: Any, base: str, arguments: dict[str, Any]) -> tuple[Any, Any]:
    """The trainer and the language model, whose transformer takes the place of the encoder's."""
    from datasets import Dataset
    from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling, Trainer, TrainingArguments

    language_model = AutoModelForMaskedLM.from_pretrained(base, dtype=torch.float32)
    model[0].model = language_model.base_model
    tokenizer = model.tokenizer
    data = Dataset.from_dict({"text": texts})
    data.set_transform(lambda batch: dict(tokenizer(batch["text"], truncation=True, max_length=LENGTH)))
    trainer = Trainer(
        model=language_model,
        args=TrainingArguments(**arguments),
        train_dataset=data,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15),
    )
    return trainer, language_model


def damaged(text: str, draw: random.Random, ratio: float = 0.6) -> str:
    """A sentence less 60 % of its words; one stays."""
    words = text.split()
    kept = [word for word in words if draw.random() >= ratio]
    return " ".join(kept or [draw.choice(words)])


def masked(ids: list[int], tokenizer: Any, draw: random.Random) -> tuple[list[int], list[int]]:
    """Token ids with 15 % of the words' hidden, at least one, and what is to be predicted at each position."""
    words = [place for place, token in enumerate(ids) if token not in tokenizer.all_special_ids]
    hidden = set(draw.sample(words, max(1, round(0.15 * len(words)))))
    targets = [token if place in hidden else IGNORED for place, token in enumerate(ids)]
    return [tokenizer.mask_token_id if place in hidden else token for place, token in enumerate(ids)], targets


def padded(tokenizer: Any, texts: Sequence[str]) -> dict[str, Any]:
    """A padded block, as the peer reads it."""
    return dict(tokenizer(list(texts), padding=True, truncation=True, max_length=LENGTH, return_tensors="pt"))


def packed(tokenizer: Any, texts: Sequence[str]) -> Packed:
    """A packed batch, as we read it."""
    ids = tokenizer(list(texts), truncation=True, max_length=LENGTH)["input_ids"]
    return Packed(np.concatenate([np.asarray(i) for i in ids]), np.array([len(i) for i in ids]))


def held_views(method: str, texts: list[str], draw: random.Random) -> list[list[str]]:
    """What a method's encoders read of held-out sentences: the same for both sides."""
    if method == "tsdae":
        return [[damaged(text, draw) for text in texts], texts]
    if method == "ct":
        others = [draw.choice(texts) if row % (NEGATIVES + 1) else text for row, text in enumerate(texts)]
        return [texts, others]
    return [texts] if method == "ct-inbatch" else [texts, texts]


@torch.no_grad()
def held_out_loss(side: str, method: str, trained: Any, tokenizer: Any, held: list[str]) -> float:
    """Mean loss on held-out sentences: the same damage, batches and dropout-free networks for both sides.

    For SimCSE, where the two views differ by dropout alone, the encoder runs with dropout, seeded.
    """
    draw = random.Random(1)
    trained.train(method == "simcse")
    torch.manual_seed(0)
    total = count = 0.0
    for start in range(0, len(held), 32):
        part = held[start : start + 32]
        if method == "mlm":
            ids = tokenizer(part, truncation=True, max_length=LENGTH)["input_ids"]
            pairs = [masked(one, tokenizer, draw) for one in ids]
            loss, size = (our_masked if side == "ours" else their_masked)(trained, tokenizer, pairs)
        else:
            views = held_views(method, part, draw)
            if side == "ours":
                result = trained([packed(tokenizer, texts) for texts in views])
                loss, size = float(result.total), result.count if method == "tsdae" else len(part)
            else:
                features = [padded(tokenizer, texts) for texts in views]
                loss = float(trained(features, None))
                size = int(features[1]["attention_mask"][:, 1:].sum()) if method == "tsdae" else len(part)
                loss *= 1 if method == "ct" else size  # a sum already
        total, count = total + loss, count + size
    return total / count


def our_masked(learner: Learner, _: Any, pairs: list[tuple[list[int], list[int]]]) -> tuple[float, float]:
    """Sum and number of our losses at hidden words."""
    ids, targets = (np.concatenate([np.asarray(pair[column]) for pair in pairs]) for column in (0, 1))
    loss = learner([Packed(ids, np.array([len(pair[0]) for pair in pairs]), targets)])
    return float(loss.total), loss.count


def their_masked(model: Any, tokenizer: Any, pairs: list[tuple[list[int], list[int]]]) -> tuple[float, float]:
    """Sum and number of their losses at hidden words."""
    block = tokenizer.pad({"input_ids": [pair[0] for pair in pairs]}, return_tensors="pt")
    labels = torch.full_like(block["input_ids"], -100)
    for row, (_, targets) in enumerate(pairs):
        wanted = torch.tensor(targets)
        labels[row, : len(wanted)] = wanted.masked_fill(wanted == IGNORED, -100)
    size = int((labels != -100).sum())
    return float(model(**block, labels=labels).loss) * size, size


def compare(method: str, base: str, batch_size: int, texts: list[str], held: list[str], options: Any) -> dict[str, Any]:
    """Both sides in turn, in every precision."""
    precisions = ["float32", "bfloat16"] if computes_bfloat16("cpu") else ["float32"]
    sides = {"ours": ours} if method in ALONE else {"ours": ours, "theirs": theirs}
    rows: dict[str, dict[str, Any]] = {}
    work = 0.0
    for repetition in range(options.repetitions):
        for precision in precisions:
            for side, train in sides.items():
                run = train(method, texts, base_of(base), batch_size, precision)
                work = work or run.work
                row = rows.setdefault(f"{side} {precision}", {"seconds": [], "held_out_loss": [], "waste": run.waste})
                row["seconds"].append(run.seconds)
                said = ""
                if method not in ALONE:
                    tokenizer = load_tokenizer(run.encoder)
                    row["held_out_loss"].append(held_out_loss(side, method, run.loss, tokenizer, held))
                    said = f", held-out loss {row['held_out_loss'][-1]:.4f}"
                if repetition == options.repetitions - 1 and os.environ.get("SELFSENT_DATA"):
                    row["stsb"] = sts_b(run.encoder)
                    said += f", STS-B {row['stsb']:.2f}"
                print(f"  {method} {side} {precision}: {run.seconds:.1f} s{said}", file=sys.stderr, flush=True)
    for side, row in rows.items():
        median, best = statistics.median(row["seconds"]), options.ceilings[side.split()[1]]
        row["sentences_per_second"], row["utilisation"] = len(texts) / median, work / median / best
    found: dict[str, Any] = {"method": method, "base": base, "batch_size": batch_size, "rows": rows}
    if method not in ALONE:
        speed = {}
        for side, row in rows.items():
            loss, plain = (np.mean(each["held_out_loss"]) for each in (row, rows[f"{side.split()[0]} float32"]))
            if loss <= SAME * plain:
                speed[side] = row["sentences_per_second"]
        fastest = {who: max(value for side, value in speed.items() if side.startswith(who)) for who in sides}
        found["ratio"] = fastest["ours"] / fastest["theirs"]
        found["ratio_to_float32"] = fastest["ours"] / speed["theirs float32"]
    return found


def load_tokenizer(encoder: Any) -> Any:
    """Of either side's encoder."""
    return encoder.tokenizer


def sts_b(encoder: Any) -> float:
    """Spearman correlation on STS-B's test set."""
    model = getattr(encoder, "sentence_transformer", encoder).eval()
    return float(evaluate(model, task="stsb").scores["stsb"].score)


def show(found: dict[str, Any]) -> None:
    """The rows of one comparison."""
    print(f"\n{name_of(found)}")
    for side, row in found["rows"].items():
        loss = f"   held-out loss {statistics.mean(row['held_out_loss']):.4f}" if row["held_out_loss"] else ""
        quality = f"   STS-B {row['stsb']:.2f}" if "stsb" in row else ""
        linear, attention = row["waste"]
        print(
            f"  {side:16} {row['sentences_per_second']:8.1f} sentences/s   {row['utilisation']:4.0%} of the matrix"
            f" product{loss}{quality}   padding {linear:.0%}, in attention {attention:.0%}"
        )


def name_of(found: dict[str, Any]) -> str:
    """A comparison in words."""
    return f"{found['method']} {found['base']} batch {found['batch_size']}"


def main() -> None:
    """Run the comparisons and print the ratios last."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=list(OPTIONS), choices=list(OPTIONS), metavar="NAME")
    parser.add_argument("--bases", nargs="+", metavar="BASE", help="default: bundled; with --full MiniLM, too")
    parser.add_argument("--batch-sizes", nargs="+", type=int, metavar="N", help="default: 32; with --full 8, 32, 128")
    parser.add_argument("--corpus", default="python:stdlib")
    parser.add_argument("--sentences", type=int, default=1024)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--full", action="store_true", help="both bases, three batch sizes")
    parser.add_argument("--processor-time", action="store_true", help="seconds of the processor, on a machine in use")
    parser.add_argument("--output", type=Path, help="write all figures as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    if options.processor_time:
        time.perf_counter = time.process_time
    kinds = {"float32": torch.float32, **({"bfloat16": torch.bfloat16} if computes_bfloat16("cpu") else {})}
    options.ceilings = {name: ceiling(dtype=kind) for name, kind in kinds.items()}
    bases = options.bases or (["bundled", MINILM] if options.full else ["bundled"])
    sizes = options.batch_sizes or ([8, 32, 128] if options.full else [32])
    texts, held = draw_sentences(options.sentences, options.corpus)
    report: dict[str, Any] = {
        "machine": machine(), "corpus": options.corpus, "sentences": len(texts), "repetitions": options.repetitions,
        "processor_time": options.processor_time, "comparisons": [],
        "gflops": {name: value / 1e9 for name, value in options.ceilings.items()},
    }  # fmt: skip
    print(report["machine"])
    products = ", ".join(f"{value / 1e9:.0f} GFLOP/s in {name}" for name, value in options.ceilings.items())
    print(f"{len(texts):,} sentences of {options.corpus}; matrix product: {products}")
    for base in bases:
        for size in sizes:
            for method in options.methods:
                report["comparisons"].append(compare(method, base, size, texts, held, options))
                show(report["comparisons"][-1])
                if options.output:
                    write_json(options.output, report)
    print()
    several = len(bases) * len(sizes) > 1
    for found in report["comparisons"]:
        if "ratio" in found:
            print(f"{name_of(found) if several else found['method']} {found['ratio']:.2f}x")


if __name__ == "__main__":
    main()
