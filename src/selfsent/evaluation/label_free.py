"""Label-free metrics of an encoder, over the same held-out sentences, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.errors import DataError, SettingsError, guess
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.hold_out import WITHOUT_DOCUMENTS, Numbers, Subset, limited
from selfsent.evaluation.results import Score, signature
from selfsent.evaluation.stats.resampling import interval
from selfsent.evaluation.tasks.damaged import crops_task, robust_task
from selfsent.evaluation.tasks.label_free import ContextTask, DocumentTask, LabelFreeTask, halves_task, title_task
from selfsent.methods import METHODS

SINGLE = 2000
"""Maximum number of sentences for `robust` and `crops`; MAX_SENTENCES for other metrics."""
ALL = "all"
MEAN = "judges"
"""Name of the mean of several metrics."""
LEAST_SCORE = 0.1
"""Lower bound of scores in the mean."""


class HeldOut:
    """Held-out sentences, in the forms used by metrics.

    Args:
        corpus: sentences, with or without documents.
        rows: held-out rows, in order within documents.
        most: maximum number of sentences, by default MAX_SENTENCES; further documents are dropped.
    """

    def __init__(self, corpus: Corpus | Subset, rows: Numbers, most: int | None = None) -> None:
        self.corpus = corpus
        names = np.arange(len(corpus)) if corpus.documents is None else np.asarray(corpus.documents)
        self.rows = limited(corpus, names, rows, most=most)
        self.document = np.unique(names[self.rows], return_inverse=True)[1].astype(np.int64)
        """Document number of each sentence, (n,)."""

    @cached_property
    def texts(self) -> list[str]:
        """The sentences."""
        return self.corpus.texts(self.rows)

    @cached_property
    def documents(self) -> list[list[str]]:
        """The sentences of each document.

        Raises:
            DataError: the corpus has none.
        """
        if self.corpus.documents is None:
            raise DataError(WITHOUT_DOCUMENTS)
        found: list[list[str]] = [[] for _ in range(int(self.document.max()) + 1)]
        for text, document in zip(self.texts, self.document, strict=True):
            found[document].append(text)
        return found

    @cached_property
    def single(self) -> tuple[list[str], Numbers]:
        """At most SINGLE distinct sentences, spread over all, and the document of each."""
        first = {text: row for row, text in reversed(list(enumerate(self.texts)))}
        rows = np.sort(np.fromiter(first.values(), np.int64))
        chosen = np.sort(np.random.default_rng(0).permutation(rows)[:SINGLE])
        return [self.texts[row] for row in chosen], self.document[chosen]


METRICS: dict[str, Callable[[HeldOut], LabelFreeTask]] = {
    "context": lambda held: ContextTask(held.corpus, held.rows),
    "title": lambda held: title_task(held.documents),
    "halves": lambda held: halves_task(held.documents),
    "document": lambda held: DocumentTask([text for each in held.documents for text in each], np.sort(held.document)),
    "crops": lambda held: crops_task(*held.single),
    "robust": lambda held: robust_task(*held.single),
}
"""Constructors of the metrics."""


def aimed_at(methods: Iterable[str]) -> set[str]:
    """The metrics with the training objective of one of these methods."""
    return {metric for name in methods if name in METHODS for metric in METHODS[name].aimed_at}


def check_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Names of metrics, with `all` replaced by all of them.

    Raises:
        SettingsError: no such metric.
    """
    for name in names:
        if name not in (ALL, *METRICS):
            raise SettingsError(f"there is no judge {name!r}; {guess(name, (ALL, *METRICS))}")
    return tuple(METRICS) if ALL in names else tuple(dict.fromkeys(names))


def make_metrics(held: HeldOut, names: Sequence[str] = (ALL,)) -> tuple[dict[str, LabelFreeTask], dict[str, str]]:
    """Metrics by name, and the reasons of those that this text does not allow.

    Raises:
        SettingsError: no such metric.
    """
    found, absent = dict[str, LabelFreeTask](), dict[str, str]()
    for name in check_metrics(names):
        try:
            found[name] = METRICS[name](held)
        except DataError as error:
            absent[name] = str(error)
    return found, absent


class MeanMetric:
    """The geometric mean of several metrics; an arithmetic mean would be decided by the most variable one.

    `robust` moves by twenty points where `crops` moves by two.

    Args:
        held: held-out sentences.

    Raises:
        DataError: the text allows none of them.
    """

    def __init__(self, held: HeldOut) -> None:
        self.metrics, absent = make_metrics(held)
        if not self.metrics:
            raise DataError(next(iter(absent.values())))

    def score(self, encoder: Encoder) -> Score:
        """The mean, with an interval over the items of each metric, resampled independently."""
        scores = {name: metric.score(encoder) for name, metric in self.metrics.items()}
        samples = _mean([score.samples for score in scores.values()])
        each = {name: score.score for name, score in scores.items()}
        data = fingerprint({"signature": [score.signature.partition("|pool")[0] for score in scores.values()]})
        label = signature(MEAN, "geometric-mean", *scores, data=data, pool=encoder.pooling, v=2)
        total = sum(score.n for score in scores.values())
        return Score(MEAN, float(_mean(list(each.values()))), *interval(samples), total, label, each, samples=samples)


def _mean(scores: Sequence[Any]) -> Any:
    """The geometric mean of scores from 0 to 100, or of their samples."""
    return np.exp(np.mean(np.log(np.maximum(scores, LEAST_SCORE)), axis=0))
