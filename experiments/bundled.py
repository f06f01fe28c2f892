"""Make encoders as those that ship, from free text; what is done stays, and what was begun is gone on with.

    python experiments/free_text.py --output TEXT ...                                # gathers the text
    python experiments/bundled.py sample  --text TEXT --output OUT
    python experiments/bundled.py encoder --output OUT --teacher all-MiniLM-L6-v2    # bundled-encoder
    python experiments/bundled.py raw     --text TEXT --output OUT                   # bundled-raw

`sample` draws sentences, passages and titles of all sources. `encoder` cuts a smaller transformer out of the teacher
(cut_teacher.py), and trains it after the teacher. `raw` pretrains a transformer on passages of the text, without a
teacher. The table `bundled` is made by `closed_form.py`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModelForMaskedLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from cut_teacher import cut
from gathering import SOURCES, TITLED, documents
from harness import base_of

import selfsent
from selfsent.files import atomic_directory, write_json, write_text
from selfsent.lexical.hybrid import SEARCH_FILE
from selfsent.models.loading import load_encoder

PASSAGE = 90
"""Words of a passage."""
BLOCK = 95
"""Words of a text that it reads."""
ALONE = {"batch_size": 32, "embedding_rate": 0.0, "steps": 1_697}
"""How it is pretrained: 21 minutes of one core."""
SHAPE = ((0, 3, 5), 15_872, 160)
"""Of the encoder: layers of the teacher that are kept, tokens, and the size of embeddings: 16 MB in half precision."""
COUNTED = 100_000
"""Sentences by which tokens are counted."""
ENCODER = {"dropout": 0.0, "batch_size": 256, "learning_rate": 3e-4, "max_length": 128}
"""How the encoder is trained."""
DROPOUT, WORDS = 0.1, 1.0
"""Of later training, and the weight of words in a search, chosen on dev queries of counsel and SciTLDR."""
SHORT_RATE = 2e-4
"""The rate on short sentences."""
QUIET = 1 / 64
"""By which the vectors of a table's tokens without letters are multiplied: half precision holds that exactly."""


def passage(lines: list[str], draw: np.random.Generator) -> str:
    """Two to five neighbouring lines, as far as they are no longer than a passage."""
    first = draw.integers(max(1, len(lines) - 1))
    words, kept = 0, []
    for line in lines[first : first + draw.integers(2, 6)]:
        words += len(line.split())
        if kept and words > PASSAGE:
            break
        kept.append(line)
    return " ".join(kept)


def blocks(text: Path) -> list[str]:
    """All lines for the encoder from text alone, one behind the other, in texts of as many words as it reads."""
    found: list[str] = []
    for name in SOURCES["raw"]:
        kept, words = list[str](), 0
        for line in itertools.chain.from_iterable(documents(text, name)):
            if kept and words + len(line.split()) > BLOCK:
                found.append(" ".join(kept))
                kept, words = [], 0
            kept.append(line)
            words += len(line.split())
        found.append(" ".join(kept))
    return found


def sample(text: Path, output: Path) -> None:
    """Distinct texts of all sources in random order, and short ones."""
    draw = np.random.default_rng(0)
    texts: list[str] = []
    short: list[str] = []
    for name, (sentences, passages, titles) in SOURCES["encoder"].items():
        titled = [(part[0] if name in TITLED else "", part[name in TITLED :]) for part in documents(text, name)]
        lines = [line for _, part in titled for line in part]
        long = [part for _, part in titled if len(part) > 1]
        texts += [lines[row] for row in draw.permutation(len(lines))[:sentences]]
        texts += [passage(long[row], draw) for row in draw.integers(len(long), size=passages)] if long else []
        if name in TITLED:
            known = list(dict.fromkeys(title for title, _ in titled))
            texts += [known[row] for row in draw.permutation(len(known))[:titles]]
        if name in SOURCES["short"]:
            short += lines
    for place, found in (("sample.txt", texts), ("short.txt", short)):
        found = list(dict.fromkeys(found))
        draw.shuffle(found)
        write_text(output / place, "".join(f"{line}\n" for line in found))


def start(teacher: Path) -> tuple[Tokenizer, Tensor]:
    """The teacher's tokenizer with English tokens alone, and its vectors of each of them, of length 1."""
    whole = json.loads((teacher / "tokenizer.json").read_text(encoding="utf-8"))
    known: dict[str, int] = whole["model"]["vocab"]
    english = [token for token in known if token.isascii() and (token == "[" or token[0] != "[")]
    tokens = ["[PAD]", "[UNK]", *english]
    whole["model"]["vocab"] = {token: number for number, token in enumerate(tokens)}
    whole["added_tokens"] = [
        {**token, "id": tokens.index(token["content"])} for token in whole["added_tokens"] if token["content"] in tokens
    ]
    whole.update(truncation=None, padding=None, post_processor=None)
    model = SentenceTransformer(str(teacher), device="cpu")
    ends = (known["[CLS]"], known["[SEP]"])
    ids = torch.tensor([[ends[0], known[token], ends[1]] for token in tokens])
    with torch.inference_mode():
        each = [model[0].auto_model(part).last_hidden_state.mean(1) for part in ids.split(512)]
    return Tokenizer.from_str(json.dumps(whole)), F.normalize(torch.cat(each), dim=-1)


def both_ways(scores: Tensor) -> Tensor:
    """The loss of finding the diagonal from either side, in the mean."""
    right = torch.arange(len(scores))
    return (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2


def rounded(weight: Tensor, bits: int = 10) -> Tensor:
    """A table on a grid of powers of two: half precision holds its numbers, and they pack into half the room."""
    step = 2.0 ** torch.ceil(torch.log2(weight.abs().max() / (2 ** (bits - 1) - 1)))
    return (weight / step).round() * step


def quiet(known: dict[str, int], weight: Tensor) -> Tensor:
    """A table whose tokens without a letter or digit, and the unknown token, are shorter.

    They say little, and a line of them must not outweigh the words of a text.

    Args:
        known: the vocabulary.
        weight: (vocabulary, d).
    """
    quieter = weight.clone()
    quieter[[n for token, n in known.items() if token == "[UNK]" or not any(map(str.isalnum, token))]] *= QUIET
    return quieter


def save_half(model: SentenceTransformer, place: Path) -> None:
    """A model in half precision, as it ships."""
    with atomic_directory(place) as temporary:
        model.half().save(str(temporary), create_model_card=False)


def save_alone(model: Path, place: Path) -> None:
    """A model that predicts words, as it ships."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.save_pretrained(place)
    AutoModelForMaskedLM.from_pretrained(model).half().save_pretrained(place)


def save_run(run: Path, place: Path) -> None:
    """The model of a run, as it ships."""
    encoder = load_encoder(run)
    encoder.words.weight.data = rounded(encoder.words.weight.data)
    encoder.transformer.config.update({"hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT})
    save_half(encoder.sentence_transformer, place)
    write_json(place / SEARCH_FILE, {"lexical_weight": WORDS})


def trained(output: Path, name: str, corpus: Any, base: Path, **told: Any) -> Path:
    """The directory of a run, gone on with where it was begun."""
    common = {"resume": True, "dev": "stsb-dev"}
    return selfsent.train(corpus, base=base, output=output / name, **common, **told).directory


def main() -> None:
    """Run one stage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=("sample", "encoder", "raw"))
    parser.add_argument("--text", type=Path, help="folder of the sources")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--teacher", default="all-MiniLM-L6-v2")
    options = parser.parse_args()
    output = options.output
    output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    if options.stage == "sample":
        sample(options.text, output)
    elif options.stage == "raw":
        write_text(output / "raw.txt", "".join(f"{line}\n" for line in blocks(options.text)))
        run = selfsent.pretrain(output / "raw.txt", output / "raw", resume=True, **ALONE)
        with atomic_directory(output / "bundled-raw") as temporary:
            save_alone(run.directory / "model", temporary)
    else:
        begin, text = output / "encoder-start", output / "sample.txt"
        after = {"method": "distil", "teacher": base_of(options.teacher), **ENCODER}
        if not begin.is_dir():
            cut(Path(after["teacher"]), text.read_text(encoding="utf-8").splitlines()[:COUNTED], begin, *SHAPE)
        first = trained(output, "encoder", text, begin, **after, sentences=300_000, epochs=1.0)
        last = {**after, "learning_rate": SHORT_RATE}
        run = trained(output, "encoder-short", output / "short.txt", first / "model", **last)
        save_run(run, output / "bundled-encoder")


if __name__ == "__main__":
    main()
