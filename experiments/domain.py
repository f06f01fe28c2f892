"""Labelled tasks of single domains, for judging what training on unlabelled text of a domain is worth.

They lie in `domain/` of the data mirror. Development tasks are Banking77's train split and one half of the texts of 20
Newsgroups and Counsel topics, drawn by a hash; settings are chosen on them. The others are for the tables.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from selfsent.data.vector_files import inner
from selfsent.scorers.load_scorer import Scorer

NEAREST = 10
LIMIT, LIMIT_DEV = 4000, 2000
"""Texts that are read of a task at most: what is near is looked for among all of them."""
Figures = list[float]


def domain_rows(name: str, data: str | None) -> dict[str, list[str]]:
    """A task's columns, no more than LIMIT rows; of a task that ends in -dev or -test its half, or its split."""
    folder = name.removesuffix("-dev").removesuffix("-test")
    root = Path(data or os.environ["SELFSENT_DATA"]) / "domain" / folder
    split = root / ("train.parquet" if name.endswith("-dev") and (root / "train.parquet").is_file() else "test.parquet")
    found: dict[str, list[str]] = pq.read_table(split).to_pydict()
    if folder in _HALVED:
        in_dev = [hashlib.blake2b(text.encode()).digest()[0] % 2 == 0 for text in found["text"]]
        wanted = [number for number, dev in enumerate(in_dev) if dev == name.endswith("-dev")]
        found = {column: [values[number] for number in wanted] for column, values in found.items()}
    limit = LIMIT_DEV if name.endswith("-dev") else LIMIT
    return {column: values[:limit] for column, values in found.items()}


def _near(encoder: Scorer, queries: list[str], texts: list[str]) -> np.ndarray:
    return inner(*encoder.query_document_vectors(queries, texts))


def _nearest(encoder: Scorer, rows: dict[str, list[str]]) -> np.ndarray:
    """Whether the ten nearest of the other texts, by votes weighted with their cosines, have a text's label."""
    cosines, labels = _near(encoder, rows["text"], rows["text"]), np.unique(rows["label"], return_inverse=True)[1]
    np.fill_diagonal(cosines, -np.inf)
    near = np.argpartition(-cosines, NEAREST, axis=1)[:, :NEAREST]
    votes = np.zeros((len(labels), labels.max() + 1))
    np.add.at(votes, (np.arange(len(labels))[:, None], labels[near]), np.take_along_axis(cosines, near, 1))
    return np.asarray(votes.argmax(1) == labels, float)


def _reciprocal(encoder: Scorer, rows: dict[str, list[str]]) -> np.ndarray:
    """The reciprocal rank of each query's text among all, 0 beyond the tenth; ties count against it."""
    cosines = _near(encoder, rows["query"], rows["text"])
    rank = (cosines >= np.diag(cosines)[:, None]).sum(1)
    return np.where(rank <= 10, 1 / rank, 0.0)


_HALVED = ("newsgroups", "counsel-topics")
DOMAIN: dict[str, Callable[[Scorer, dict[str, list[str]]], np.ndarray]] = {
    "banking77-dev": _nearest,
    "newsgroups-dev": _nearest,
    "counsel-topics-dev": _nearest,
    "banking77-test": _nearest,
    "newsgroups-test": _nearest,
    "counsel-topics-test": _nearest,
    "bbc": _nearest,
    "scitldr": _reciprocal,
    "counsel-answers": _reciprocal,
}


def score_domain(name: str, encoder: Scorer, data: str | None = None) -> Figures:
    """Score x 100 of a task, and the ends of its 95 % interval over texts."""
    each = 100 * DOMAIN[name](encoder, domain_rows(name, data))
    half = 1.96 * each.std(ddof=1) / len(each) ** 0.5
    return [round(float(value), 4) for value in (each.mean(), each.mean() - half, each.mean() + half)]
