"""A user's own test sets: pairs with scores, queries with relevant texts, texts with labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from selfsent.data.vector_files import inner
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import Rows
from selfsent.evaluation.datasets.own_files import Clean, Column, is_number, read_rows
from selfsent.evaluation.encoders import Encoder
from selfsent.evaluation.results import SCALE, Score, bounds, measure, signature
from selfsent.evaluation.stats.metrics import mean, parts_of
from selfsent.evaluation.tasks.grouping import nearest_neighbours, v_measures
from selfsent.evaluation.tasks.sts import score_pairs
from selfsent.evaluation.tasks.transfer import FOLDS, Classifier, Transfer, score_rows

VERSION = 4
CUTOFF = 10
BLOCK = 256
TIE = 1e-6
PAIRS, RELEVANCE, LABELS = ("sentence1", "sentence2", "score"), ("query", "text"), ("text", "label")


def read_pairs(path: str | Path, columns: Sequence[Column] | None = None, clean: Clean = None) -> Rows:
    """Pairs with scores; the file has text, text, score.

    Args:
        path: see `read_rows`.
        columns: the names that these have in the file, where they are not sentence1, sentence2, score.
        clean: see `read_rows`.

    Raises:
        DataError: the file cannot be read, a score is no number, or all are the same.
    """
    rows = read_rows(Path(path), PAIRS, columns, clean)
    scores = [_number(Path(path), value) for value in rows["score"]]
    if len(set(scores)) < 2:
        raise DataError(f"{path}: all scores are {scores[0]:g}: they must differ")
    return replace(rows, columns={**rows.columns, "score": scores})


def read_relevance(path: str | Path, columns: Sequence[Column] | None = None, clean: Clean = None) -> Rows:
    """Queries with relevant texts; the file has query, relevant text. A query may stand on several lines.

    A line whose text is its own query says nothing, and is left out: a query is not looked for among the texts.

    Args:
        path: see `read_rows`.
        columns: the names that these have in the file, where they are not query, text.
        clean: see `read_rows`.

    Raises:
        DataError: the file cannot be read, or no query has another text.
    """
    rows = read_rows(Path(path), RELEVANCE, columns, clean)
    kept = [row for row, (query, text) in enumerate(zip(rows["query"], rows["text"], strict=True)) if query != text]
    if not kept:
        raise DataError(f"{path}: the text of each line is its query itself: give the texts that answer the queries")
    return replace(rows, columns={name: [values[row] for row in kept] for name, values in rows.columns.items()})


def read_labels(path: str | Path, columns: Sequence[Column] | None = None, clean: Clean = None) -> Rows:
    """Texts with labels; the file has text, label.

    Args:
        path: see `read_rows`.
        columns: the names that these have in the file, where they are not text, label.
        clean: see `read_rows`.

    Raises:
        DataError: the file cannot be read, or a label is on too few lines for the folds.
    """
    rows = read_rows(Path(path), LABELS, columns, clean)
    names, labels, count = np.unique(rows["label"], return_inverse=True, return_counts=True)
    # The inner folds see nine tenths of a label's lines and need one for each fold.
    least = FOLDS + 2
    if len(names) < 2 or count.min() < least:
        rare = f"{str(names[count.argmin()])!r} has {count.min()} lines"
        raise DataError(f"{path}: cross-validation needs two labels or more with {least} lines each; {rare}")
    return replace(rows, columns={"text": rows["text"], "label": labels.tolist()})


def score_relevance(rows: Rows, encoder: Encoder) -> Score:
    """MRR@10 of the first relevant text among all texts of the file but the query itself.

    Equal similarities count against the query.
    """
    texts = list(dict.fromkeys(rows["text"]))
    place = {text: number for number, text in enumerate(texts)}
    queries = parts_of(rows["query"])
    names, found = list(queries), list[float]()
    asked, goal = encoder.sides(names, texts, search=True)
    for start in range(0, len(names), BLOCK):
        block = slice(start, start + BLOCK)
        for name, similarity in zip(names[block], inner(asked[block], goal), strict=True):
            relevant = [place[rows["text"][row]] for row in queries[name]]
            itself = [place[name]] if name in place else []  # in a file of duplicates every text is a query, too
            others = np.delete(similarity, relevant + itself)
            rank = 1 + int(np.sum(others >= similarity[relevant].max() - TIE))
            found.append(1 / rank if rank <= CUTOFF else 0.0)
    size = {"n": len(found), "c": len(texts), "data": rows.fingerprint, "pool": encoder.pooling, "v": VERSION}
    label = signature(rows.name, f"mrr@{CUTOFF}", encoder.measure, **size)
    return measure(rows.name, mean(found), len(found), signature=label, warnings=rows.warnings)


def score_labels(rows: Rows, encoder: Encoder, classifier: Classifier = "exact") -> Score:
    """Accuracy of a logistic regression, at its minimum or as SentEval stops it, in nested 10-fold cross-validation.

    Beside it, without a classifier: accuracy of the nearest neighbour, and V-measure of k-means by MTEB's protocol;
    not of what counts words.
    """
    score = score_rows(Transfer(rows.name, "nested", ()), encoder, [rows], classifier=classifier)
    if not encoder.has_vectors:
        return score
    texts, labels = [" ".join(text.split()) for text in rows["text"]], np.asarray(rows["label"], np.int64)
    vectors = encoder(texts)
    nearest, grouped = nearest_neighbours(vectors, labels, texts), v_measures(vectors, labels)
    return replace(
        score,
        metrics={"nearest_neighbour": SCALE * float(nearest.mean()), "v_measure": SCALE * float(np.mean(grouped))},
        intervals={"nearest_neighbour": bounds(rows.name, mean(nearest), len(nearest), [np.arange(len(nearest))])},
        details={**score.details, "v_measures": [SCALE * each for each in grouped]},
    )


OWN: dict[str, tuple[Callable[..., Rows], Callable[..., Score]]] = {
    "pairs": (read_pairs, score_pairs),
    "relevance": (read_relevance, score_relevance),
    "labels": (read_labels, score_labels),
}
"""How a file of each kind is read, and how it is scored. Files are read first: a model may take minutes."""


def _number(path: Path, text: str) -> float:
    if not is_number(text):
        raise DataError(f"{path}: the score {text!r} is no number")
    return float(text)
