"""Texts that say something about every word: senators' releases, WordNet, phrases of our own, and words put together.

    python experiments/made_text.py gather --press CLONE --output TEXT      # press, wordnet, wordnet-said, made
    python experiments/made_text.py cover  --text TEXT --english COUNTED --data DATA --output OUT

`gather` writes sources as `free_text.py` does. Senators' releases are in the public domain (lintool/
GrimmerSenatePressReleases), WordNet 3.0 is free for any use with its notice (Debian's wordnet-base), phrases.txt is
ours. `cover` counts how often each token of the table occurs in OUT/items, and writes there what the rare ones lack
until each has `ENOUGH` texts, or a quarter of it if it is rare in the English of COUNTED too (of which nothing but
counts is used): sentences of TEXT that hold several of them, the same with a word in another's place, and words that
are near to each other for the teacher.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from free_text import Evaluated, readable, sentences
from gathering import Document, distinct, documents, files, write_documents
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from bundled import start
from harness import base_of

from selfsent.data.vector_files import unit
from selfsent.files import write_text

WORDNET = Path("/usr/share/wordnet")
FAMILY = ("~", "~i", "-c", "#p", "%p", "#m", "%m", "&")
"""Relations whose words keep company: kinds, instances, words of a topic, parts and members, similar adjectives."""
FAMILIES, MADE, RELEASES = 3, 150, 4
"""Texts at most of a family of words, texts of a pattern, and which of the releases are read: one of so many."""
ENOUGH, LONGEST, NEAR = 40, 22, 24
"""Texts that a token should occur in, words of a sentence, and words of which lists are made with a word."""
LINES, SENTENCES, SWAPS, LISTS = 20_000, 20_000, 25_000, 60_000
"""Lines of a source that are looked at, and texts of each kind that are made at most."""


def press(clone: Path) -> Iterator[Document]:
    """What senators told the press from 2005 to 2007; some is told without marks, and cut into lines of 20 words."""
    for _, text in files(clone, "HEAD", "raw", step=RELEASES):
        lines = [line for part in re.split(r"\n\s*\n|\n(?=\s)", text) for line in sentences(part)]
        words = " ".join(lines).split()
        if lines and len(words) / len(lines) > 60:
            lines = [" ".join(words[first : first + 20]) for first in range(0, len(words), 20)]
        yield [line for line in lines if readable(line)]


class Synset:
    """Words of one meaning, what it is, sentences that show its use, and what it is related to."""

    def __init__(self, line: str) -> None:
        data, gloss = line.split(" | ")
        fields = data.split()
        count = int(fields[3], 16)
        self.words = [re.sub(r"\(\w+\)", "", word).replace("_", " ") for word in fields[4 : 4 + 2 * count : 2]]
        others = fields[5 + 2 * count :]
        self.related = [(others[n], others[n + 2] + others[n + 1]) for n in range(0, 4 * int(fields[4 + 2 * count]), 4)]
        self.said = re.findall(r'"([^"]+)"', gloss)
        self.meaning = re.sub(r'[;,:]?\s*"[^"]*"', "", gloss).strip("; \n")


def wordnet() -> tuple[list[Document], list[Document]]:
    """Words and their meaning with families of words, and sentences that show the use of a word."""
    known = {}
    for part, kind in (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r")):
        for line in (WORDNET / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if not line.startswith("  "):
                known[kind + line.split()[0]] = Synset(line)
    draw, glosses, said = np.random.default_rng(0), [], []
    for synset in known.values():
        glosses.append([f"{', '.join(synset.words)}: {synset.meaning}"])
        if synset.said:
            said.append(synset.said)
        near = [word for sign, to in synset.related if sign in FAMILY for word in known[to.replace("s", "a")].words[:2]]
        for _ in range(min(FAMILIES, len(near) // 4)):
            chosen = draw.choice(near, min(len(near), draw.integers(3, 9)), replace=False)
            glosses.append([", ".join([synset.words[0], *chosen])])
    return glosses, said


def made() -> Iterator[Document]:
    """Sentences of the patterns in phrases.txt, a pattern a document."""
    lines = (Path(__file__).parent / "phrases.txt").read_text(encoding="utf-8").splitlines()
    split = [re.match(r"\$(\w+): (.*)", line) for line in lines]
    choices = {found[1]: found[2].split("; ") for found in split if found}
    draw = np.random.default_rng(0)
    for line, found in zip(lines, split, strict=True):
        if not found and line[:1] not in {"", "#"}:
            told = [re.sub(r"\$([a-z]+)", lambda name: str(draw.choice(choices[name[1]])), line) for _ in range(MADE)]
            yield [text[0].upper() + text[1:] for text in dict.fromkeys(told)]


def gather(clone: Path, output: Path) -> None:
    """Write every source that is not there yet."""
    glosses, said = wordnet()
    sources = {"press": press(clone), "wordnet": glosses, "wordnet-said": said, "made": made()}
    for name, found in sources.items():
        if not (output / f"{name}.txt.zst").is_file():
            write_documents(output, name, distinct(found))


def held(tokenizer: Tokenizer, texts: list[str]) -> list[np.ndarray]:
    """The distinct tokens of each text."""
    return [np.unique(text.ids) for text in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


def counted(tokenizer: Tokenizer, texts: list[str]) -> np.ndarray:
    """In how many texts each token is, (vocabulary,)."""
    size = tokenizer.get_vocab_size()
    return np.bincount(np.concatenate([np.zeros(0, int), *held(tokenizer, texts)]).astype(int), minlength=size)


def lines_of(folder: Path, step: int = 1) -> Iterator[list[str]]:
    """Lines of each source in a folder, of some of its documents."""
    for place in sorted(folder.glob("*.txt.zst")):
        yield [line for document in documents(folder, place.name.split(".")[0])[::step] for line in document]


def wanted(tokenizer: Tokenizer, english: Path) -> np.ndarray:
    """In how many texts each token should be, (vocabulary,): fewer if it is rare in English, none without letters."""
    found = sum(counted(tokenizer, lines) for lines in lines_of(english, step=20))
    want = np.where(found >= found.sum() * 1e-6, ENOUGH, ENOUGH // 4)
    for token, row in tokenizer.get_vocab().items():
        want[row] *= len(token.removeprefix("##")) > 1 and token[0] != "[" and any(map(str.isalnum, token))
    return want


def cover(text: Path, english: Path, data: Path, output: Path) -> None:
    """Write OUT/items/cover-text, cover-swapped and cover-lists."""
    tokenizer, weight = start(Path(base_of("all-MiniLM-L6-v2")))
    draw, evaluated, known = np.random.default_rng(1), Evaluated(data), tokenizer.get_vocab()
    items = [place.read_text(encoding="utf-8").splitlines() for place in sorted(output.glob("items/*.txt"))]
    lack = wanted(tokenizer, english) - sum(counted(tokenizer, lines) for lines in items)
    seen = {line for lines in items for line in lines}
    pool = [lines[row] for lines in lines_of(text) for row in draw.permutation(len(lines))[:LINES]]
    pool = [pool[row] for row in draw.permutation(len(pool))]
    pool = [line for line in pool if 3 < len(line.split()) <= LONGEST and line not in seen]
    tokens = held(tokenizer, pool)
    texts: dict[str, list[str]] = {"text": [], "swapped": [], "lists": []}
    for least in (4, 3, 2, 1):
        for line, ids in zip(pool, tokens, strict=True):
            if len(texts["text"]) < SENTENCES and (lack[ids] > 0).sum() >= least and not evaluated.holds(line):
                texts["text"].append(line)
                lack[ids] -= 1
    examples = defaultdict(list)
    for line, ids in zip(pool, tokens, strict=True):
        for row in ids:
            if len(examples[row]) < 4:
                examples[row].append(line)
    names = sorted(token for token in known if token.isalpha() and len(token) > 2)
    rows = np.array([known[name] for name in names])
    order = draw.permutation(np.flatnonzero(lack[rows] > 0))
    near = nearest(weight.numpy()[rows], order)
    for first, others in zip(order, near, strict=True):
        lines = [(names[other], line) for other in others[:8] for line in examples[rows[other]]]
        for turn in draw.permutation(len(lines))[: min(lack[rows[first]] // 3, 6)]:
            line = re.sub(rf"\b{lines[turn][0]}\b", names[first], lines[turn][1], count=1, flags=re.I)
            if line != lines[turn][1] and len(texts["swapped"]) < SWAPS and not evaluated.holds(line):
                texts["swapped"].append(line)
                lack[rows[first]] -= 1
    for first, others in zip(order, near, strict=True):
        while lack[rows[first]] > 0 and len(texts["lists"]) < LISTS:
            odds = np.where(lack[rows[others]] > 0, 4.0, 1.0)
            line = [first, *draw.choice(others, draw.integers(2, 8), replace=False, p=odds / odds.sum())]
            lack[rows[line]] -= 1
            texts["lists"].append(" ".join(names[row] for row in draw.permutation(line)))
    for name, found in texts.items():
        found = list(dict.fromkeys(found))
        draw.shuffle(found)
        write_text(output / "items" / f"cover-{name}.txt", "".join(f"{line}\n" for line in found))
        print(name, len(found), "texts", flush=True)
    print((lack > 0).sum(), "of", len(lack), "tokens lack texts", flush=True)


def nearest(vectors: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The rows whose vectors, less their mean, are nearest to that of each row of an order, nearest first."""
    centred = unit(vectors - vectors.mean(0))
    found = []
    for part in np.array_split(order, len(order) // 512 + 1):
        alike = centred[part] @ centred.T
        alike[np.arange(len(part)), part] = -1
        near = np.argpartition(-alike, NEAR, axis=1)[:, :NEAR]
        by = np.argsort(-np.take_along_axis(alike, near, 1), axis=1)
        found.append(np.take_along_axis(near, by, 1))
    return np.concatenate(found)


def main() -> None:
    """Run one stage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=("gather", "cover"))
    for name in ("press", "text", "english", "data"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    if options.stage == "gather":
        gather(options.press, options.output)
    else:
        cover(options.text, options.english, options.data, options.output)


if __name__ == "__main__":
    main()
