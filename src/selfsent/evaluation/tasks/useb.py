"""USEB, the benchmark of the TSDAE paper (Wang, Reimers and Gurevych, 2021): four tasks, their own metrics.

Titles and single sentences, cosine similarity. Ties, skipped queries and denominators follow the authors' evaluators
(github.com/UKPLab/useb), because a mean average precision is not defined without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import inner
from selfsent.evaluation.datasets.declared import DataSet, PublisherReader, Rows, Store
from selfsent.evaluation.datasets.publishers import read_askubuntu, read_cqadupstack, read_scidocs, read_twitterpara
from selfsent.evaluation.encoders import Encoder
from selfsent.evaluation.results import Score, measure, signature
from selfsent.evaluation.stats.metrics import average, average_precision, mean, parts_of, spearman
from selfsent.evaluation.stats.resampling import Floats, Statistic, point

VERSION = 1
CITATION = "Wang, Reimers and Gurevych, 2021. arXiv:2104.06979"
DEPTH = 100
"""Posts retrieved for a CQADupStack query."""
NEGATIVE, POSITIVE = 2, 4
"""TwitterPara's votes: up to 2 is no paraphrase, 4 and more is one, 3 is debatable and dropped."""
MEMORY = 1 << 24
"""Similarities held at once."""


def _useb(
    name: str,
    rows: int | None,
    columns: Sequence[str],
    publisher: PublisherReader,
    licence: str = "none stated",
    hashes: tuple[str, ...] = (),
) -> DataSet:
    return DataSet(
        name,
        "kwang2049/useb",
        rows,
        config=f"data-eval/{name}",
        columns={column: column for column in columns},
        hub=False,
        publisher=publisher,
        hashes=hashes,
        licence=licence,
        citation=CITATION,
    )


ASKUBUNTU = _useb("askubuntu", 3720, ("query", "sentence1", "sentence2", "relevant"), read_askubuntu)
CQADUPSTACK = _useb("cqadupstack", None, ("forum", "id", "text", "relevant"), read_cqadupstack)
SCIDOCS = _useb("scidocs", None, ("subset", "query", "sentence1", "id", "sentence2", "relevant"), read_scidocs)
TWITTERPARA = _useb(
    "twitterpara",
    11092,
    ("sentence1", "sentence2", "score", "subset"),
    read_twitterpara,
    licence="PIT-2015: CC BY-NC-SA 3.0; Twitter-URL: none stated",
    hashes=("1d1f5b",),
)


def score_twitterpara(encoder: Encoder, store: Store) -> Score:
    """Average precision of the cosine, the mean of Twitter-URL and PIT-2015; debatable pairs are dropped."""
    rows = store.load(TWITTERPARA)
    similarity = encoder.similarity(rows["sentence1"], rows["sentence2"])
    votes = np.asarray(rows["score"])
    clear = np.flatnonzero((votes <= NEGATIVE) | (votes >= POSITIVE))
    parts = parts_of([rows["subset"][row] for row in clear])
    labels, found = votes[clear] >= POSITIVE, similarity[clear]
    each = {name: average_precision(labels[part], found[part]) for name, part in parts.items()}
    # The evaluator logs Spearman over all pairs, debatable ones included: other items than those of the main score.
    details = {
        f"spearman_{name}": 100 * point(spearman(similarity[part], votes[part]), len(part))
        for name, part in parts_of(rows["subset"]).items()
    }
    return _mean_of_parts(rows, encoder, "ap", each, parts, len(clear), details)


def score_askubuntu(encoder: Encoder, store: Store) -> Score:
    """Mean average precision over the 20 candidates of each query; ties keep their BM25 order."""
    rows = store.load(ASKUBUNTU)
    similarity, relevant = encoder.similarity(rows["sentence1"], rows["sentence2"]), np.asarray(rows["relevant"])
    precisions = []
    for part in parts_of(rows["query"]).values():
        order = np.argsort(-similarity[part], kind="stable")
        precisions.append(precision_of_ranking(relevant[part][order], int(relevant[part].sum())))
    n = len(precisions)
    label = _signature(rows, encoder, "map", n)
    return measure(ASKUBUNTU.name, mean(precisions), n, signature=label, warnings=rows.warnings)


def score_scidocs(encoder: Encoder, store: Store) -> Score:
    """Mean average precision, the mean of cite, cocite, coview and coread.

    As trec_eval does: equal scores are ranked by descending id, and the denominator counts every relevant candidate,
    also those that have no title and so are not ranked.
    """
    rows = store.load(SCIDOCS)
    titled = np.array([bool(text) for text in rows["sentence2"]])
    similarity = np.zeros(len(rows), np.float32)
    left, right = ([rows[name][row] for row in np.flatnonzero(titled)] for name in ("sentence1", "sentence2"))
    similarity[titled] = encoder.similarity(left, right)
    relevant, names = np.asarray(rows["relevant"]), np.asarray(rows["id"])
    precisions, subset = [], []
    for part in parts_of([f"{a}\t{b}" for a, b in zip(rows["subset"], rows["query"], strict=True)]).values():
        ranked = part[titled[part]]
        order = np.lexsort((names[ranked], similarity[ranked]))[::-1]
        precisions.append(precision_of_ranking(relevant[ranked][order], int(relevant[part].sum())))
        subset.append(rows["subset"][part[0]])
    return _mean_of_queries(rows, encoder, "map", np.array(precisions), subset)


def score_cqadupstack(encoder: Encoder, store: Store) -> Score:
    """Mean average precision at 100, the mean over forums; the pool of a forum is its posts less all queries.

    The precision is averaged over the duplicates that were found, not over all there are, and equal similarities share
    a threshold: the authors' use of scikit-learn's function on the 100 best.
    """
    rows = store.load(CQADUPSTACK)
    if encoder.has_vectors:
        encoder.remember(rows["text"])
    precisions: list[float] = []
    forum_of: list[str] = []
    for forum, part in parts_of(rows["forum"]).items():
        values = _forum_precisions(rows, encoder, part)
        precisions += values
        forum_of += [forum] * len(values)
    return _mean_of_queries(rows, encoder, f"map@{DEPTH}", np.array(precisions), forum_of)


def precision_of_ranking(relevant: NDArray[np.int64], total: int) -> float:
    """Average precision of a ranked list: the sum of the precision at each relevant item, over `total`; 0 without any.

    Args:
        relevant: (n,) 0 or 1, best first.
        total: what to divide by.
    """
    hits = np.flatnonzero(relevant)
    return float(np.sum(np.arange(1, len(hits) + 1) / (hits + 1)) / total) if total else 0.0


def _forum_precisions(rows: Rows, encoder: Encoder, part: NDArray[np.int64]) -> list[float]:
    gold = {row: set(rows["relevant"][row].split()) for row in part if rows["relevant"][row]}
    pool = np.array([row for row in part if row not in gold])
    names = np.array([rows["id"][row] for row in pool])
    queries, found = list(gold), list[float]()
    texts = [[rows["text"][row] for row in part] for part in (queries, pool)]
    asked, posts = encoder.sides(texts[0], texts[1])
    size = max(1, MEMORY // max(1, len(pool)))
    for start in range(0, len(queries), size):
        block = slice(start, start + size)
        for row, scores in zip(queries[block], inner(asked[block], posts), strict=True):
            best = np.argsort(-scores, kind="stable")[:DEPTH]
            hit = np.isin(names[best], list(gold[row]))
            found.append(float(average_precision(hit, scores[best])(np.ones((1, len(best))))[0]))
    return found


def _mean_of_queries(rows: Rows, encoder: Encoder, metric: str, precisions: Floats, subset: list[str]) -> Score:
    parts = parts_of(subset)
    each = {name: mean(precisions[part]) for name, part in parts.items()}
    return _mean_of_parts(rows, encoder, metric, each, parts, len(precisions), {})


def _mean_of_parts(
    rows: Rows,
    encoder: Encoder,
    metric: str,
    each: Mapping[str, Statistic],
    parts: Mapping[str, NDArray[np.int64]],
    n: int,
    details: Mapping[str, float],
) -> Score:
    """The plain mean of one metric over the parts of a task, with each part's value beside it."""
    beside = {name: average([each[name]], [part]) for name, part in parts.items()}
    return measure(
        rows.name,
        average(list(each.values()), list(parts.values())),
        n,
        signature=_signature(rows, encoder, metric, n),
        strata=list(parts.values()),
        metrics=beside,
        details=details,
        warnings=rows.warnings,
    )


def _signature(rows: Rows, encoder: Encoder, metric: str, n: int) -> str:
    size = {"n": n, "data": rows.fingerprint, "pool": encoder.pooling, "v": VERSION}
    return signature(rows.name, metric, encoder.measure, "mean", **size)
