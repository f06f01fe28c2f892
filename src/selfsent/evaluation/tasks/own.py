"""A user's own test sets, as tab-separated files: pairs with scores, queries with relevant texts, texts with labels.

A heading line is optional; it is recognised by one of its column names in its place, for pairs by a score that is no
number.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import Rows, fingerprint
from selfsent.evaluation.datasets.publishers import columns_of
from selfsent.evaluation.encoders import Encoder
from selfsent.evaluation.results import Score, measure, signature
from selfsent.evaluation.stats.metrics import mean, parts_of
from selfsent.evaluation.tasks.sts import score_pairs
from selfsent.evaluation.tasks.transfer import FOLDS, Classifier, Transfer, score_rows
from selfsent.evaluation.vectors import inner

VERSION = 2
CUTOFF = 10
BLOCK = 256
TIE = 1e-6
_NO_SCORE = ("", "nan", "inf", "-inf", "na", "n/a", "none", "null", "-", "?")
"""What stands for a score that is missing, and is no name of a column."""
PAIRS, RELEVANCE, LABELS = ("sentence1", "sentence2", "score"), ("query", "text"), ("text", "label")


def read_pairs(path: str | Path) -> Rows:
    """Pairs with scores; the file has text, text, score.

    Raises:
        DataError: the file cannot be read, a score is no number, or all are the same.
    """
    rows = _read(Path(path), PAIRS)
    scores = [_number(Path(path), value) for value in rows["score"]]
    if len(set(scores)) < 2:
        raise DataError(f"{path}: all scores are {scores[0]:g}: they must differ")
    return Rows(rows.name, {**rows.columns, "score": scores}, rows.fingerprint)


def read_relevance(path: str | Path) -> Rows:
    """Queries with relevant texts; the file has query, relevant text. A query may stand on several lines.

    Raises:
        DataError: the file cannot be read.
    """
    return _read(Path(path), RELEVANCE)


def read_labels(path: str | Path) -> Rows:
    """Texts with labels; the file has text, label.

    Raises:
        DataError: the file cannot be read, or a label is on too few lines for the folds.
    """
    rows = _read(Path(path), LABELS)
    names, labels, count = np.unique(rows["label"], return_inverse=True, return_counts=True)
    # The inner folds see nine tenths of a label's lines and need one for each fold.
    least = FOLDS + 2
    if len(names) < 2 or count.min() < least:
        rare = f"{str(names[count.argmin()])!r} has {count.min()} lines"
        raise DataError(f"{path}: cross-validation needs two labels or more with {least} lines each; {rare}")
    return Rows(rows.name, {"text": rows["text"], "label": labels.tolist()}, rows.fingerprint)


def score_relevance(rows: Rows, encoder: Encoder) -> Score:
    """MRR@10 of the first relevant text among all texts of the file but the query itself.

    Equal similarities count against the query.
    """
    texts = list(dict.fromkeys(rows["text"]))
    place = {text: number for number, text in enumerate(texts)}
    queries = parts_of(rows["query"])
    names, found = list(queries), list[float]()
    asked, goal = encoder.sides(names, texts)
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
    return measure(rows.name, mean(found), len(found), signature=label)


def score_labels(rows: Rows, encoder: Encoder, classifier: Classifier = "exact") -> Score:
    """Accuracy of a logistic regression, at its minimum or as SentEval stops it, in nested 10-fold cross-validation."""
    return score_rows(Transfer(rows.name, "nested", ()), encoder, [rows], classifier=classifier)


OWN: dict[str, tuple[Callable[[str | Path], Rows], Callable[..., Score]]] = {
    "pairs": (read_pairs, score_pairs),
    "relevance": (read_relevance, score_relevance),
    "labels": (read_labels, score_labels),
}
"""How a file of each kind is read, and how it is scored. Files are read first: a model may take minutes."""


def _read(path: Path, names: tuple[str, ...]) -> Rows:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    table = []
    for number, line in enumerate(lines, 1):
        fields = line.rstrip("\r").split("\t")
        if not line.strip() or (number == 1 and _is_heading(fields, names)):
            continue
        if len(fields) < len(names) or not all(field.strip() for field in fields[: len(names)]):
            raise DataError(f"{path}, line {number}: expected {', '.join(names)}, separated by tabs")
        table.append([field.strip() for field in fields[: len(names)]])
    if len(table) < 2:
        heading = " below its heading" if _is_heading(lines[0].rstrip("\r").split("\t"), names) else ""
        raise DataError(f"{path} has {len(table)} row{'s' * (len(table) != 1)}{heading}; at least two are needed")
    columns = columns_of(table, *names)
    return Rows(path.stem, columns, fingerprint(columns))


def _is_heading(fields: list[str], names: tuple[str, ...]) -> bool:
    lower = [field.strip().casefold() for field in fields]
    if names == PAIRS and len(fields) >= 3:
        return not _is_number(fields[2]) and lower[2] not in _NO_SCORE
    return any(field == name for field, name in zip(lower, names, strict=False))


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _number(path: Path, text: str) -> float:
    if not _is_number(text):
        raise DataError(f"{path}: the score {text!r} is no number")
    return float(text)
