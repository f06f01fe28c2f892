"""What a user of sentence-transformers would write to train on pairs of neighbours; started by time_to_score.py.

python benchmarks/peer_neighbours.py PAIRS.jsonl BASE OUTPUT --steps N --batch-size 64 --rate 2e-5 [--bf16]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss


def main() -> None:
    """Train, and save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", type=Path)
    parser.add_argument("base")
    parser.add_argument("output")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--warmup", type=float, default=0.1)
    parser.add_argument("--bf16", action="store_true")
    options = parser.parse_args()
    with options.pairs.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    model = SentenceTransformer(options.base, device="cpu", model_kwargs={"dtype": torch.float32})
    model.float()  # a table stays in half precision otherwise
    if type(model[0]).__name__ != "StaticEmbedding":
        model.max_seq_length = 64
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=options.batch_size,
            max_steps=options.steps,
            learning_rate=options.rate,
            warmup_steps=options.warmup,
            batch_sampler="no_duplicates",
            use_cpu=True,
            bf16=options.bf16,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            seed=0,
        )
        SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            loss=MultipleNegativesRankingLoss(model),
        ).train()
    model.save(options.output)


if __name__ == "__main__":
    main()
