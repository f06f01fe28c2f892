"""Does the warranty keep its promise, and does it take nothing from a training on shuffled pairs?

    python experiments/warranty.py --output docs/results/quality/warranty.json --base bundled --seeds 20 --placebo
    python experiments/warranty.py --output docs/results/quality/warranty.json --base bundled --seeds 5
    python experiments/warranty.py --output docs/results/quality/warranty.json --table

Of each set of `retrieval/` in the data mirror, DOCUMENTS documents are drawn, and HELD of them kept apart for the
exam. `neighbours` is trained on the others as they are, or (--placebo) on the same sentences dealt out to documents at
random. Every share of the training is scored on both halves of the exam, on the guards, and on the judged test queries
that these documents answer; nothing is chosen by those. Transformers read and learn 128 tokens. Rows that are there are
not computed again. `--base minilm=DIR` gives a directory a name. `--seen` draws the exam from documents of the training
instead.

In rows without `most` the allowance was 0.3, and `general` is 12 · (1 − ρ); in later ones 20 · (1 − ρ). Rows with
`ends_only` are of an earlier version, which merged tables without turning them first; its shares in between
are left out.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from search_training import LONGEST, keep, kept, kind_of, load

from selfsent import read_corpus, train
from selfsent.data.corpus import Corpus
from selfsent.evaluation.hold_out import HoldOut
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.warranty import LOSS, Warranty, choose, held_exam, regression_check, warranty
from selfsent.models.merge import WeightInterpolation
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.load_scorer import scorer_of

SETS = ("cranfield", "cisi", "counsel", "scitldr")
DOCUMENTS, HELD = 800, 300
BROKEN = -0.5
"""A gain on judged queries below which the promise is broken, in points of nDCG@10."""


def drawn(folder: Path) -> tuple[list[dict[str, str]], RetrievalTask]:
    """A sample of the documents, and the test queries that they answer."""
    rows = pq.read_table(folder / "corpus.parquet").to_pylist()
    rows = [rows[row] for row in sorted(random.Random(7).sample(range(len(rows)), DOCUMENTS))]
    place = {row["id"]: number for number, row in enumerate(rows)}
    texts = {each["id"]: each["text"] for each in pq.read_table(folder / "queries.parquet").to_pylist()}
    grades: dict[str, dict[int, float]] = {}
    for each in pq.read_table(folder / "qrels" / "test.parquet").to_pylist():
        if each["document"] in place:
            grades.setdefault(each["query"], {})[place[each["document"]]] = each["grade"]
    documents = [f"{row['title']} {row['text']}".strip() or "-" for row in rows]
    return rows, RetrievalTask("judged", [texts[query] for query in grades], documents, list(grades.values()))


def training_text(corpus: Corpus, rows: np.ndarray, seed: int | None) -> Corpus:
    """The rows to train on; with a seed, every sentence is in a document drawn at random."""
    texts, documents = corpus.texts(rows), np.asarray(corpus.documents)[rows]
    if seed is not None:
        documents = np.random.default_rng(seed).permutation(documents)
    table = [{"document": int(d), "text": t} for d, t in sorted(zip(documents, texts, strict=True), key=lambda e: e[0])]
    return read_corpus(table, text_column="text", document_column="document")


def judged_gains(base: Any, trained: Any, found: Warranty, task: RetrievalTask) -> list[dict[str, list[float]]]:
    """Gains over the base of each share on judged queries, with 95 % intervals, as search ranks and by the cosine."""
    plain, between, rows = scorer_of(base, "base"), WeightInterpolation(base, trained), list[dict[str, list[float]]]()
    before = {"words": task.score(Hybrid(plain)), "cosine": task.score(plain)}
    for each in found.candidates:
        merged = scorer_of(between.at(each.alpha), "merged")
        less = {"words": task.score(Hybrid(merged)), "cosine": task.score(merged)}
        gains = {name: score.minus(before[name]) for name, score in less.items()}
        rows.append({n: [round(v, 3) for v in (g.difference, g.low, g.high)] for n, g in gains.items()})
    return rows


def row_of(row: dict[str, Any], base_name: str, data: Path, runs: Path) -> dict[str, Any]:
    """A training, and everything that its warranty says."""
    documents, task = drawn(data / row["set"])
    corpus = read_corpus(documents, text_column=["title", "text"], split_sentences=True)
    held = HoldOut.of(corpus, False, print, count=HELD)
    assert held.test is not None
    text = training_text(corpus, held.train, row["seed"] if row["placebo"] else None)
    place = runs / f"{os.getpid()}"
    given = {} if kind_of(base_name) == "table" else {"max_length": LONGEST}
    start = time.process_time()
    train(
        text,
        "neighbours",
        base_name,
        place,
        hold_out=0,
        overwrite=True,
        quiet=True,
        seed=row["seed"],
        precision="float32",
        **given,
    )
    seconds = time.process_time() - start
    base = load(base_name)
    exam = held_exam(corpus, *((held.test, held.train) if row["seen"] else (held.train, held.test)))
    found = warranty(WeightInterpolation(base, load(place / "model")), exam)
    took = time.process_time() - start - seconds
    general = dict(zip((each.alpha for each in found.candidates), general_losses(base, place / "model"), strict=True))
    judged = judged_gains(base, load(place / "model"), found, task)
    shutil.rmtree(place)
    tried = [
        {**each, "general": round(general[each["alpha"]], 3), "judged": gains}
        for each, gains in zip(found.to_json()["candidates"], judged, strict=True)
    ]
    scores, losses = [each.dev for each in found.candidates], [each.loss for each in found.candidates]
    unguarded, general_guard = choose(scores, losses, np.inf), choose(scores, list(general.values()), LOSS)
    about = {"exam": found.exam, "judged": len(task.queries), "train_seconds": round(seconds, 1)}
    about |= {"warranty_seconds": round(took, 1), "chosen": found.chosen, "unguarded": unguarded, "most": found.most}
    return {**row, **about, "by_general_sentences": general_guard, "tried": tried}


def general_losses(base: Any, trained: Path) -> list[float]:
    """The losses of the shares by the guard that needs no data set."""
    data = os.environ.pop("SELFSENT_DATA", None)
    try:
        _, loss_of = regression_check(scorer_of(base, "base"))
    finally:
        if data is not None:
            os.environ["SELFSENT_DATA"] = data
    between = WeightInterpolation(base, load(trained))
    return [loss_of(scorer_of(between.at(share), "merged")) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]


def chosen(row: dict[str, Any]) -> int:
    """The index of the share that is kept with the allowance of today; rows keep that of their time."""
    fit = [n for n, each in enumerate(row["tried"]) if each["loss"] <= LOSS and each["dev"]["low"] >= 0]
    return max(fit, key=lambda n: row["tried"][n]["dev"]["score"])


def table(rows: list[dict[str, Any]]) -> str:
    """For each base and set: how often nothing is kept, and the gains on judged queries of what is kept."""
    lines = [
        "| base | set | pairs | runs | nothing kept | nothing kept, no guard | gain, as it is | warranty | no guard |"
    ]
    lines.append("|---|---|---|--:|--:|--:|--:|--:|--:|")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        kind = "shuffled" if row["placebo"] else "exam from training" if row["seen"] else "real"
        kind += ", a = 1 or 0" * row["ends_only"]
        groups.setdefault((row["base"], row["set"], kind), []).append(row)
    for (base, name, kind), found in sorted(groups.items()):
        picks = [
            [len(row["tried"]) - 1 for row in found],
            [chosen(row) for row in found],
            [row["unguarded"] for row in found],
        ]
        cells = []
        for each in picks:
            gains = [row["tried"][pick]["judged"]["words"][0] for row, pick in zip(found, each, strict=True)]
            cells.append(f"{np.mean(gains):+.2f} ({sum(g < BROKEN for g in gains)} below {BROKEN})")
        none = [sum(not pick for pick in each) for each in picks[1:]]
        lines.append(f"| {base} | {name} | {kind} | {len(found)} | {none[0]} | {none[1]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Fill the output, or print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SELFSENT_DATA", ".")) / "retrieval")
    parser.add_argument("--runs", type=Path, default=Path("runs/warranty"))
    parser.add_argument("--base", default="bundled", help="a base, or NAME=DIRECTORY")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--placebo", action="store_true", help="deal the sentences out to documents at random")
    parser.add_argument("--seen", action="store_true", help="draw the exam from documents of the training")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.table:
        print(table(kept(options.output)))
        return
    name, _, directory = options.base.partition("=")
    for seed, each in product(range(options.seeds), options.sets):
        row = {"base": name, "set": each, "placebo": options.placebo, "seen": options.seen, "seed": seed}
        row["ends_only"] = False
        if any(row.items() <= other.items() for other in kept(options.output)):
            continue
        done = row_of(row, directory or name, options.data, options.runs)
        keep(options.output, done)
        shown = {k: done[k] for k in ("set", "seed", "chosen", "unguarded", "train_seconds", "warranty_seconds")}
        print(shown, [t["judged"]["words"][0] for t in done["tried"]], [t["loss"] for t in done["tried"]], flush=True)


if __name__ == "__main__":
    main()
