"""Make encoders as those that ship, from free text; what is done stays, and what was begun is gone on with.

    python experiments/free_text.py --output TEXT ...                                # gathers the text
    python experiments/bundled.py sample  --text TEXT --output OUT
    python experiments/bundled.py table   --output OUT --teacher all-MiniLM-L6-v2    # bundled
    python experiments/bundled.py encoder --output OUT --teacher all-MiniLM-L6-v2    # bundled-encoder
    python experiments/bundled.py raw     --text TEXT --output OUT                   # bundled-raw-static

`sample` draws sentences, passages and titles of all sources, and pairs of title and passage. `table` computes the
teacher's vectors of them, and trains a table that begins as the teacher's own vectors of single tokens: texts follow
their vectors, and titles look for their passages. `encoder` cuts a smaller transformer out of the teacher
(cut_teacher.py), and trains it after the teacher. `raw` trains a table on neighbouring sentences alone. In both tables
the tokens without a letter or digit become shorter at the end. Those that ship were made by this script as it is at
commit 0308aac, from text that Wikipedia was a part of (docs/log/encoders.md, 27 November).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import zstandard
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from cut_teacher import cut
from free_text import TITLED
from sides import base_of

import selfsent
from selfsent.files import atomic_directory, write_text
from selfsent.models.loading import load_encoder
from selfsent.models.static import StaticEncoder

SOURCES = {
    "dialogue": (62_000, 0, 0),
    "short-sentences": (54_000, 0, 0),
    "captions": (31_000, 0, 0),
    "queries": (24_000, 0, 0),
    "novels-100english": (25_000, 1_500, 0),
    "novels-eltec": (15_000, 0, 0),
    "law-dc-code": (6_000, 0, 0),
    "medical-medquad": (24_000, 4_000, 5_000),
    "openstax": (60_000, 12_000, 9_000),
    "arxiv": (22_000, 7_000, 8_000),
    "digital-gov": (20_000, 4_000, 1_500),
    "factbook": (9_000, 0, 0),
    "iis-docs": (12_000, 2_500, 1_500),
    "tech-docs": (8_000, 1_500, 0),
    "nltk-mix": (6_000, 1_500, 0),
}
"""Sentences, passages and titles of each source in the sample, where it has as many."""
SHORT = ("dialogue", "short-sentences", "captions", "queries")
"""Sources of the sample of short sentences, which the encoder reads last."""
UNCONNECTED = ("short-sentences", "captions", "queries", "factbook")
"""Whose lines have nothing to do with each other."""
PASSAGE, LONGEST, AT_ONCE = 90, 128, 8192
"""Words of a passage; tokens that teacher and table read of a text; texts whose vectors make one file."""
SIZE, BATCH, PAIRS, SCALE = 256, 1024, 512, 20.0
"""Of the table: numbers of a vector, texts and pairs in a step, and what multiplies cosines."""
ROUNDS = ((1800, 0.02, 0.2), (1000, 0.01, 0.1))
"""Of its training: steps, the rate at their beginning, which falls to zero, and the weight of the loss of the pairs."""
LENGTH, COMMON = 4.0, 1e-3
"""Length of a rare token's vector at the start, and the share of the text at which it is shorter by the root of 2."""
RAW = "bundled-raw"
SHAPE = ((0, 3, 5), 15_872, 160)
"""Of the encoder: layers of the teacher that are kept, tokens, and the size of embeddings: 16 MB in half precision."""
COUNTED = 100_000
"""Sentences by which tokens are counted."""
ENCODER = {"dropout": 0.0, "batch_size": 256, "learning_rate": 3e-4, "max_length": 64}
"""How the encoder is trained."""
SHORT_RATE = 2e-4
"""The rate on short sentences."""
QUIET = 1 / 64
"""By which the vectors of a table's tokens without letters are multiplied: half precision holds that exactly."""
LETTER = 1 / 2
"""The same for tokens of one letter, in the table after the teacher."""


def documents(text: Path, name: str) -> list[list[str]]:
    """The documents of a source."""
    with zstandard.open(text / f"{name}.txt.zst", "rt", encoding="utf-8") as file:
        return [part.splitlines() for part in file.read().split("\n\n") if part.strip()]


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


def sample(text: Path, output: Path) -> None:
    """Distinct texts of all sources in random order, and pairs of a title and its text."""
    draw = np.random.default_rng(0)
    texts: list[str] = []
    short: list[str] = []
    pairs: list[tuple[str, str]] = []
    for name, (sentences, passages, titles) in SOURCES.items():
        titled = [(part[0] if name in TITLED else "", part[name in TITLED :]) for part in documents(text, name)]
        lines = [line for _, part in titled for line in part]
        long = [part for _, part in titled if len(part) > 1]
        texts += [lines[row] for row in draw.permutation(len(lines))[:sentences]]
        texts += [passage(long[row], draw) for row in draw.integers(len(long), size=passages)] if long else []
        if name in TITLED:
            known = list(dict.fromkeys(title for title, _ in titled))
            texts += [known[row] for row in draw.permutation(len(known))[:titles]]
            pairs += [(title, " ".join(part[:3])) for title, part in titled]
            pairs += [(title, passage(part[2:], draw)) for title, part in titled if len(part) > 5]
        if name == "captions":
            pairs += [(part[0], part[1]) for _, part in titled if len(part) > 1]
        if name in SHORT:
            short += lines
    for place, found in (("sample.txt", texts), ("short.txt", short)):
        found = list(dict.fromkeys(found))
        draw.shuffle(found)
        write_text(output / place, "".join(f"{line}\n" for line in found))
    write_text(output / "pairs.json", json.dumps(list(dict.fromkeys(pairs))))


def vectors(output: Path, teacher: Path, texts: list[str]) -> np.ndarray:
    """The teacher's vectors of all texts, of length 1, from files of some thousand each."""
    (output / "vectors").mkdir(exist_ok=True)
    model = SentenceTransformer(str(teacher), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    model.max_seq_length = LONGEST
    files = []
    for first in range(0, len(texts), AT_ONCE):
        files.append(output / "vectors" / f"{first // AT_ONCE:04}.npy")
        if not files[-1].is_file():
            found = model.encode(texts[first : first + AT_ONCE], normalize_embeddings=True, convert_to_tensor=True)
            np.save(part := files[-1].with_suffix(".part.npy"), found.float().numpy().astype(np.float16))
            part.rename(files[-1])
    return np.concatenate([np.load(file) for file in files])


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


class Bags:
    """Texts as bags of token numbers."""

    def __init__(self, tokenizer: Tokenizer, texts: list[str]) -> None:
        found = [text.ids[:LONGEST] for text in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        self.lengths = np.array([len(ids) for ids in found])
        self.first = np.cumsum(self.lengths) - self.lengths
        self.ids = np.concatenate([np.array(ids, np.int64) for ids in found])

    def __getitem__(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Tokens of some texts, and where each of them begins."""
        lengths = self.lengths[rows]
        begins = np.cumsum(lengths) - lengths
        where = np.arange(lengths.sum()) + np.repeat(self.first[rows] - begins, lengths)
        return torch.from_numpy(self.ids[where]), torch.from_numpy(begins)


def batches(rows: np.ndarray, size: int, seed: int) -> Iterator[np.ndarray]:
    """Rows in random order, again and again."""
    draw = np.random.default_rng(seed)
    while True:
        yield from np.array_split(draw.permutation(rows), len(rows) // size)


def both_ways(scores: Tensor) -> Tensor:
    """The loss of finding the diagonal from either side, in the mean."""
    right = torch.arange(len(scores))
    return (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2


def course(rounds: tuple[tuple[int, float, float], ...]) -> list[tuple[float, float]]:
    """The rate and the weight of pairs at each step."""
    return [(rate * (1 - step / steps), weight) for steps, rate, weight in rounds for step in range(steps)]


def table(output: Path, teacher: Path) -> tuple[Tokenizer, Tensor]:
    """A table after a teacher; a checkpoint every 200 steps."""
    texts = (output / "sample.txt").read_text(encoding="utf-8").splitlines()
    pairs = json.loads((output / "pairs.json").read_text(encoding="utf-8"))
    targets = vectors(output, teacher, texts)
    tokenizer, weight = start(teacher)
    bags, left, right = (Bags(tokenizer, part) for part in (texts, *map(list, zip(*pairs, strict=True))))
    usual = torch.from_numpy(targets[:60_000]).float()
    directions = torch.linalg.eigh(usual.T @ usual).eigenvectors[:, -SIZE:]
    share = torch.from_numpy(np.bincount(bags.ids, minlength=len(weight)) + 1.0).float()
    weight = F.normalize(weight @ directions, dim=-1) * LENGTH
    weight *= (COMMON / (COMMON + share / share.sum())).sqrt()[:, None]
    weight, bridge = torch.nn.Parameter(weight), torch.nn.Parameter(directions)
    learner = torch.optim.Adam(
        [{"params": [weight]}, {"params": [bridge], "slower": 0.05}], betas=(0.9, 0.98), fused=True
    )
    place, begin = output / "table.pt", 0
    if place.is_file():
        begin, kept, state = torch.load(place)
        weight.data, bridge.data = kept
        learner.load_state_dict(state)
    of_texts = batches(np.flatnonzero(bags.lengths), BATCH, 1 + begin)
    of_pairs = batches(np.flatnonzero(left.lengths * right.lengths), PAIRS, 2 + begin)
    for step, (rate, paired) in enumerate(course(ROUNDS)[begin:], begin):
        for group in learner.param_groups:
            group["lr"] = rate * group.get("slower", 1.0)
        rows, matched = next(of_texts), next(of_pairs)
        goal = F.normalize(torch.from_numpy(targets[rows]).float(), dim=-1)
        mine, title, body = (
            F.normalize(F.embedding_bag(ids, weight, begins, mode="mean"), dim=-1)
            for ids, begins in (bags[rows], left[matched], right[matched])
        )
        own = torch.eye(len(rows), dtype=torch.bool)
        alike, wanted = ((part @ part.T * SCALE).masked_fill(own, -1e4) for part in (mine, goal))
        loss = both_ways(F.normalize(mine @ bridge.T, dim=-1) @ goal.T * SCALE)
        loss = loss + F.kl_div(alike.log_softmax(-1), wanted.softmax(-1), reduction="batchmean")
        loss = loss + paired * both_ways(title @ body.T * SCALE)
        learner.zero_grad()
        loss.backward()
        learner.step()
        if step % 200 == 199:
            print(step + 1, round(loss.item(), 3), flush=True)
            torch.save((step + 1, (weight.data, bridge.data), learner.state_dict()), part := place.with_suffix(".part"))
            part.rename(place)
    return tokenizer, weight.data


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


def save_run(run: Path, place: Path) -> None:
    """The model of a run, as it ships."""
    encoder = load_encoder(run)
    tokens = encoder.table if isinstance(encoder, StaticEncoder) else encoder.transformer.get_input_embeddings()
    tokens.weight.data = rounded(tokens.weight.data)
    if isinstance(encoder, StaticEncoder):
        tokens.weight.data = quiet(encoder.tokenizer.get_vocab(), tokens.weight.data)
    save_half(encoder.sentence_transformer, place)


def trained(output: Path, name: str, corpus: Any, base: Path, **told: Any) -> Path:
    """The directory of a run, gone on with where it was begun."""
    common = {"resume": True, "dev": "stsb-dev"}
    return selfsent.train(corpus, base=base, output=output / name, **common, **told).directory


def main() -> None:
    """Run one stage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=("sample", "table", "encoder", "raw"))
    parser.add_argument("--text", type=Path, help="folder of the sources")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--teacher", default="all-MiniLM-L6-v2")
    options = parser.parse_args()
    output = options.output
    output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    if options.stage == "sample":
        sample(options.text, output)
    elif options.stage == "table":
        tokenizer, weight = table(output, Path(base_of(options.teacher)))
        known = tokenizer.get_vocab()
        weight = quiet(known, rounded(weight))
        weight[[n for token, n in known.items() if re.fullmatch("(##)?[a-z]", token)]] *= LETTER
        save_half(SentenceTransformer(modules=[StaticEmbedding(tokenizer, weight.numpy())]), output / "bundled")
    elif options.stage == "raw":
        files = [options.text / f"{name}.txt.zst" for name in SOURCES if name not in UNCONNECTED]
        base = output / "raw-table"
        if not (base / "model").is_dir():
            selfsent.make_table(None, base, tokenizer=RAW, size=256)
        run = trained(output, "raw", files, base, method="neighbours", whiten=0)
        save_run(run, output / "bundled-raw-static")
    else:
        begin, text = output / "encoder-start", output / "sample.txt"
        after = {"method": "distil", "teacher": base_of(options.teacher), **ENCODER}
        if not begin.is_dir():
            cut(Path(after["teacher"]), text.read_text(encoding="utf-8").splitlines()[:COUNTED], begin, *SHAPE)
        first = trained(output, "encoder", text, begin, **after, sentences=200_000, epochs=1.0)
        last = {**after, "learning_rate": SHORT_RATE}
        run = trained(output, "encoder-short", output / "short.txt", first / "model", **last)
        save_run(run, output / "bundled-encoder")


if __name__ == "__main__":
    main()
