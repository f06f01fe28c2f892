"""What an adapter learns for an encoder that is not trained, held against full training of the same encoder.

    python experiments/adapt.py --output docs/results/quality/adapt.json --base bundled
    python experiments/adapt.py --output docs/results/quality/adapt.json --base minilm=DIR --untrained \
        --vectors CACHE --queries 400 --placebos 2
    python experiments/adapt.py --output docs/results/quality/adapt.json --table

Of each set of `retrieval/` in the data mirror, an exam is drawn from all documents (of scitldr a sample), as `selfsent
exam` draws it. The adapter is learned on its dev half, once with words at a chosen weight, and once for the cosine
alone (--word-weight 0), and also from shuffled answers, for several seeds. The gains are on the judged test queries; so
is that of `neighbours` with its defaults on the same documents. On counsel and scitldr it is also learned from real
pairs, the train queries. With --vectors transformers read 95 words of a text,
once. Nothing is chosen by these tests: the candidates were chosen on train and dev of counsel.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from search_training import keep, kept, load

from exam import OWN, Store
from selfsent import read_corpus, train
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.adapt import Adapted, Adapter, adapt
from selfsent.exam.draw import QUERIES, draw_exam, texts_of
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.load_scorer import load_scorer, scorer_of
from selfsent.scorers.scorer import Scorer

SETS, LARGE, SAMPLE, PLACEBOS = ("cranfield", "cisi", "counsel", "scitldr"), 2500, 1200, 20


def read(folder: Path, split: str) -> tuple[list[dict[str, str]], RetrievalTask | None]:
    """The documents, and the judged queries of a split that they answer; None without such a split."""
    rows = pq.read_table(folder / "corpus.parquet").to_pylist()
    if len(rows) > LARGE:
        rows = [rows[row] for row in sorted(random.Random(7).sample(range(len(rows)), SAMPLE))]
    if not (folder / "qrels" / f"{split}.parquet").is_file():
        return rows, None
    place = {row["id"]: number for number, row in enumerate(rows)}
    texts = {each["id"]: each["text"] for each in pq.read_table(folder / "queries.parquet").to_pylist()}
    grades: dict[str, dict[int, float]] = {}
    for each in pq.read_table(folder / "qrels" / f"{split}.parquet").to_pylist():
        if each["document"] in place:
            grades.setdefault(each["query"], {})[place[each["document"]]] = each["grade"]
    documents = [f"{row['title']} {row['text']}".strip() or "-" for row in rows]
    return rows, RetrievalTask(split, [texts[query] for query in grades], documents, list(grades.values()))


def gain(encoder: Scorer, adapter: Adapter, task: RetrievalTask, weight: float, before: float) -> list[float]:
    """The gain of an adapter on judged queries over a weight of words before, with its 95 % interval."""
    changed = Adapted(encoder, adapter)
    less = task.score(Hybrid(changed, weight)).minus(task.score(Hybrid(encoder, before)))
    return [round(value, 3) for value in (less.difference, less.low, less.high)]


def learned(
    encoder: Scorer, dev: RetrievalTask, test: RetrievalTask, judged: RetrievalTask, placebos: int
) -> dict[str, Any]:
    """Both adapters from one half of some queries, and how often shuffled answers change anything."""
    own, found = encoder.lexical_weight, dict[str, Any]()
    for name, weight in (("words", None), ("cosine", 0.0)):
        start = time.process_time()
        made = adapt(encoder, dev, test, weight)
        seconds, before = time.process_time() - start, own if weight is None else 0.0
        halves = [[round(value, 3) for value in (g.difference, g.low, g.high)] for g in made.gains]
        found[name] = {"adapter": made.adapter.name, "weight": made.adapter.words, "halves": halves}
        found[name] |= {"judged": gain(encoder, made.adapter, judged, made.adapter.words, before)}
        found[name] |= {"seconds": round(seconds, 1)}
    changed = list[str]()
    for seed in range(placebos):
        order = np.random.default_rng(seed).permutation(len(dev.grades))
        shuffled = RetrievalTask(dev.name, dev.queries, dev.documents, [dev.grades[row] for row in order])
        changed.append(adapt(encoder, shuffled, test, 0.0).adapter.name)
    return {**found, "queries": len(dev.queries), "placebo": changed}


def of_training(base: str, rows: list[dict[str, str]], judged: RetrievalTask, runs: Path) -> dict[str, Any]:
    """The gains of full training on judged queries, and its seconds."""
    corpus, place = read_corpus(rows, text_column=["title", "text"], split_sentences=True), runs / str(os.getpid())
    start = time.process_time()
    train(corpus, "neighbours", base, place, hold_out=0, overwrite=True, quiet=True, precision="float32")
    seconds, found = time.process_time() - start, dict[str, Any]()
    before, after = load_scorer(base), scorer_of(load(place / "model"), "trained")
    for name, weight in (("words", before.lexical_weight), ("cosine", 0.0)):
        less = judged.score(Hybrid(after, weight)).minus(judged.score(Hybrid(before, weight)))
        found[name] = [round(value, 3) for value in (less.difference, less.low, less.high)]
    shutil.rmtree(place)
    return {**found, "seconds": round(seconds, 1)}


def row_of(name: str, base: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All figures of a base and a set."""
    rows, judged = read(folder, "test")
    assert judged is not None
    if options.vectors:
        encoder = Scorer(Store(name, base, options.vectors), name)
        encoder.lexical_weight = OWN[name]
    else:
        encoder = load_scorer(base, fast=True)
    table = {column: [row[column] for row in rows] for column in ("title", "text")}
    exam = draw_exam(texts_of(read_corpus(table, carry="title"), "title"), options.queries)
    row: dict[str, Any] = {"base": name, "set": folder.name, "exam": exam.summary, "judged": len(judged.queries)}
    row["base_scores"] = [round(judged.score(each).score, 2) for each in (encoder, Hybrid(encoder))]
    row["from_exam"] = learned(encoder, *exam.halves, judged, options.placebos)
    _, pairs = read(folder, "train")
    if pairs is not None:
        halves = [
            RetrievalTask("pairs", pairs.queries[half::2], pairs.documents, pairs.grades[half::2]) for half in (0, 1)
        ]
        row["from_pairs"] = learned(encoder, halves[0], halves[1], judged, 0)
    if not options.untrained:
        row["training"] = of_training(base, rows, judged, options.runs)
    return row


def show(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown: gains on judged queries."""
    lines = ["| base, set | learned from | with words | for the cosine alone | seconds | shuffled: changed |"]
    lines.append("|---|---|--:|--:|--:|--:|")
    for row in rows:
        for source in ("from_exam", "from_pairs", "training"):
            if source not in row:
                continue
            found, cells = row[source], list[str]()
            for name in ("words", "cosine"):
                each = found[name]
                low = each if isinstance(each, list) else each["judged"]
                what = "" if isinstance(each, list) else f" ({each['adapter']}, {each['weight']:g})"
                cells.append(f"{low[0]:+.2f} [{low[1]:+.2f}, {low[2]:+.2f}]{what}")
            took = found.get("seconds", found["words"]["seconds"] if isinstance(found["words"], dict) else 0)
            none = found.get("placebo")
            changed = f"{sum(each != 'identity' for each in none)} of {len(none)}" if none else ""
            what = f"{row['base']}, {row['set']} | {source.removeprefix('from_')}"
            lines.append(f"| {what} | {' | '.join(cells)} | {took} | {changed} |")
    return "\n".join(lines)


def main() -> None:
    """Fill the output, or print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SELFSENT_DATA", ".")) / "retrieval")
    parser.add_argument("--runs", type=Path, default=Path("runs/adapt"))
    parser.add_argument("--base", default="bundled", help="a base, or NAME=DIRECTORY")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--vectors", type=Path, help="folder in which the vectors of texts are kept")
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--placebos", type=int, default=PLACEBOS)
    parser.add_argument("--untrained", action="store_true", help="without full training")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.table:
        print(show(kept(options.output)))
        return
    name, _, directory = options.base.partition("=")
    for each in options.sets:
        if not any((row["base"], row["set"]) == (name, each) for row in kept(options.output)):
            row = row_of(name, directory or name, options.data / each, options)
            keep(options.output, row)
            print(show([row]), flush=True)


if __name__ == "__main__":
    main()
