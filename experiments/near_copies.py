"""Which pairs of posts are near-copies of each other? By cosine, by words, both, without separators; beside MinHash.

    python experiments/near_copies.py --text text --model minilm=DIR --output docs/results/quality/near_copies.json
    python experiments/near_copies.py --output docs/results/quality/near_copies.json --table

200 copies are planted among 2,000 posts and edited as people do: some words changed or dropped, a sentence more or
less, quoted, another signature, other case and spaces. The posts are those of the task newsgroups, in whose texts
separator lines stay as they were, filled up with documents of blogs. Halves of both make the development draw and the
test draw. Weights of words, and of the tokens without a letter or digit, are chosen on development data.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from bundled import before, quiet
from domain import domain_rows
from grid import finished, keep
from rensa import RMinHash
from table_parts import score

import selfsent
from selfsent.data.corpus import Corpus
from selfsent.data.corpus.duplicates import BANDS, IN_BAND, _features
from selfsent.data.corpus.sentences import split_sentences
from selfsent.evaluation.hybrid import Hybrid
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.lexical import Analyzer, WordCounts
from selfsent.lexical.weight import PAIR_WEIGHT
from selfsent.models.loading import load_encoder
from selfsent.report.scoring import scored as tabled
from selfsent.search import encode_corpus, most_similar_pairs
from selfsent.search.nearest import corpus_language
from selfsent.search.pairs import by_words, proposed

POSTS, PLANTED = 2000, 200
LONGEST = 150
"""Words of a post, as in the task newsgroups."""
SHORTEST = 12
"""Words of a post that is copied."""
SEEDS = {"dev": 0, "test": 1}
WEIGHTS = (0.25, 0.5, 1.0, 2.0)
FACTORS = {"1": 1.0, "1/2": 0.5, "1/4": 0.25, "1/16": 1 / 16, "1/64": 1 / 64, "0": 0.0, "as stop words": None}
Found = list[tuple[float, int, int]]
"""Scores and rows of pairs, best first."""
Edit = Callable[[str, np.random.Generator, Sequence[str]], str]


def _some(draw: np.random.Generator, words: Sequence[str]) -> list[int]:
    """Places of a few words: 3 to 15 in a hundred."""
    count = max(1, round(len(words) * draw.uniform(0.03, 0.15)))
    return sorted(draw.choice(len(words), count, replace=False).tolist())


def other_words(text: str, draw: np.random.Generator, posts: Sequence[str]) -> str:
    """A few words changed."""
    words = text.split()
    for place in _some(draw, words):
        words[place] = str(draw.choice(str(draw.choice(posts)).split() or ["it"]))
    return " ".join(words)


def fewer_words(text: str, draw: np.random.Generator, posts: Sequence[str]) -> str:
    """A few words dropped."""
    words = text.split()
    gone = set(_some(draw, words))
    return " ".join(word for place, word in enumerate(words) if place not in gone)


def one_more(text: str, draw: np.random.Generator, posts: Sequence[str]) -> str:
    """A sentence added, in front or behind."""
    sentence = str(draw.choice(split_sentences(str(draw.choice(posts))) or ["Thanks in advance."]))
    return f"{sentence} {text}" if draw.random() < 0.5 else f"{text} {sentence}"


def one_less(text: str, draw: np.random.Generator, posts: Sequence[str]) -> str:
    """A sentence dropped, where there are three."""
    sentences = split_sentences(text)
    if len(sentences) < 3:
        return text
    gone = int(draw.integers(len(sentences)))
    return " ".join(sentences[:gone] + sentences[gone + 1 :])


def quoted(text: str, draw: np.random.Generator, posts: Sequence[str]) -> str:
    """Quoted, with a line that says whom."""
    name = f"user{draw.integers(1000)}"
    words = text.split()
    lines = [" ".join(words[start : start + 12]) for start in range(0, len(words), 12)]
    return f"In article <{draw.integers(10**6)}@host.edu> {name}@host.edu writes:\n" + "\n".join(
        f"> {x}" for x in lines
    )


def signed(text: str, draw: np.random.Generator, posts: Sequence[str]) -> str:
    """A signature between separators."""
    rule = str(draw.choice(["=", "-", "_", "*", "~", "+-"])) * int(draw.integers(30, 80))
    motto = " ".join(str(draw.choice(posts)).split()[: int(draw.integers(4, 12))])
    return f"{text}\n{rule}\nUser {draw.integers(1000)}, Dept. of Things, host.edu   {motto}\n{rule}"


def other_case(text: str, draw: np.random.Generator, posts: Sequence[str]) -> str:
    """All in capitals, or none."""
    return text.upper() if draw.random() < 0.5 else text.lower()


def other_spaces(text: str, draw: np.random.Generator, posts: Sequence[str]) -> str:
    """No space behind a comma, two marks for one, a space before a full stop."""
    return text.replace(", ", ",").replace("! ", "!! ").replace(". ", " . ")


EDITS: tuple[Edit, ...] = (other_words, fewer_words, one_more, one_less, quoted, signed, other_case, other_spaces)


@cache
def drawn(part: str, text: Path) -> tuple[list[str], list[tuple[int, int]]]:
    """The posts of a draw in random order, with the copies among them, and the places of each copy and its original."""
    seed = SEEDS[part]
    posts = list(dict.fromkeys(" ".join(post.split()) for post in domain_rows(f"newsgroups-{part}", None)["text"]))
    blogs = selfsent.read_corpus(text / "blogs.txt.zst")
    documents = np.random.default_rng(9).permutation(int(blogs.documents.max()) + 1)[seed::2][: POSTS - len(posts)]
    posts += [" ".join(" ".join(blogs.texts(blogs.documents == each)).split()[:LONGEST]) for each in documents]
    draw = np.random.default_rng(seed)
    long = [place for place, post in enumerate(posts) if len(post.split()) >= SHORTEST]
    copies = []
    for place in draw.choice(long, PLANTED, replace=False).tolist():
        copy = posts[place]
        for number in draw.choice(len(EDITS), int(draw.integers(1, 4)), replace=False):
            copy = EDITS[number](copy, draw, posts)
        copies.append((place, copy if copy != posts[place] else fewer_words(copy, draw, posts)))
    order = draw.permutation(len(posts) + PLANTED)
    at = np.argsort(order)
    texts = [*posts, *(copy for _, copy in copies)]
    planted = [(int(at[place]), int(at[len(posts) + number])) for number, (place, _) in enumerate(copies)]
    return [texts[place] for place in order], planted


@cache
def corpus_of(part: str, text: Path, clean: str | None) -> tuple[Corpus, set[tuple[int, int]], int]:
    """The posts as the command reads them, the rows of the planted pairs, and how many of these became one row."""
    texts, planted = drawn(part, text)
    corpus = selfsent.read_corpus({"text": texts}, text_column="text", clean=clean, carry=())
    row = corpus.input_rows.corpus_rows
    pairs = {(int(min(row[a], row[b])), int(max(row[a], row[b]))) for a, b in planted}
    return corpus, {pair for pair in pairs if pair[0] != pair[1]}, sum(row[a] == row[b] for a, b in planted)


@cache
def vectors_of(place: str | Path, corpus: Corpus) -> np.ndarray:
    """(n, d) of length 1."""
    return encode_corpus(load_encoder(place), corpus)


def by_vectors(vectors: np.ndarray, corpus: Corpus, weight: float, top: int = 4 * PLANTED) -> Found:
    """Scores and rows of pairs, as `selfsent pairs` orders them."""
    pairs = most_similar_pairs(vectors, *proposed(top, -1.0, weight))
    pairs = by_words(pairs, corpus, top, word_weight=weight) if weight else pairs
    return [(pair.score(weight), pair.first, pair.second) for pair in pairs]


def by_words_alone(corpus: Corpus) -> Found:
    """The same, by TF-IDF alone, of all pairs."""
    counts = WordCounts(analyzer=Analyzer(corpus_language(corpus)))
    counts.add(corpus.texts())
    held = counts.weighed(corpus.texts())
    shared = np.triu((held @ held.T).toarray(), 1)
    best = np.argsort(-shared, axis=None, kind="stable")[: 4 * PLANTED]
    rows = zip(*np.unravel_index(best, shared.shape), strict=True)
    return [(float(shared[one, other]), int(one), int(other)) for one, other in rows]


def by_minhash(corpus: Corpus, banded: bool) -> Found:
    """Pairs by their share of equal hashes: of all, or of those with an equal band, as --drop-near-duplicates does."""
    features = list(map(_features, corpus.texts()))
    rows = RMinHash.digest_matrix_from_token_sets(features, BANDS * IN_BAND, 0).to_rows()
    hashes = np.array(rows, dtype=np.uint64)
    found = []
    for row in range(len(hashes) - 1):
        equal = hashes[row + 1 :] == hashes[row]
        likely = equal.reshape(len(equal), BANDS, IN_BAND).all(2).any(1) if banded else np.ones(len(equal), bool)
        found += [(float(equal[place].mean()), row, row + 1 + int(place)) for place in np.flatnonzero(likely)]
    return sorted(found, key=lambda each: (-each[0], *each[1:]))[: 4 * PLANTED]


def measured(found: Found, planted: set[tuple[int, int]], equal: int, threshold: float | None = None) -> dict[str, Any]:
    """Shares of the pairs found that were planted, and of the planted ones that were found.

    Args:
        found: scores and rows, best first.
        planted: rows.
        equal: planted ones that cleaning made the same, which stand before all others.
        threshold: the score from which on a pair counts; by default the one that is best here.
    """
    right = np.array([True] * equal + [pair[1:] in planted for pair in found])
    score = np.array([1.0] * equal + [pair[0] for pair in found])
    hits, count = np.cumsum(right), np.arange(1, len(right) + 1)
    f1 = 2 * hits / (count + PLANTED)
    last = int(np.argmax(f1)) + 1 if threshold is None else int((score >= threshold).sum())
    wrong = np.flatnonzero(~right)
    return {
        "precision@100": float(hits[:100][-1] / min(100, len(right))),
        "precision@200": float(hits[:PLANTED][-1] / min(PLANTED, len(right))),
        "recall@200": float(hits[:PLANTED][-1] / PLANTED),
        "recall@400": float(hits[: 2 * PLANTED][-1] / PLANTED),
        "first_wrong": int(wrong[0]) + 1 if len(wrong) else None,
        "threshold": float(score[last - 1]) if threshold is None else threshold,
        "f1": float(f1[last - 1]) if last else 0.0,
    }


def judged(name: str) -> RetrievalTask:
    """Queries of train and dev of a set with judged answers."""
    import pyarrow.parquet as pq

    folder = Path(os.environ["SELFSENT_DATA"]) / "retrieval" / name
    corpus, queries = (pq.read_table(folder / f"{kind}.parquet").to_pydict() for kind in ("corpus", "queries"))
    texts = [f"{title or ''} {text}".strip() for title, text in zip(corpus["title"], corpus["text"], strict=True)]
    place = {each: number for number, each in enumerate(corpus["id"])}
    grades: dict[str, dict[int, float]] = {each: {} for each in queries["id"]}
    for split in ("train", "dev"):
        for row in pq.read_table(folder / "qrels" / f"{split}.parquet").to_pylist():
            grades[row["query"]][place[row["document"]]] = row["grade"]
    return RetrievalTask(name, queries["text"], texts, list(grades.values()), corpus["id"])


def by_factor(name: str, factor: float | None, text: Path, runs: Path) -> dict[str, float]:
    """Development scores of a table that ships, with shorter vectors of tokens without letters."""
    model = load_encoder(before(name, runs))
    model.table.weight.data = quiet(model.tokenizer, model.table.weight.data, factor)
    row = score(model, None)
    for task in map(judged, ("counsel", "scitldr")):
        row[task.name] = task.score(tabled(model, name)).score
        row[f"{task.name}+words"] = task.score(Hybrid(tabled(model, name), model.lexical_weight)).score
    corpus, planted, equal = corpus_of("dev", text, None)
    for weight in (0.0, PAIR_WEIGHT):
        found = by_vectors(encode_corpus(model, corpus), corpus, weight)
        row[f"copies, {weight:g}"] = 100 * measured(found, planted, equal)["recall@200"]
    return {task: round(value, 2) for task, value in row.items()}


def ways(options: argparse.Namespace) -> dict[str, Callable[[Corpus], Found]]:
    """How pairs are found, by name."""
    given = dict(entry.split("=", 1) for entry in options.model)
    named = {"bundled before": before("bundled", options.runs), "bundled": "bundled", **given}
    found: dict[str, Callable[[Corpus], Found]] = {
        f"{name}, {weight:g}": (
            lambda corpus, place=place, weight=weight: by_vectors(vectors_of(place, corpus), corpus, weight)
        )
        for name, place in named.items()
        for weight in (0.0, *WEIGHTS)
    }
    found |= {"words alone": by_words_alone, "MinHash, all pairs": partial(by_minhash, banded=False)}
    return {**found, "MinHash, equal bands": partial(by_minhash, banded=True)}


def main() -> None:
    """Do what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, help="folder with blogs.txt.zst")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=DIR", help="one more encoder")
    parser.add_argument("--runs", type=Path, default=Path("runs/near_copies"), help="for the tables as they were")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only-dev", action="store_true", help="nothing of the test draw yet")
    parser.add_argument("--table", action="store_true", help="print what the output holds, and do nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: dict[str, Callable[[], dict[str, Any]]] = {}
    for name in ("bundled", "bundled-raw-static"):
        for shown, factor in FACTORS.items():
            rows[f"factor | {name} | {shown}"] = partial(by_factor, name, factor, options.text, options.runs)
    for part in ("dev",) if options.only_dev else SEEDS:
        for clean in ("", "separators"):
            for name, way in () if options.table else ways(options).items():
                rows[f"{part} | {clean or 'as they are'} | {name}"] = partial(by_way, way, part, clean, name, options)
    for key, row in () if options.table else rows.items():
        if key not in finished(options.output):
            keep(options.output, "near_copies", key, row())
            print(time.strftime("%H:%M:%S"), key, finished(options.output)[key], flush=True)
    print_tables(finished(options.output))


def by_way(
    way: Callable[[Corpus], Found], part: str, clean: str, name: str, options: argparse.Namespace
) -> dict[str, Any]:
    """What one way finds; on test a pair counts from the score on that was best on development data."""
    corpus, planted, equal = corpus_of(part, options.text, clean or None)
    chosen = finished(options.output).get(f"dev | {clean or 'as they are'} | {name}", {})
    return measured(way(corpus), planted, equal, chosen.get("threshold") if part == "test" else None)


def print_tables(rows: dict[str, dict[str, Any]]) -> None:
    """What the output holds, as Markdown."""
    for kind in ("factor", *SEEDS):
        some = {key: row for key, row in rows.items() if key.startswith(f"{kind} | ")}
        names = list(next(iter(some.values()), {}))
        print(f"\n| {kind} | | | {' | '.join(names)} |\n|{'---|' * 3}{'--:|' * len(names)}")
        for key, row in some.items():
            print(f"| {key} | {' | '.join(f'{x:.4g}' if isinstance(x, float) else str(x) for x in row.values())} |")


if __name__ == "__main__":
    main()
