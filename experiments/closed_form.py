"""The table that ships, from free text: a teacher's vectors of short texts, least squares, and a little training.

    python experiments/free_text.py ...; python experiments/manuals.py ...; python experiments/made_text.py gather ...
    python experiments/closed_form.py sample  --text TEXT --data DATA --output OUT
    python experiments/made_text.py cover     --text TEXT --english COUNTED --data DATA --output OUT
    python experiments/closed_form.py vectors --output OUT                           # goes on where it stopped
    python experiments/closed_form.py table   --output OUT                           # OUT/bundled

A text's vector is the sum of its tokens' rows over the root of their number. Wanted are the rows for which these
vectors are nearest to the teacher's (half their mean taken off), and that stay near the teacher's own vectors of single
tokens where little text speaks of a token: conjugate gradients on the sparse counts. The teacher's vectors then get the
lengths that such sums reach, and it is solved again. A few hundred steps at a low rate follow, by the loss `contrast`
of `distil`. At the end the 256 widest directions stay, and those of little spread are drawn out. Any text may be added
later, a further draw of NAME as NAME+b, NAME+c: `vectors` computes what is missing, `table` takes what is there.
"""

from __future__ import annotations

import argparse
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from bundled import both_ways, passage, quiet, rounded, save_half, start
from free_text import Evaluated
from gathering import SOURCES, TITLED, documents
from harness import base_of
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from selfsent.data.vector_files import unit
from selfsent.files import write_text
from selfsent.scorers.load_scorer import load_scorer

WORDS = (3, 25)
"""Words of a sentence: short ones say more about each word, and are cheap to read for a teacher."""
WHOLE = (50, 110)
"""Words of a whole passage: as long as what is searched, posts and articles."""
AT_ONCE, TOGETHER = 1024, 6
"""Texts whose vectors make one file, and files whose texts are read together."""
TINY = 1e-20
"""Added up by no step of the solver: where few texts are solved exactly, it would divide by zero."""
SIZE, LONGEST, COMMON = 256, 128, 1e-3
"""Numbers of a vector as it ships, tokens of a text that count, and the share of the text at which a start is shorter
by root 2."""
STIFF, STEPS, ROUNDS = 0.04, 20, 2
"""Weight of the start beside a text that says as much, steps of the solver, and how often lengths are fitted."""
UNNATURAL, SHORT, ASKED = (
    ("cover-lists", "cover-swapped", "wordnet", "words"),
    ("dialogue", "made", "queries"),
    "queries",
)
"""Sources: no language as it is spoken or written, what counts thrice in the solution, and twice after."""
PASSAGES = "+whole"
"""How the names of sources of whole passages end."""
COURSES, TRAINED, RATE, BATCH, SCALE = 4, 700, 0.006, 1024, 20.0
"""Courses of training whose mean is taken, their steps, the rate at their beginning, which falls to zero, texts in a
step, and what multiplies cosines."""
SHARES = (0.2, 0.15)
"""Of a step: unnatural texts, and whole passages."""
SPREAD, LENGTH = 0.3, 4.0
"""The power of the spread by which directions are divided, and the usual length of a row."""
LONGER = 4.0
"""How much longer it ships: in half precision, small steps are not lost to rounding then."""


def whole_passages(parts: list[list[str]], count: int, draw: np.random.Generator) -> list[str]:
    """Lines from anywhere in a document to its end, or as many of them as a whole passage may have."""
    long, found = [part for part in parts if sum(len(line.split()) for line in part) >= WHOLE[0]], []
    for row in draw.integers(len(long), size=4 * count) if long else []:
        words, kept = 0, []
        for line in long[row][draw.integers(len(long[row])) :]:
            words += len(line.split())
            if words > WHOLE[1]:
                break
            kept.append(line)
        if sum(len(line.split()) for line in kept) >= WHOLE[0]:
            found.append(" ".join(kept))
    return list(dict.fromkeys(found))[:count]


def drawn(text: Path, name: str, draw: np.random.Generator) -> tuple[list[str], list[str]]:
    """Sentences, passages and titles of a source; and whole passages."""
    sentences, passages, titles, whole = SOURCES["table"][name]
    has_title = name in (*TITLED, *SOURCES["titled_manuals"])
    parts = [(part[0] if has_title else "", part[has_title:]) for part in documents(text, name)]
    lines = [line for _, part in parts for line in part if WORDS[0] <= len(line.split()) <= WORDS[1]]
    long = [part for _, part in parts if len(part) > 1]
    found = [lines[row] for row in draw.permutation(len(lines))[:sentences]]
    found += [passage(long[row], draw) for row in draw.integers(len(long), size=passages)] if long else []
    known = list(dict.fromkeys(title for title, _ in parts))
    found += [known[row] for row in draw.permutation(len(known))[:titles]]
    return found, whole_passages([part for _, part in parts], whole, draw)


def sample(text: Path, data: Path, items: Path) -> None:
    """Texts of each source that has none yet, less what is evaluated on."""
    items.mkdir(parents=True, exist_ok=True)
    evaluated = Evaluated(data)
    for name in SOURCES["table"]:
        place, draw = items / f"{name}.txt", np.random.default_rng(zlib.crc32(name.encode()))
        if not place.is_file():
            both = (items / f"{name}{PASSAGES}.txt", place)
            for file, found in zip(both, reversed(drawn(text, name, draw)), strict=True):
                kept = [line for line in dict.fromkeys(found) if not evaluated.holds(line)]
                draw.shuffle(kept)
                write_text(file, "".join(f"{line}\n" for line in kept))
                print(file.stem, len(kept), "texts", flush=True)


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
    read = load_scorer(str(teacher), int8=True)
    missing = [chunk for chunk in chunks(output / "items") if not chunk[1].is_file()]
    for first in range(0, len(missing), TOGETHER):
        some = missing[first : first + TOGETHER]
        vectors = unit(read([text for _, _, texts in some for text in texts]))
        for _, file, texts in some:
            np.save(part := file.with_suffix(".part.npy"), vectors[: len(texts)].astype(np.float16))
            part.rename(file)
            vectors = vectors[len(texts) :]
        print(len(missing) - first - len(some), "files to go", flush=True)


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
        step = size / np.maximum((way * ahead).sum(0), TINY)
        table, rest = table + step * way, rest - step * ahead
        scaled = rest / diagonal
        size, before = (rest * scaled).sum(0), size
        way = scaled + size / np.maximum(before, TINY) * way
    return table


def counts_of(tokenizer: Tokenizer, texts: list[str]) -> sparse.csr_matrix:
    """How often each token is among the first LONGEST of each text, (texts, vocabulary)."""
    rows = [text.ids[:LONGEST] for text in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    places = (np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.concatenate(rows).astype(int))
    return sparse.csr_matrix((np.ones(len(places[0]), np.float32), places), (len(rows), tokenizer.get_vocab_size()))


def known_texts(output: Path, tokenizer: Tokenizer) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Counts of tokens (texts, vocabulary), the teacher's vectors (texts, d) and the source of each text."""
    known = [(file.name, texts, np.load(file)) for _, file, texts in chunks(output / "items") if file.is_file()]
    counts = counts_of(tokenizer, [line for _, texts, _ in known for line in texts])
    stems = [re.sub(r"(\+[a-z])?\.\d+\.npy", "", name) for name, _, _ in known]
    names = np.repeat(stems, [len(texts) for _, texts, _ in known])
    some = np.flatnonzero(np.diff(counts.indptr))
    return counts[some], np.concatenate([part for _, _, part in known]).astype(np.float32)[some], names[some]


def solved(counts: sparse.csr_matrix, found: np.ndarray, names: np.ndarray, own: np.ndarray) -> tuple[Any, ...]:
    """The table of least squares (vocabulary, d), and the directions (d, d) that its columns stand for."""
    natural, bags = found[~np.isin(names, UNNATURAL)], counts.copy()
    bags.data /= np.repeat(np.sqrt(counts.sum(1).A1), np.diff(counts.indptr))
    directions = np.linalg.eigh(natural.T @ natural)[1]
    goals = found @ directions - (natural @ directions).mean(0) / 2
    share = counts.sum(0).A1 + 1
    rarer = np.sqrt(COMMON / (COMMON + share / share.sum())).astype(np.float32)
    begin = unit(own @ directions) * rarer[:, None]
    reached = bags @ begin
    begin *= (reached * goals).sum() / (reached**2).sum()  # float32 throughout
    stiff = STIFF * bags.multiply(bags).sum() / len(names)
    weights = sparse.diags(np.where(np.isin(names, SHORT), np.sqrt(3), 1).astype(np.float32))
    table, fitted = begin, np.ones(len(names), np.float32)
    for _ in range(ROUNDS):
        table = least_squares(weights @ bags, weights @ (goals * fitted[:, None]), begin, stiff)
        fitted = ((bags @ table) * goals).sum(1) / (goals**2).sum(1)
        fitted = np.clip(fitted / fitted.mean(), 0.4, 2.5)
    return table, directions


def trained(
    counts: sparse.csr_matrix, found: np.ndarray, names: np.ndarray, solution: tuple[Any, ...], seed: int
) -> Tensor:
    """The table after training: texts find their teacher's vectors, and are as near to each other as those are."""
    table, directions = solution
    table = table * LENGTH / np.median(np.linalg.norm(table, axis=1))
    weight, bridge = (torch.nn.Parameter(torch.from_numpy(part.copy())) for part in (table, directions))
    groups = [{"params": [weight]}, {"params": [bridge], "slower": 0.05}]
    learner = torch.optim.Adam(groups, betas=(0.9, 0.98), fused=True)
    odd, whole = np.isin(names, UNNATURAL), np.char.endswith(names, PASSAGES)
    usual = np.concatenate([np.flatnonzero(~odd & ~whole), np.flatnonzero(names == ASKED)])
    few, long = (int(BATCH * share) for share in SHARES)
    kinds = ((usual, BATCH - few - long), (np.flatnonzero(odd), few), (np.flatnonzero(whole), long))
    draws = [batches(rows, size, seed) for rows, size in kinds]
    own = torch.eye(BATCH, dtype=torch.bool)
    for step in range(TRAINED):
        for group in learner.param_groups:
            group["lr"] = RATE * (1 - step / TRAINED) * group.get("slower", 1.0)
        rows = np.concatenate([next(draw) for draw in draws])
        part, goal = counts[rows], F.normalize(torch.from_numpy(found[rows]), dim=-1)
        ids, begins = (torch.from_numpy(place.astype(np.int64)) for place in (part.indices, part.indptr[:-1]))
        told = torch.from_numpy(part.data)
        mine = F.normalize(F.embedding_bag(ids, weight, begins, mode="sum", per_sample_weights=told), dim=-1)
        alike, wanted = ((side @ side.T * SCALE).masked_fill(own, -1e4) for side in (mine, goal))
        loss = F.kl_div(alike.log_softmax(-1), wanted.softmax(-1), reduction="batchmean")
        loss = loss + both_ways(F.normalize(mine @ bridge.T, dim=-1) @ goal.T * SCALE)
        learner.zero_grad()
        loss.backward()
        learner.step()
    return weight.data


def batches(rows: np.ndarray, size: int, seed: int) -> Iterator[np.ndarray]:
    """Rows in random order, again and again, so many at a time."""
    draw = np.random.default_rng(seed)
    while True:
        order = draw.permutation(rows)
        yield from (order[first : first + size] for first in range(0, len(order) - size + 1, size))


def finished(weight: np.ndarray, counts: sparse.csr_matrix, vocabulary: dict[str, int]) -> Tensor:
    """A table as it ships: its SIZE widest directions, widest first, nearer to one spread; signs next to nothing."""
    usual = counts[np.random.default_rng(0).choice(counts.shape[0], 20_000, replace=False)]
    vectors = unit(usual @ weight)
    wide = weight @ np.linalg.eigh(vectors.T @ vectors)[1][:, : -SIZE - 1 : -1]
    table = torch.from_numpy((wide / unit(usual @ wide).std(0) ** SPREAD).astype(np.float32))
    return LONGER * quiet(vocabulary, rounded(table * LENGTH / table.norm(dim=1).median()))


def mean_of_courses(told: tuple[Any, ...], solution: tuple[Any, ...], courses: int, tokenizer: Tokenizer) -> Tensor:
    """A table as it ships: the mean of so many courses of training."""
    tables = [trained(*told, solution, seed).numpy() for seed in range(courses)]
    return finished(sum(table / np.linalg.norm(table) for table in tables), told[0], tokenizer.get_vocab())


def make(output: Path, teacher: Path) -> None:
    """The table of the texts whose vectors are there, as it would ship: OUT/bundled."""
    torch.manual_seed(0)
    tokenizer, own = start(teacher)
    told = known_texts(output, tokenizer)
    weight = mean_of_courses(told, solved(*told, own.numpy()), COURSES, tokenizer)
    print(len(told[2]), "texts")
    save_half(SentenceTransformer(modules=[StaticEmbedding(tokenizer, weight.numpy())]), output / "bundled")


def main() -> None:
    """Run one stage."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=("sample", "vectors", "table"))
    parser.add_argument("--text", type=Path, help="folder of the sources")
    parser.add_argument("--data", type=Path, help="folder of evaluation sets")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    teacher = Path(base_of("all-MiniLM-L6-v2"))
    if options.stage == "sample":
        sample(options.text, options.data, options.output / "items")
    elif options.stage == "vectors":
        read_by_teacher(options.output, teacher)
    else:
        make(options.output, teacher)


if __name__ == "__main__":
    main()
