"""A map from a new encoder's queries to vectors of an old one: nDCG@10 beside both encoders in full, on judged queries.

    python experiments/swap.py --data DIR --cache DIR --model minilm=DIR --model mpnet=DIR --pair minilm,mpnet

Of each set DOCUMENTS documents are drawn, and up to QUERIES test queries that one of them answers. Encoders read the
first TOKENS tokens. The map is learned from these documents, chosen by half of the queries, and scored on the others.
Vectors are kept in the cache; rows that are done are not done again.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from selfsent.evaluation.tasks.beir import read_task
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.swap import swap
from selfsent.files import read_json, write_json
from selfsent.models.opening import open_encoder
from selfsent.models.precision import quicken
from selfsent.models.table import Table
from selfsent.scorers.load_scorer import scorer_of
from selfsent.scorers.scorer import Scorer

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "quality" / "swap.json"
SETS = ("cranfield", "counsel", "scitldr", "cisi")
DOCUMENTS, QUERIES, TOKENS = 900, 200, 128
SIDES = ("queries", "documents")


def drawn(folder: Path) -> tuple[RetrievalTask, RetrievalTask]:
    """Two halves of test queries, over the documents that are drawn."""
    task, rng = read_task(folder), np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(task.documents))[:DOCUMENTS]).tolist()
    place = {row: number for number, row in enumerate(rows)}
    grades = [{place[row]: grade for row, grade in each.items() if row in place} for each in task.grades]
    asked = [number for number, each in enumerate(grades) if any(grade > 0 for grade in each.values())]
    asked = rng.permutation(asked)[:QUERIES].tolist()
    documents = [task.documents[row] for row in rows]

    def half(numbers: Sequence[int]) -> RetrievalTask:
        return RetrievalTask(folder.name, [task.queries[n] for n in numbers], documents, [grades[n] for n in numbers])

    return half(asked[::2]), half(asked[1::2])


class Cached(Scorer):
    """An encoder with kept vectors of the queries and documents of one set, cut after TOKENS tokens."""

    def __init__(self, name: str, path: str, file: Path, task: Mapping[str, Sequence[str]]) -> None:
        model = open_encoder(path)
        if not file.exists():
            short = model
            if not isinstance(short, Table):
                short.tokenizer.model_max_length = min(TOKENS, short.tokenizer.model_max_length)
                short = quicken(short, fast=True, int8=False)
            asked, held = scorer_of(short, name).query_document_vectors(task["queries"], task["documents"], search=True)
            file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(file, queries=asked, documents=held)
        with np.load(file) as kept:
            found = [dict(zip(task[side], kept[side], strict=True)) for side in SIDES]
        super().__init__(partial(_taken, found[1]), name, searching=[partial(_taken, each) for each in found])
        self.lexical_weight, self.known = model.lexical_weight, found

    def query_document_vectors(
        self, queries: Sequence[str], texts: Sequence[str], search: bool = False
    ) -> tuple[Any, Any]:
        """Kept vectors; documents may be asked, too, as these encoders have no prompts."""
        known = self.known[1] | self.known[0]
        return _taken(known, queries), _taken(known, texts)


def _taken(known: dict[str, Any], texts: Sequence[str]) -> Any:
    return np.stack([known[text] for text in texts]) if len(texts) else np.zeros((0, 1), np.float32)


def main() -> None:
    """Encode and score what is missing, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the sets, in BEIR's layout")
    parser.add_argument("--cache", type=Path, required=True, help="directory for vectors")
    parser.add_argument("--model", action="append", default=[], help="NAME=DIR")
    parser.add_argument("--pair", action="append", default=[], help="OLD,NEW")
    parser.add_argument("--set", action="append", choices=SETS, help="a set (default: all)")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    places, rows = dict(each.split("=", 1) for each in options.model), read_json(options.output)
    for name in options.set or SETS:
        dev, test = drawn(options.data / name)
        sides = {"queries": [*dev.queries, *test.queries], "documents": list(dev.documents)}
        for pair in options.pair:
            for weight in (0.0, None):
                key = f"{name} {pair} {'cosine' if weight == 0 else 'words'}"
                if key not in rows:
                    old, new = (
                        Cached(each, places[each], options.cache / f"{each}-{name}.npz", sides)
                        for each in pair.split(",")
                    )
                    rows[key] = swap(old, new, dev.documents, dev, test, weight).to_json()
                    write_json(options.output, rows)
                told = rows[key]
                scores = "  ".join(f"{each} {told[each]['score']:.1f}" for each in ("old", "mapped", "new"))
                print(f"{key:40}  {scores}  kept {told['kept']}  {told['map']}", flush=True)


if __name__ == "__main__":
    main()
