"""Argument similarity: AFS (Misra et al., 2016) and its open stand-ins UKP Aspect and BWS.

Correlations are taken per topic and averaged plainly, because the same cosine means other things on other topics.
Supervised models are scored by cross-validation: over pairs (10-fold, optimistic, because a sentence occurs in several
pairs) or over topics (cross-topic).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import DataSet, Rows, Store
from selfsent.evaluation.datasets.publishers import read_afs, read_bws
from selfsent.evaluation.encoders import Encoder, as_encoder
from selfsent.evaluation.results import Score, measure, signature
from selfsent.evaluation.stats.metrics import average, parts_of, pearson, spearman
from selfsent.evaluation.stats.resampling import Floats, Statistic

VERSION = 1
FOLDS = 10
SEED = 1

Split = Literal["10-fold", "cross-topic"]
Trainer = Callable[[list[tuple[str, str]], list[float]], Any]
"""Pairs and their scores -> a model, anything `as_encoder` takes."""

_COLUMNS = {"sentence1": "sentence1", "sentence2": "sentence2", "score": "score"}

AFS = DataSet(
    "afs",
    "argument-similarity/afs",
    None,
    split="all",
    columns={**_COLUMNS, "subset": "topic"},
    hub=False,
    publisher=read_afs,
    citation="Misra, Ecker and Walker, 2016",
)
UKP_ASPECT = DataSet(
    "ukp-aspect",
    "argument-similarity/ukp_aspect",
    3595,
    split="all",
    columns={**_COLUMNS, "subset": "topic"},
    hub=False,
    hashes=("0dcb97",),
    citation="Reimers et al., 2019",
)
BWS = DataSet(
    "bws",
    "argument-similarity/bws",
    3400,
    split="all",
    columns={**_COLUMNS, "subset": "topic"},
    hub=False,
    publisher=read_bws,
    citation="Thakur et al., 2021",
)
ARGUMENTS = (AFS, UKP_ASPECT, BWS)


def score_arguments(dataset: DataSet, encoder: Encoder, store: Store) -> Score:
    """Spearman of the cosine per topic, averaged; Pearson and each topic beside it.

    Args:
        dataset: one of `ARGUMENTS`; its column subset is the topic.
        encoder: the model.
        store: where data sets come from.
    """
    rows = store.load(dataset)
    similarity = encoder.similarity(rows["sentence1"], rows["sentence2"])
    return _score(rows, similarity, parts_of(rows["subset"]), encoder, "topic")


def cross_validate(dataset: DataSet, trainer: Trainer, store: Store, split: Split) -> Score:
    """Train and test a supervised model on folds of pairs or on rotations of topics; the mean over the folds.

    Args:
        dataset: one of `ARGUMENTS`.
        trainer: trains a model on pairs and their scores.
        store: where data sets come from.
        split: `10-fold` over pairs, or `cross-topic`: all topics but one for training.

    Raises:
        DataError: too few pairs or topics.
    """
    rows = store.load(dataset)
    parts = dict(folds(rows, split))
    pairs = list(zip(rows["sentence1"], rows["sentence2"], strict=True))
    similarity, encoder = np.zeros(len(rows)), None
    for test in parts.values():
        train = np.setdiff1d(np.arange(len(rows)), test)
        model = trainer([pairs[row] for row in train], [float(rows["score"][row]) for row in train])
        encoder = as_encoder(model)
        similarity[test] = encoder.similarity(*zip(*(pairs[row] for row in test), strict=True))
    assert encoder is not None  # folds() yields at least two
    return _score(rows, similarity, parts, encoder, split)


def folds(rows: Rows, split: Split) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The test rows of each fold, by name.

    Raises:
        DataError: too few pairs or topics.
    """
    if split == "cross-topic":
        topics = parts_of(rows["subset"])
        if len(topics) < 2:
            raise DataError(f"{rows.name} has {len(topics)} topic; cross-topic evaluation needs two or more")
        yield from topics.items()
        return
    if len(rows) < 3 * FOLDS:
        raise DataError(f"{rows.name} has {len(rows)} pairs; {FOLDS} folds need {3 * FOLDS}")
    order = np.random.default_rng(SEED).permutation(len(rows))
    yield from ((f"fold {number + 1}", np.sort(order[number::FOLDS])) for number in range(FOLDS))


def _score(rows: Rows, similarity: Floats, parts: dict[str, NDArray[np.int64]], encoder: Encoder, how: str) -> Score:
    gold = np.asarray(rows["score"], np.float64)
    rank = {name: spearman(similarity[part], gold[part]) for name, part in parts.items()}
    linear = {name: pearson(similarity[part], gold[part]) for name, part in parts.items()}
    chosen = list(parts.values())
    size = {"n": len(rows), "data": rows.fingerprint, "pool": encoder.pooling, "v": VERSION}
    beside: dict[str, Statistic] = {"pearson": average(list(linear.values()), chosen)}
    if len(parts) <= FOLDS:
        beside |= {f"spearman {name}": average([rank[name]], [part]) for name, part in parts.items()}
        beside |= {f"pearson {name}": average([linear[name]], [part]) for name, part in parts.items()}
    return measure(
        rows.name,
        average(list(rank.values()), chosen),
        len(rows),
        signature=signature(rows.name, "spearman", encoder.measure, f"mean over {how}", **size),
        strata=chosen,
        metrics=beside,
        warnings=rows.warnings,
    )
