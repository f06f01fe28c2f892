"""A small pretrained ALBERT for salbert_small.yaml: one layer that is used four times, and an hour of `mlm`.

    python experiments/small_albert.py --text TEXT --budget 50m --output runs/small-albert    # goes on where it stopped

It begins with the words, the first layer and the head of `bundled-raw`, so that the hour is not spent on learning
words: from random weights the loss still lay on the plateau of the unigrams (7.0) after two million tokens.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from transformers import AlbertConfig, AlbertForMaskedLM, AutoTokenizer, BertForMaskedLM

from selfsent import train
from selfsent.models.bases import resolve

SHAPE = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
SOURCES = ("wikipedia", "wikipedia-recent", "dialogue", "short-sentences", "novels-eltec")


def make_start(place: Path) -> None:
    """An ALBERT with the embeddings and the head of `bundled-raw`, and its first layer in the place of each."""
    source = str(resolve("bundled-raw"))
    known = BertForMaskedLM.from_pretrained(source)
    shape = {name: getattr(known.config, name) for name in SHAPE}
    model = AlbertForMaskedLM(AlbertConfig(embedding_size=known.config.hidden_size, **shape))
    layer, shared = known.bert.encoder.layer[0], model.albert.encoder.albert_layer_groups[0].albert_layers[0]
    head = known.cls.predictions
    pairs = [
        (known.bert.embeddings, model.albert.embeddings),
        (layer.attention.self.query, shared.attention.query),
        (layer.attention.self.key, shared.attention.key),
        (layer.attention.self.value, shared.attention.value),
        (layer.attention.output.dense, shared.attention.dense),
        (layer.attention.output.LayerNorm, shared.attention.LayerNorm),
        (layer.intermediate.dense, shared.ffn),
        (layer.output.dense, shared.ffn_output),
        (layer.output.LayerNorm, shared.full_layer_layer_norm),
        (head.transform.dense, model.predictions.dense),
        (head.transform.LayerNorm, model.predictions.LayerNorm),
    ]
    for part, own in pairs:
        own.load_state_dict(part.state_dict())
    torch.nn.init.eye_(model.albert.encoder.embedding_hidden_mapping_in.weight)
    model.predictions.bias.data.copy_(head.bias)
    model.save_pretrained(place)
    AutoTokenizer.from_pretrained(source).save_pretrained(place)


def main() -> None:
    """Make the start and train."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="folder of the text")
    parser.add_argument("--budget", default="50m", help="how long to train in all")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    start = options.output / "start"
    if not (start / "model.safetensors").is_file():
        make_start(start)
    text = [options.text / f"{name}.txt.zst" for name in SOURCES]
    settings = {"ratio": 0.2, "dropout": 0.0, "learning_rate": 7e-4, "batch_size": 128, "max_length": 64}
    run = options.output / "mlm"
    train(text, "mlm", str(start), run, budget=options.budget, resume=run.is_dir(), **settings)


if __name__ == "__main__":
    main()
