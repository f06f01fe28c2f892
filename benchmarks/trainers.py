"""Both parties' ways to train one method on the same sentences: selfsent's, and sentence-transformers' own."""

from __future__ import annotations

import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import DEVICE, peer, wait_for_device
from held_out import LENGTH, NEGATIVES, damaged

from selfsent import read_corpus
from selfsent.data.batches import Batches
from selfsent.data.token_table import build_table
from selfsent.data.views.tokens import Template
from selfsent.methods import get_method
from selfsent.models.loading import load_encoder
from selfsent.training.loop import Loop
from selfsent.training.plan import Plan
from selfsent.training.run_config import RunConfig
from selfsent.training.run_directory import RunDirectory

RATE = 1e-4
OPTIONS: dict[str, dict[str, Any]] = {
    "tsdae": {"decoder_dropout": False},
    "simcse": {"mlp": False},
    "ct": {"dropout_in": "kept"},
    "ct-inbatch": {"dropout_in": "kept"},
    "mlm": {},
    "infomax": {},
    "bootstrap": {},
}
"""Of ours, so that both sides compute the same loss. In the peer's trainer TSDAE's decoder and contrastive tension's
twin stay in evaluation mode, in which they were loaded."""


@dataclass
class Trained:
    """What one side made of the sentences.

    Args:
        seconds: from text to weights.
        loss: the trained module with the loss.
        encoder: what is evaluated.
    """

    seconds: float
    loss: Any
    encoder: Any


def ours(method: str, texts: list[str], base: str, batch_size: int, precision: str, seed: int) -> Trained:
    """Train with selfsent."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan.resolve(
            get_method(method), base, batch_size=batch_size, learning_rate=RATE, steps=len(texts) // batch_size,
            precision=precision, max_length=LENGTH, pooling=get_method(method).pooling, seed=seed, **OPTIONS[method],
        )  # fmt: skip
        corpus = read_corpus(texts, cache=Path(folder) / "cache")
        torch.manual_seed(seed)
        model = load_encoder(base, plan.pooling)
        learner = plan.method.learner(model, plan.options).to(DEVICE)
        directory = RunDirectory(Path(folder) / "run")
        directory.check(resume=False, overwrite=False)
        directory.match({})
        directory.begin()
        start = time.perf_counter()
        table = build_table(corpus, model.tokenizer, "text")
        template = Template.of(model.tokenizer, int(model.transformer.config.vocab_size))
        batches = Batches([table], np.arange(len(corpus)), plan.options.views(), template, plan.settings)
        loop = Loop(learner, batches, plan.settings, directory, RunConfig(checkpoint_every=10**9))
        for step in range(loop.steps):
            loop.advance(step)
        wait_for_device()
        seconds = time.perf_counter() - start
    return Trained(seconds, learner, model)


def theirs(method: str, texts: list[str], base: str, batch_size: int, precision: str, seed: int) -> Trained:
    """Train with sentence-transformers; `mlm` with transformers' trainer, as its documentation has it."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    if torch.cuda.device_count() > 1:
        raise SystemExit("the peer's trainer would use all GPUs, ours uses one: set CUDA_VISIBLE_DEVICES to one")
    torch.manual_seed(seed)
    model = peer(base)
    model.max_seq_length = LENGTH
    model[1] = Pooling(model[0].get_embedding_dimension(), get_method(method).pooling)  # what follows stays, as in ours
    if method == "ct" and type(model[-1]).__name__ == "Normalize":
        del model[-1]  # as in ours, which multiplies vectors of any length: with unit vectors its loss ends in a corner
    with tempfile.TemporaryDirectory() as folder:
        arguments = {
            "output_dir": folder, "per_device_train_batch_size": batch_size, "num_train_epochs": 1,
            "learning_rate": RATE, "warmup_steps": 0.1, "use_cpu": DEVICE == "cpu", "bf16": precision == "bfloat16",
            "save_strategy": "no", "logging_strategy": "no", "report_to": "none", "disable_tqdm": True,
            "dataloader_drop_last": True, "dataloader_num_workers": 0 if DEVICE == "cpu" else 4,
            "seed": seed, "remove_unused_columns": False,
        }  # fmt: skip
        trainer, loss = (their_mlm if method == "mlm" else their_loss)(method, texts, model, base, arguments)
        start_time = time.perf_counter()
        trainer.train()
        wait_for_device()
        seconds = time.perf_counter() - start_time
    return Trained(seconds, loss, model)


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
