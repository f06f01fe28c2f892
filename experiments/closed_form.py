"""A table after a teacher without training: the least squares of many short texts.

    python experiments/free_text.py ...; python experiments/manuals.py ...           # gather the text
    python experiments/closed_form.py sample  --text TEXT --data DATA --output OUT
    python experiments/closed_form.py vectors --output OUT                           # goes on where it stopped
    python experiments/closed_form.py solve   --output OUT

A text's vector is the sum of its tokens' rows over the root of their number. Wanted are the rows for which these
vectors are nearest to the teacher's (turned to 256 directions, half their mean taken off), and that stay near the
teacher's own vectors of single tokens where little text speaks of a token: conjugate gradients on the sparse counts.
The teacher's vectors then get the lengths that such sums reach, and it is solved again. Any text may be added later:
`vectors` computes what is missing, `solve` takes what is there.
"""

from __future__ import annotations

import argparse
import re
import sys
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from bundled import COMMON, LETTER, LONGEST, SIZE, documents, passage, quiet, rounded, save_half, start
from free_text import TITLED, Evaluated
from manuals import TITLED_MANUALS
from sides import base_of

from selfsent.files import write_text

SOURCES = {
    "captions": (8_000, 0, 0),
    "queries": (6_000, 0, 0),
    "short-sentences": (8_000, 0, 0),
    "dialogue": (12_000, 1_200, 0),
    "novels-100english": (1_500, 150, 0),
    "novels-eltec": (700, 50, 0),
    "law-dc-code": (700, 50, 0),
    "medical-medquad": (4_500, 1_200, 1_500),
    "openstax": (16_000, 5_000, 4_000),
    "arxiv": (6_000, 1_600, 4_000),
    "digital-gov": (4_000, 1_100, 500),
    "factbook": (1_500, 0, 0),
    "iis-docs": (2_300, 700, 400),
    "tech-docs": (3_000, 750, 0),
    "nltk-mix": (2_500, 250, 0),
    "x-org": (7_000, 1_900, 0),
    "tcl-tk": (1_500, 450, 0),
    "bsd-man": (4_500, 900, 0),
    "jargon": (5_000, 800, 0),
    "kicad": (2_300, 500, 0),
    "ntp": (600, 50, 0),
    "databases": (2_000, 500, 0),
    "drivers": (6_000, 1_500, 2_000),
    "boards": (3_000, 700, 0),
    "crypto": (2_500, 500, 0),
    "graphics": (1_100, 280, 0),
}
"""Sentences, passages and titles of each source, where it has as many."""
WORDS = (3, 25)
"""Words of a sentence: short ones say more about each word, and are cheap to read for a teacher."""
LISTS, NEIGHBOURS = 9_000, 24
"""Texts of related words alone, and the number of nearest words that each is drawn from."""
AT_ONCE = 1024
"""Texts whose vectors make one file."""
STIFF, STEPS, ROUNDS = 0.04, 20, 2
"""Weight of the start beside a text that says as much, steps of the solver, and how often lengths are fitted."""


def lists(teacher: Path, draw: np.random.Generator) -> list[str]:
    """Texts of three to seven words whose vectors by the teacher are near: of any topic, and nobody's text."""
    tokenizer, weight = start(teacher)
    names = sorted(token for token in tokenizer.get_vocab() if token.isalpha() and len(token) > 2)
    vectors = weight.numpy()[[tokenizer.token_to_id(name) for name in names]]
    vectors = vectors - vectors.mean(0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = []
    for first in draw.permutation(len(names))[:LISTS]:
        near = np.argpartition(-(vectors @ vectors[first]), NEIGHBOURS)[:NEIGHBOURS]
        others = [names[row] for row in near if row != first]
        chosen = draw.choice(others, draw.integers(2, 7), replace=False)
        found.append(" ".join(draw.permutation([names[first], *chosen])))
    return found


def drawn(text: Path, name: str, draw: np.random.Generator) -> list[str]:
    """Sentences, passages and titles of a source."""
    sentences, passages, titles = SOURCES[name]
    has_title = name in (*TITLED, *TITLED_MANUALS)
    parts = [(part[0] if has_title else "", part[has_title:]) for part in documents(text, name)]
    lines = [line for _, part in parts for line in part if WORDS[0] <= len(line.split()) <= WORDS[1]]
    long = [part for _, part in parts if len(part) > 1]
    found = [lines[row] for row in draw.permutation(len(lines))[:sentences]]
    found += [passage(long[row], draw) for row in draw.integers(len(long), size=passages)] if long else []
    known = list(dict.fromkeys(title for title, _ in parts))
    return found + [known[row] for row in draw.permutation(len(known))[:titles]]


def sample(text: Path, data: Path, items: Path, teacher: Path) -> None:
    """Texts of each source that has none yet, less what is evaluated on."""
    items.mkdir(parents=True, exist_ok=True)
    evaluated = Evaluated(data)
    for name in ("lists", *SOURCES):
        place, draw = items / f"{name}.txt", np.random.default_rng(zlib.crc32(name.encode()))
        if not place.is_file():
            found = lists(teacher, draw) if name == "lists" else drawn(text, name, draw)
            kept = [line for line in dict.fromkeys(found) if not evaluated.holds(line)]
            draw.shuffle(kept)
            write_text(place, "".join(f"{line}\n" for line in kept))
            print(name, len(kept), "texts", flush=True)


def chunks(items: Path) -> list[tuple[float, Path, list[str]]]:
    """Texts whose vectors make a file, that file, and its place in its source from 0 to 1: all sources go on alike."""
    found = []
    for place in sorted(items.glob("*.txt")):
        texts = place.read_text(encoding="utf-8").splitlines()
        for first in range(0, len(texts), AT_ONCE):
            file = items.parent / "vectors" / f"{place.stem}.{first // AT_ONCE:03}.npy"
            found.append((first / len(texts), file, texts[first : first + AT_ONCE]))
    return sorted(found, key=lambda chunk: chunk[:2])


def read_by_teacher(output: Path, teacher: Path) -> None:
    """The teacher's vectors of all texts, of length 1; those that are there stay."""
    (output / "vectors").mkdir(exist_ok=True)
    model = SentenceTransformer(str(teacher), device="cpu", model_kwargs={"dtype": torch.bfloat16})
    model.max_seq_length = LONGEST
    for _, file, texts in chunks(output / "items"):
        if not file.is_file():
            found = model.encode(texts, normalize_embeddings=True, convert_to_tensor=True, batch_size=64)
            np.save(part := file.with_suffix(".part.npy"), found.float().numpy().astype(np.float16))
            part.rename(file)


def least_squares(bags: sparse.csr_matrix, goals: np.ndarray, begin: np.ndarray, stiff: float) -> np.ndarray:
    """The table W of the least |bags W - goals|^2 + stiff |W - begin|^2, nearly.

    Conjugate gradients on the normal equations, divided by their diagonal; each of the d columns has its own steps.

    Args:
        bags: (texts, vocabulary) weights of tokens.
        goals: (texts, d).
        begin: (vocabulary, d).
        stiff: what a token's distance from its start weighs.
    """
    back = bags.T.tocsr()
    diagonal = np.asarray(bags.multiply(bags).sum(0)).reshape(-1, 1) + stiff
    table = begin.copy()
    rest = back @ (goals - bags @ table)
    way = rest / diagonal
    size = (rest * way).sum(0)
    for _ in range(STEPS):
        ahead = back @ (bags @ way) + stiff * way
        step = size / (way * ahead).sum(0)
        table, rest = table + step * way, rest - step * ahead
        scaled = rest / diagonal
        size, before = (rest * scaled).sum(0), size
        way = scaled + size / before * way
    return table


def solve(output: Path, teacher: Path) -> None:
    """The table of the texts whose vectors are there, as it would ship: OUT/bundled."""
    tokenizer, own = start(teacher)
    known = [(texts, np.load(file)) for _, file, texts in chunks(output / "items") if file.is_file()]
    found = np.concatenate([part for _, part in known]).astype(np.float32)
    read = tokenizer.encode_batch_fast([line for texts, _ in known for line in texts], add_special_tokens=False)
    rows = [text.ids[:LONGEST] for text in read]
    lengths = np.array([max(1, len(row)) for row in rows])
    which = (np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.concatenate(rows).astype(int))
    bags = sparse.csr_matrix((1 / np.sqrt(lengths[which[0]]), which), (len(rows), len(own)), dtype=np.float32)
    directions = np.linalg.eigh(found.T @ found)[1][:, -SIZE:]
    goals = found @ directions
    goals -= goals.mean(0) / 2
    share = (np.bincount(which[1], minlength=len(own)) + 1) / (len(which[1]) + len(own))
    begin = own.numpy() @ directions
    begin *= np.sqrt(COMMON / (COMMON + share))[:, None] / np.linalg.norm(begin, axis=1, keepdims=True)
    reached = bags @ begin
    begin *= (reached * goals).sum() / (reached**2).sum()
    stiff = STIFF * bags.multiply(bags).sum() / len(rows)
    fitted = np.ones(len(rows), np.float32)
    for _ in range(ROUNDS):
        table = least_squares(bags, goals * fitted[:, None], begin, stiff)
        fitted = ((bags @ table) * goals).sum(1) / (goals**2).sum(1)
        fitted = np.clip(fitted / fitted.mean(), 0.4, 2.5)
    print(len(rows), "texts; cosine to the goals", np.mean(cosines(bags @ table, goals)).round(4))
    vocabulary = tokenizer.get_vocab()
    weight = quiet(vocabulary, rounded(torch.from_numpy(table.astype(np.float32))))
    weight[[n for token, n in vocabulary.items() if re.fullmatch("(##)?[a-z]", token)]] *= LETTER
    save_half(SentenceTransformer(modules=[StaticEmbedding(tokenizer, weight.numpy())]), output / "bundled")


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The cosine of each row with that of the other side."""
    return (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


def main() -> None:
    """Run one stage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=("sample", "vectors", "solve"))
    parser.add_argument("--text", type=Path, help="folder of the sources")
    parser.add_argument("--data", type=Path, help="folder of evaluation sets")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    teacher = Path(base_of("all-MiniLM-L6-v2"))
    if options.stage == "sample":
        sample(options.text, options.data, options.output / "items", teacher)
    elif options.stage == "vectors":
        read_by_teacher(options.output, teacher)
    else:
        solve(options.output, teacher)


if __name__ == "__main__":
    main()
