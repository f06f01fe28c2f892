"""Make the encoders that ship, one stage after the other; what is done stays, and what was begun is gone on with.

    python experiments/bundled.py sample  --text TEXT --output OUT
    python experiments/bundled.py table   --output OUT --teacher all-MiniLM-L6-v2    # bundled
    python experiments/bundled.py raw     --text TEXT --output OUT                   # bundled-raw-static
    python experiments/bundled.py encoder --output OUT --teacher all-MiniLM-L6-v2    # not shipped: docs/log

TEXT is a folder with the nine freely usable sources, one file NAME.txt.zst each: a sentence a line, an empty line
behind each document. `sample` draws sentences of each of them. `table` trains a new table of token vectors, with the
tokenizer of bundled-raw, after a teacher. `raw` trains one on neighbouring sentences alone, of the sources whose lines
stand in the order of the text. `encoder` makes a transformer that begins as a table does, and trains it after the
teacher. The teacher's vectors of the sample are made once, for table and encoder.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from sides import base_of

import selfsent
from selfsent.files import whole_directory, write_text
from selfsent.models.bases import resolve
from selfsent.models.loading import load_encoder
from selfsent.models.static import StaticEncoder

SOURCES = {
    "wikipedia": 220_000,
    "wikipedia-recent": 40_000,
    "medical-medquad": 40_000,
    "dialogue": 60_000,
    "podcasts-changelog": 60_000,
    "novels-100english": 40_000,
    "novels-eltec": 30_000,
    "law-dc-code": 8_000,
    "short-sentences": 84_000,
}
"""Sentences of each source in the sample."""
UNCONNECTED = "short-sentences"
"""Whose lines have nothing to do with each other."""
RAW = "bundled-raw"


def sample(text: Path, output: Path) -> None:
    """Distinct sentences of all sources, in random order."""
    draw = np.random.default_rng(0)
    texts: list[str] = []
    for name, count in SOURCES.items():
        corpus = selfsent.read_corpus(text / f"{name}.txt.zst")
        texts += corpus.texts(np.sort(draw.permutation(len(corpus))[:count]))
    texts = list(dict.fromkeys(texts))
    draw.shuffle(texts)
    write_text(output / "sample.txt", "".join(f"{line}\n" for line in texts))


def new_table(output: Path, name: str, size: int) -> Path:
    """The directory of an untrained table, made where it is not there."""
    place = output / name
    return place if (place / "model").is_dir() else selfsent.make_table(None, place, tokenizer=RAW, size=size)


def trained(output: Path, name: str, corpus: Any, base: Path, **told: Any) -> Path:
    """The directory of a run, gone on with where it was begun."""
    common = {"resume": True, "dev": "stsb-dev"}
    return selfsent.train(corpus, base=base, output=output / name, **common, **told).directory


def save_half(run: Path, place: Path) -> None:
    """The model of a run in half precision, as it ships."""
    model = load_encoder(run).sentence_transformer.half()
    with whole_directory(place) as temporary:
        model.save(str(temporary), create_model_card=False)


def transformer_of(table: StaticEncoder, place: Path, layers: int = 4) -> None:
    """Write a BERT whose mean of token states is, before it is trained, that of a table of token vectors.

    Every embedding gets the same length, so that layer norm leaves its direction alone: a token whose vector is short
    has that much more in two opposite numbers, which the last norm drops. The layers add next to nothing at first.
    """
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    config = BertConfig.from_pretrained(resolve(RAW))
    config.num_hidden_layers, size = layers, config.hidden_size
    rows = table.table.weight.detach().double()
    _, _, directions = torch.linalg.svd(rows, full_matrices=False)
    rows = rows @ directions[: size - 3].T
    lengths = rows.norm(dim=1)
    longest = float(lengths.quantile(0.9995)) * 1.02
    rows = rows * (lengths.clamp_max(0.999 * longest) / lengths.clamp_min(1e-9))[:, None]
    rest = ((longest**2 - rows.square().sum(1)) / 2).sqrt()[:, None]
    generator = torch.Generator().manual_seed(0)
    inner = torch.cat([torch.ones(size - 2, 1), torch.randn(size - 2, size - 3, generator=generator)], dim=1)
    plane = torch.linalg.qr(inner.double())[0][:, 1:]  # whose numbers add up to zero, as layer norm makes them do
    words = torch.cat([rest, -rest, rows @ plane.T], dim=1) * math.sqrt(size) / longest
    torch.manual_seed(0)
    model = BertForMaskedLM(config)
    with torch.no_grad():
        embeddings = model.bert.embeddings
        embeddings.word_embeddings.weight.copy_(words.float())
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight.zero_()
        for layer in model.bert.encoder.layer:
            for part in (layer.attention.output.dense, layer.output.dense):
                part.weight.normal_(std=0.002, generator=generator)
                part.bias.zero_()
        model.bert.encoder.layer[-1].output.LayerNorm.weight[:2] = 0
    with whole_directory(place) as temporary:
        model.save_pretrained(temporary)
        AutoTokenizer.from_pretrained(resolve(RAW), local_files_only=True).save_pretrained(temporary)


def main() -> None:
    """Run one stage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=("sample", "table", "raw", "encoder"))
    parser.add_argument("--text", type=Path, help="folder of the sources")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--teacher", default="all-MiniLM-L6-v2")
    parser.add_argument("--epochs", type=float, default=2.0, help="of the encoder, over the sample")
    options = parser.parse_args()
    output = options.output
    output.mkdir(parents=True, exist_ok=True)
    after = {"method": "distil", "teacher": base_of(options.teacher), "max_length": 256}
    text = output / "sample.txt"
    if options.stage == "sample":
        sample(options.text, output)
    elif options.stage == "table":
        save_half(trained(output, "static", text, new_table(output, "table", 384), **after), output / "bundled")
    elif options.stage == "raw":
        files = [options.text / f"{name}.txt.zst" for name in SOURCES if name != UNCONNECTED]
        run = trained(output, "raw", files, new_table(output, "raw-table", 256), method="neighbours")
        save_half(run, output / "bundled-raw-static")
    else:
        first = trained(output, "static-256", text, new_table(output, "table-256", 256), **after)
        begin = output / "encoder-start"
        if not begin.is_dir():
            table = load_encoder(first)
            assert isinstance(table, StaticEncoder)
            transformer_of(table, begin)
        told = {"dropout": 0.0, "batch_size": 512, "learning_rate": 1e-3, "epochs": options.epochs}
        save_half(trained(output, "encoder", text, begin, **after, **told), output / "bundled-encoder")


if __name__ == "__main__":
    main()
