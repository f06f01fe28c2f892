"""How far an exam without labels orders searches as judged queries do.

    python experiments/proof.py experiments/proof.yaml --data DIR --output docs/results/quality/proof.json \
        --model minilm=DIR --model mpnet=DIR

For each judged set DOCUMENTS documents are drawn, those that are judged first, and QUERIES of its test queries at most.
The rankings of `rankings_of` are scored by judged queries and by the exam that `selfsent exam` draws. Vectors and
trained tables are kept below --runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # what benchmarks and experiments share
from agreement import FIGURES, Case, Scores, Side, with_intervals
from harness import Row, fill, parser_of
from numpy.typing import NDArray

from selfsent import read_corpus, train
from selfsent.data.corpus.clean import clean
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.draw import draw_exam
from selfsent.exam.exam import Exam
from selfsent.exam.texts import texts_of
from selfsent.methods.postprocessing import Moments, at_the_end, whitening_map
from selfsent.models.loading import load_encoder
from selfsent.models.merge import WeightInterpolation
from selfsent.models.opening import open_encoder
from selfsent.models.precision import quicken
from selfsent.models.table import Table
from selfsent.resumable import VectorsOfTexts
from selfsent.scorers.lexical import Hybrid, LexicalScorer
from selfsent.scorers.load_scorer import scorer_of
from selfsent.scorers.scorer import Scorer

DOCUMENTS, JUDGED, QUERIES, ASKED, TOKENS = 700, 600, 300, 300, 96
"""Documents of a set, those that are judged at most, judged queries, queries of the exam, tokens of a text."""
SHIPPED = ("bundled", "bundled-encoder", "bundled-multilingual")
WHITENED, CUT = ("bundled", "minilm", "mpnet", "e5"), 128
WEIGHTS = (0.5, 1.5)
"""Weights of words: the default of transformers, and of tables."""
TASKS = ("judged", "exam")
Sides = tuple[Callable[[Sequence[str]], Any], Callable[[Sequence[str]], Any]]


@dataclass(frozen=True)
class JudgedSet:
    """A set: its judged task, its exam, and the documents that the exam does not ask for."""

    judged: RetrievalTask
    exam: Exam
    unasked: list[str]

    @classmethod
    def read(cls, folder: Path) -> JudgedSet:
        """Draw documents, queries and the exam; the same at every call."""
        rng = np.random.default_rng(0)
        rows = {row["id"]: row for row in pq.read_table(folder / "corpus.parquet").to_pylist()}
        asked = {row["id"]: row["text"] for row in pq.read_table(folder / "queries.parquet").to_pylist()}
        grades: dict[str, dict[str, float]] = {}
        for row in pq.read_table(folder / "qrels" / "test.parquet").to_pylist():
            if row["document"] in rows:
                grades.setdefault(row["query"], {})[row["document"]] = float(row["grade"])
        answered = sorted(query for query, found in grades.items() if max(found.values()) > 0)
        chosen, judged = list[str](), dict[str, None]()
        for query in rng.permutation(answered)[:QUERIES].tolist():
            if len(judged | dict.fromkeys(grades[query])) <= JUDGED:
                judged |= dict.fromkeys(grades[query])
                chosen.append(query)
        names = sorted([*dict.fromkeys([*judged, *rng.permutation([*rows]).tolist()])][:DOCUMENTS])
        documents = [rows[name] for name in names]
        place = {name: number for number, name in enumerate(names)}
        whole = [f"{row['title']} {row['text']}".strip() for row in documents]
        right = [{place[name]: grade for name, grade in grades[query].items()} for query in chosen]
        task = RetrievalTask(folder.name, clean(asked[query] for query in chosen)[0], clean(whole)[0], right)
        titles = [row["title"] if row["text"] else "" for row in documents]
        table = {"title": titles, "text": [row["text"] or row["title"] for row in documents]}
        texts = texts_of(read_corpus(table, metadata_columns="title"), "title")
        exam = draw_exam(texts, ASKED)
        answers = {number for query in exam.queries for number in query.answers}
        unasked = [text.body for number, text in enumerate(exam.documents) if number not in answers]
        return cls(task, exam, unasked)


class Kept:
    """An encoder whose vectors are kept in files: queries and documents apart, cut after TOKENS tokens."""

    def __init__(self, name: str, path: str, folder: Path) -> None:
        self.name, self.path, self._loaded = name, path, list[Scorer]()
        self.sides: Sides = tuple(
            VectorsOfTexts(folder / f"{name}-{side}.sqlite", partial(self._encode, side)) for side in (0, 1)
        )

    def scorer(self) -> Scorer:
        """The encoder, loaded once."""
        if not self._loaded:
            model = open_encoder(self.path)
            if not isinstance(model, Table):
                model.tokenizer.model_max_length = min(TOKENS, model.tokenizer.model_max_length)
                model = quicken(model, fast=True, int8=False)
            self._loaded.append(scorer_of(model, self.name))
        return self._loaded[0]

    def _encode(self, side: int, texts: Sequence[str]) -> NDArray[np.float32]:
        both: list[Sequence[str]] = [["-"], ["-"]]
        both[side] = texts
        return np.asarray(self.scorer().query_document_vectors(*both, search=True)[side], np.float32)


def ranking(name: str, sides: Sides, through: Callable[[Any], Any] = lambda vectors: vectors) -> Scorer:
    """A scorer of kept vectors, changed by a function."""
    memory: list[dict[str, Any]] = [{}, {}]

    def side(which: int, texts: Sequence[str]) -> Any:
        if new := [text for text in dict.fromkeys(texts) if text not in memory[which]]:
            memory[which].update(zip(new, through(sides[which](new)), strict=True))
        return np.stack([memory[which][text] for text in texts])

    return Scorer(partial(side, 1), name, searching=[partial(side, which) for which in (0, 1)])


def whitening(vectors: NDArray[np.float32]) -> Callable[[Any], Any]:
    """Whitening in part, as after training, fitted on documents."""
    found = torch.from_numpy(vectors.astype(np.float64))
    centred = found - found.mean(0)
    weight, bias = whitening_map(Moments(len(found), found.mean(0), centred.T @ centred), at_the_end(0.1))
    return lambda each: (each @ weight.numpy().T + bias.numpy()).astype(np.float32)


def trained(documents: Sequence[str], folder: Path) -> dict[str, str]:
    """A table trained on documents that the exam does not ask for, and the tables between it and `bundled`."""
    run, found = folder / "trained", {"bundled, trained": str(folder / "trained" / "model")}
    if not (run / "model").is_dir():
        train(list(documents), base="bundled", output=run, hold_out=0, overwrite=True, quiet=True)
    for share in (25, 50, 75):
        model = folder / f"trained-{share}"
        found[f"bundled, trained by {share} %"] = str(model)
        if not model.is_dir():
            between = WeightInterpolation(load_encoder("bundled"), load_encoder(str(run / "model")))
            between.at(share / 100).save(model)
    return found


def rankings_of(each: JudgedSet, encoders: Sequence[Kept]) -> Iterator[Scorer]:
    """The rankings of a set: lexical, and each encoder by its cosine and with words, whitened and cut where named."""
    for kind in ("bm25", "tfidf"):
        yield LexicalScorer(kind)
    for encoder in encoders:
        plain = ranking(encoder.name, encoder.sides)
        found = [(plain, WEIGHTS)]
        if encoder.name in WHITENED:
            through = whitening(encoder.sides[1](each.judged.documents))
            own = (WEIGHTS["bundled" in encoder.name],)
            found.append((ranking(f"{encoder.name}, whitened", encoder.sides, through), own))
        if encoder.name in WHITENED[1:]:
            found.append((ranking(f"{encoder.name}, {CUT} numbers", encoder.sides, lambda rows: rows[:, :CUT]), ()))
        for scorer, weights in found:
            yield scorer
            for weight in weights:
                hybrid = Hybrid(scorer, weight)
                hybrid.name = f"{scorer.name} + {weight:g} words"
                yield hybrid


def measured(options: argparse.Namespace, folder: Path, runs: Path) -> dict[str, Any]:
    """Scores of each query by each ranking: kept in a file of the set."""
    each, encoders = JudgedSet.read(folder), encoders_of(options, folder, runs)
    tasks = {"judged": each.judged, "exam": each.exam.task}
    for encoder in encoders:
        for side, texts in zip(encoder.sides, texts_of_tasks([*tasks.values()]), strict=True):
            side(texts)
        print(f"{folder.name}: {encoder.name}", flush=True)
    found: dict[str, list[Any]] = {name: [] for name in ("names", *tasks)}
    for scorer in rankings_of(each, encoders):
        found["names"].append(scorer.name)
        for name, task in tasks.items():
            found[name].append(100 * task.measured(scorer)[:, 0])
    arrays = {name: np.array(values) for name, values in found.items()} | {"splits": np.array(each.exam.splits)}
    np.savez(runs / "scores.npz", **arrays)
    return arrays


def encoders_of(options: argparse.Namespace, folder: Path, runs: Path) -> list[Kept]:
    """The encoders of a set: those that ship, those given, a table trained on its documents."""
    places = {name: name for name in SHIPPED} | dict(each.split("=", 1) for each in options.model)
    places |= trained(JudgedSet.read(folder).unasked, runs)
    return [Kept(name, place, runs) for name, place in places.items()]


def texts_of_tasks(tasks: Sequence[RetrievalTask]) -> tuple[list[str], list[str]]:
    """All queries and all documents, the short ones first."""
    queries = {query for task in tasks for query in task.queries}
    documents = {document for task in tasks for document in task.documents}
    return sorted(queries, key=len), sorted(documents, key=len)


def cases_of(arrays: dict[str, Any]) -> dict[str, Case]:
    """The ways to score rankings, each with the truth."""
    judged, exam, halves = arrays["judged"], arrays["exam"], arrays["splits"] == "dev"
    order = np.random.default_rng(3).permutation(judged.shape[1])
    return {
        "exam": Case(Side(exam[:, halves], exam[:, ~halves]), judged),
        "exam, not halved": Case(whole(exam), judged),
        "half of the judged": Case(whole(judged[:, order[::2]]), judged[:, order[1::2]]),
    }


def whole(scores: Scores) -> Side:
    """The same queries choose and compare."""
    return Side(scores, scores)


def row_of(options: argparse.Namespace, folders: Sequence[Path]) -> Row:
    """A set, or several: how well each way agrees, with intervals; of one set its scores, too."""
    sets = []
    for folder in folders:
        runs = options.runs / folder.name
        kept = runs / "scores.npz"
        sets.append(dict(np.load(kept)) if kept.is_file() else measured(options, folder, runs))
    ways: dict[str, list[Case]] = {}
    for arrays in sets:
        for name, case in cases_of(arrays).items():
            ways.setdefault(name, []).append(case)
    row: Row = {"ways": {name: {"sets": len(each), **with_intervals(each)} for name, each in ways.items()}}
    if len(sets) > 1:
        return row
    (arrays,) = sets
    scores = {name: arrays[name].mean(1).round(2).tolist() for name in TASKS}
    names = arrays["names"].tolist()
    row["scores"] = {name: {way: values[n] for way, values in scores.items()} for n, name in enumerate(names)}
    return row | {"queries": {name: int(arrays[name].shape[1]) for name in TASKS}}


def table(rows: dict[str, Row]) -> str:
    """The tables of the log."""
    lines = [f"| set | way | {' | '.join(FIGURES)} |", f"|---|---|{'--:|' * len(FIGURES)}"]
    for name, row in rows.items():
        for way, found in row["ways"].items():
            cells = [shown(*found[figure], points="rank" not in figure) for figure in FIGURES]
            lines.append(f"| {name} | {way} ({found['sets']}) | {' | '.join(cells)} |")
    return "\n".join(lines)


def shown(mean: float, low: float, high: float, points: bool) -> str:
    """A figure with its interval."""
    return f"{mean:.1f} ({low:.1f} to {high:.1f})" if points else f"{mean:.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    """Measure what is missing, or print the table."""
    parser = parser_of(__doc__, Path("proof-runs"))
    parser.add_argument("--model", action="append", default=[], metavar="NAME=DIR")
    options = parser.parse_args()
    recipe = yaml.safe_load(options.recipe.read_text(encoding="utf-8"))
    torch.set_num_threads(1)

    def runs_in(_: Path) -> Iterator[tuple[str, Callable[[], Row]]]:
        sets = [Path(options.data) / name for name in recipe["sets"]]
        for folder in sets:
            yield folder.name, partial(row_of, options, [folder])
        yield f"{len(sets)} sets", partial(row_of, options, sets)

    fill(options, runs_in, lambda row: {way: found["agreeing"][0] for way, found in row["ways"].items()}, table)


if __name__ == "__main__":
    main()
