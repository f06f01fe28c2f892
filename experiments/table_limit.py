"""What a table of token vectors could reach on judged sets: rows fitted to a teacher's vectors of these very texts.

    python experiments/table_limit.py --data DATA --teacher all-MiniLM-L6-v2 --cache CACHE \
        --output docs/results/quality/table_limit.json

nDCG@10 by the cosine and with words, on test queries of four sets. `bundled` is turned into the teacher's space, and
its rows are solved for by least squares as in `closed_form.py`: on the documents alone, and on test queries as well. No
such table may ship. Half of the queries are fitted and the other half scored, too. The teacher reads 160 tokens, in
bfloat16; its vectors are kept in CACHE.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse
import torch
from sentence_transformers import SentenceTransformer

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from closed_form import least_squares
from sides import base_of

from selfsent.data.vector_files import unit
from selfsent.evaluation.tasks.beir import read_task
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.files import read_json, write_json
from selfsent.models.bases import resolve
from selfsent.models.table import Table
from selfsent.scorers.lexical import HybridRows, LexicalScorer
from selfsent.scorers.scorer import Scorer

SETS = ("cranfield", "cisi", "counsel", "scitldr")
LONGEST, WEIGHT = 160, 1.5
"""Tokens that the teacher reads, and the weight of words."""
STIFF = 0.1
"""What a token's distance from its start weighs, beside the mean text."""
Vectors = dict[str, np.ndarray]


class Texts:
    """All texts of the sets: the teacher's vectors, and the bags of tokens over the root of their length."""

    def __init__(self, tasks: dict[str, RetrievalTask], table: Table, cache: Path, teacher: Path) -> None:
        self.queries = [text for task in tasks.values() for text in task.queries]
        self.documents = [text for task in tasks.values() for text in task.documents]
        self.teacher: Vectors = {}
        for name, task in tasks.items():
            self.teacher |= read_by_teacher(cache / f"{name}.npz", teacher, [*task.queries, *task.documents])
        self.place = {text: row for row, text in enumerate(dict.fromkeys([*self.documents, *self.queries]))}
        read = [table.tokenizer.encode(text, add_special_tokens=False).ids for text in self.place]
        lengths = np.array([len(ids) for ids in read])
        places = (np.repeat(np.arange(len(read)), lengths), np.concatenate(read).astype(int))
        weights = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths).astype(np.float32)
        whole = sparse.csr_matrix((weights, places), (len(read), table.vocabulary_size))
        used = np.flatnonzero(np.diff(whole.tocsc().indptr))
        self.bags, self.rows = whole[:, used], np.asarray(table.rows[used], np.float32)
        self.goals = np.stack([self.teacher[text] for text in self.place])
        self.held = [self.place[text] for text in dict.fromkeys(self.documents)]
        self.goals -= self.goals[self.held].mean(0) / 2

    def start(self) -> np.ndarray:
        """The table in the teacher's space, (tokens, d): by least squares on documents, in direction and length."""
        bags, goals = self.bags[self.held], self.goals[self.held]
        rows = self.rows @ np.linalg.lstsq(unit(bags @ self.rows), goals, rcond=None)[0]
        reached = bags @ rows
        return np.asarray(rows * ((reached * goals).sum() / (reached**2).sum()), np.float32)

    def fitted(self, texts: Sequence[str], stiff: float) -> np.ndarray:
        """The table after least squares on the teacher's vectors of some texts, (tokens, d)."""
        some = sorted({self.place[text] for text in texts})
        bags = self.bags[some]
        weight = stiff * bags.multiply(bags).sum() / len(some)
        return least_squares(bags, self.goals[some], self.start(), weight)

    def of(self, rows: np.ndarray) -> Vectors:
        """The vectors of all texts by a table."""
        return dict(zip(self.place, np.asarray(self.bags @ rows), strict=True))


def read_by_teacher(file: Path, teacher: Path, texts: Sequence[str]) -> Vectors:
    """The teacher's vectors of texts, of length 1."""
    if not file.is_file():
        torch.set_num_threads(1)
        model = SentenceTransformer(str(teacher), device="cpu", model_kwargs={"dtype": torch.bfloat16})
        model.max_seq_length = LONGEST
        vectors = model.encode(list(texts), batch_size=64, convert_to_tensor=True).float().numpy()
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, vectors=vectors)
    with np.load(file) as kept:
        return dict(zip(texts, unit(kept["vectors"].astype(np.float32)), strict=True))


class Judged(Scorer):
    """A set with BM25's weights and score, and vectors that are scored on it: by the cosine, or with words."""

    def __init__(self, task: RetrievalTask) -> None:
        super().__init__(None, "bundled")
        self.task, self.bm25 = task, LexicalScorer("bm25")
        self.lexical: tuple[Any, ...] = ()
        self.words = task.score(self.bm25)
        self.weight, self.asked, self.held = 0.0, Vectors(), Vectors()

    def query_document_vectors(
        self, queries: Sequence[str], texts: Sequence[str], search: bool = False
    ) -> tuple[Any, Any]:
        """Rows whose inner products are the fused scores."""
        self.lexical = self.lexical or self.bm25.query_document_vectors(queries, texts)  # the same texts each time
        sides = (self.asked, queries), (self.held, texts)
        found = (unit(np.stack([vectors[text] for text in those])) for vectors, those in sides)
        asked, held = (HybridRows(*each, self.weight) for each in zip(found, self.lexical, strict=True))
        return asked, held

    def scores(self, asked: Vectors, held: Vectors) -> dict[str, Any]:
        """nDCG@10 by the cosine and with words, and how far the latter is ahead of BM25, with its interval."""
        self.asked, self.held, self.weight = asked, held, 0.0
        cosine = self.task.score(self).score
        self.weight = WEIGHT
        both = self.task.score(self)
        ahead = both.minus(self.words)
        return {"cosine": cosine, "words": both.score, "over BM25": [ahead.difference, ahead.low, ahead.high]}


def half_of(task: RetrievalTask) -> RetrievalTask:
    """The task of every second query."""
    return RetrievalTask(task.name, task.queries[1::2], task.documents, task.grades[1::2])


def scored(sets: dict[str, Judged], asked: Vectors, held: Vectors) -> dict[str, Any]:
    """The scores of each set, and the mean by the cosine."""
    found: dict[str, Any] = {name: each.scores(asked, held) for name, each in sets.items()}
    return {**found, "mean": float(np.mean([each["cosine"] for each in found.values()]))}


def main() -> None:
    """Score all rows that are not kept yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--teacher", default="all-MiniLM-L6-v2")
    for name in ("data", "cache", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    tasks = {name: read_task(options.data / "retrieval" / name) for name in SETS}
    table = Table.read(Path(resolve("bundled")))
    assert table is not None
    texts = Texts(tasks, table, options.cache, Path(base_of(options.teacher)))
    half = [query for task in tasks.values() for query in task.queries[::2]]
    known = {"teacher": texts.teacher, "centred": dict(zip(texts.place, texts.goals, strict=True))}
    fits = {"documents": texts.documents, "half": [*texts.documents, *half]}
    fits["all"] = [*texts.documents, *texts.queries]

    def vectors(name: str) -> Vectors:
        if name not in known:
            rows = {"bundled": lambda: texts.rows, "turned": texts.start}
            known[name] = texts.of(rows[name]() if name in rows else texts.fitted(fits[name], STIFF))
        return known[name]

    wanted = (
        ("teacher", "teacher", "teacher", False),
        ("bundled", "bundled", "bundled", False),
        ("queries by bundled, documents by the teacher", "turned", "centred", False),
        ("fitted to documents", "documents", "documents", False),
        ("queries by bundled, documents fitted", "turned", "documents", False),
        ("fitted to documents and queries", "all", "all", False),
        ("half of the queries: teacher", "teacher", "teacher", True),
        ("half of the queries: bundled", "bundled", "bundled", True),
        ("half of the queries: fitted to documents and the other half", "half", "half", True),
    )
    sets = {False: {name: Judged(task) for name, task in tasks.items()}}
    sets[True] = {name: Judged(half_of(task)) for name, task in tasks.items()}
    kept = read_json(options.output)
    for name, asked, held, halved in wanted:
        if name not in kept:
            kept[name] = scored(sets[halved], vectors(asked), vectors(held))
            write_json(options.output, kept)
            print(name, round(kept[name]["mean"], 2), flush=True)


if __name__ == "__main__":
    main()
