"""Make the encoders that ship, one stage after the other; what is done stays, and what was begun is gone on with.

    python experiments/bundled.py sample  --text TEXT --output OUT
    python experiments/bundled.py encoder --output OUT --teacher all-MiniLM-L6-v2    # bundled-encoder
    python experiments/bundled.py table   --output OUT --teacher all-MiniLM-L6-v2    # bundled
    python experiments/bundled.py raw     --text TEXT --output OUT                   # bundled-raw-static
    python experiments/bundled.py quiet   --output OUT                               # both tables, as trained before

TEXT is a folder with the nine freely usable sources, one file NAME.txt.zst each: a sentence a line, an empty line
behind each document. `sample` draws sentences of each of them. `table` trains a new table of token vectors, with the
tokenizer of bundled-raw, after a teacher. `raw` trains one on neighbouring sentences alone, of the sources whose lines
stand in the order of the text. `encoder` cuts a smaller transformer out of the teacher (cut_teacher.py), and trains it
after the teacher. The teacher's vectors of a sentence are made once for each --max-length and precision. In both tables
the tokens without a letter or digit become shorter at the end; `quiet` makes them so in tables of before that.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from bm25s.stopwords import STOPWORDS_EN
from cut_teacher import cut
from sides import base_of

import selfsent
from selfsent.files import atomic_directory, write_text
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
SHORT = {
    "wikipedia": 15_000,
    "wikipedia-recent": 5_000,
    "medical-medquad": 5_000,
    "dialogue": 60_000,
    "podcasts-changelog": 10_000,
    "novels-100english": 5_000,
    "novels-eltec": 5_000,
    "law-dc-code": 1_000,
    "short-sentences": 84_000,
}
"""The same for the sample of mostly short sentences, which the encoder reads last."""
UNCONNECTED = "short-sentences"
"""Whose lines have nothing to do with each other."""
RAW = "bundled-raw"
SHAPE = ((0, 3, 5), 15_872, 160)
"""Of the encoder: layers of the teacher that are kept, tokens, and the size of embeddings: 16 MB in half precision."""
COUNTED = 100_000
"""Sentences by which tokens are counted."""
ENCODER = {"dropout": 0.0, "batch_size": 256, "learning_rate": 3e-4, "max_length": 64}
"""How the encoder is trained."""
SHORT_RATE = 2e-4
"""The rate on short sentences."""
BEFORE = "f308387"
"""The last commit whose tables have the tokens without letters as long as training left them."""
QUIET = 1 / 64
"""By which the vectors of a table's tokens without letters are multiplied: half precision holds that exactly."""


def sample(text: Path, output: Path, sources: dict[str, int]) -> None:
    """Distinct sentences of all sources, in random order."""
    draw = np.random.default_rng(0)
    texts: list[str] = []
    for name, count in sources.items():
        corpus = selfsent.read_corpus(text / f"{name}.txt.zst")
        texts += corpus.texts(np.sort(draw.permutation(len(corpus))[:count]))
    texts = list(dict.fromkeys(texts))
    draw.shuffle(texts)
    write_text(output, "".join(f"{line}\n" for line in texts))


def new_table(output: Path, name: str, size: int) -> Path:
    """The directory of an untrained table, made where it is not there."""
    place = output / name
    return place if (place / "model").is_dir() else selfsent.make_table(None, place, tokenizer=RAW, size=size)


def trained(output: Path, name: str, corpus: Any, base: Path, **told: Any) -> Path:
    """The directory of a run, gone on with where it was begun."""
    common = {"resume": True, "dev": "stsb-dev"}
    return selfsent.train(corpus, base=base, output=output / name, **common, **told).directory


def rounded(weight: torch.Tensor, bits: int = 9, by_row: bool = False) -> torch.Tensor:
    """A table on a grid of powers of two, with one step for all of it or one for each row.

    Half precision holds all these numbers, and they take half the room in a compressed package.
    """
    most = 2 ** (bits - 1) - 1
    largest = weight.abs().amax(dim=1, keepdim=True) if by_row else weight.abs().max()
    step = 2.0 ** torch.ceil(torch.log2(largest / most))
    return (weight / step).round() * step


def quiet(tokenizer: Any, weight: torch.Tensor, factor: float | None = QUIET) -> torch.Tensor:
    """A table whose tokens without a letter or digit, and the unknown token, are shorter.

    They say little, and a line of them must not outweigh the words of a text.

    Args:
        tokenizer: of the table.
        weight: (vocabulary, d).
        factor: of their lengths; None makes none of them longer than stop words are in the mean.
    """
    known = tokenizer.get_vocab()
    ids = [number for token, number in known.items() if not any(map(str.isalnum, token))] + [tokenizer.unk_token_id]
    length = weight.norm(dim=1, keepdim=True)
    most = length[[known[word] for word in STOPWORDS_EN if word in known]].mean()
    quieter = weight.clone()
    quieter[ids] *= (most / length[ids]).clamp(max=1) if factor is None else factor
    return quieter


def before(name: str, runs: Path) -> Path:
    """The directory of a table that ships, as it was trained."""
    place, now = runs / name, Path(resolve(name))
    if not place.is_dir():
        with atomic_directory(place) as temporary:
            for file in subprocess.check_output(["git", "ls-tree", "--name-only", BEFORE], cwd=now, text=True).split():
                was = subprocess.check_output(["git", "show", f"{BEFORE}:./{file}"], cwd=now)
                (temporary / file).write_bytes(was)
    return place


def save_half(run: Path, place: Path) -> None:
    """The model of a run in half precision, as it ships, with token vectors of 9 bits."""
    encoder = load_encoder(run)
    tokens = encoder.table if isinstance(encoder, StaticEncoder) else encoder.transformer.get_input_embeddings()
    tokens.weight.data = rounded(tokens.weight.data)
    if isinstance(encoder, StaticEncoder):
        tokens.weight.data = quiet(encoder.tokenizer, tokens.weight.data)
    model = encoder.sentence_transformer.half()
    with atomic_directory(place) as temporary:
        model.save(str(temporary), create_model_card=False)


def main() -> None:
    """Run one stage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=("sample", "table", "raw", "encoder", "quiet"))
    parser.add_argument("--text", type=Path, help="folder of the sources")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--teacher", default="all-MiniLM-L6-v2")
    parser.add_argument("--sentences", type=int, default=200_000, help="of the sample that the encoder reads")
    parser.add_argument("--epochs", type=float, default=1.0, help="of the encoder, over these")
    options = parser.parse_args()
    output = options.output
    output.mkdir(parents=True, exist_ok=True)
    after = {"method": "distil", "teacher": base_of(options.teacher), "max_length": 256}
    text = output / "sample.txt"
    if options.stage == "sample":
        sample(options.text, text, SOURCES)
        sample(options.text, output / "short.txt", SHORT)
    elif options.stage == "table":
        save_half(trained(output, "static", text, new_table(output, "table", 384), **after), output / "bundled")
    elif options.stage == "raw":
        files = [options.text / f"{name}.txt.zst" for name in SOURCES if name != UNCONNECTED]
        run = trained(output, "raw", files, new_table(output, "raw-table", 256), method="neighbours", whiten=0)
        save_half(run, output / "bundled-raw-static")
    elif options.stage == "quiet":
        for name in ("bundled", "bundled-raw-static"):
            save_half(before(name, output / "before"), output / name)
    else:
        begin = output / "encoder-start"
        if not begin.is_dir():
            cut(Path(after["teacher"]), text.read_text(encoding="utf-8").splitlines()[:COUNTED], begin, *SHAPE)
        told = {**after, **ENCODER, "sentences": options.sentences, "epochs": options.epochs}
        first = trained(output, "encoder", text, begin, **told)
        last = {**after, **ENCODER, "learning_rate": SHORT_RATE}
        run = trained(output, "encoder-short", output / "short.txt", first / "model", **last)
        save_half(run, output / "bundled-encoder")


if __name__ == "__main__":
    main()
