"""Scores of different kinds that need no labels, over the same sentences kept apart: several judges of one encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from selfsent.errors import DataError, SettingsError, guess
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.hold_out import WITHOUT_DOCUMENTS, Documented, Numbers, limited
from selfsent.evaluation.results import Score, signature
from selfsent.evaluation.stats.resampling import interval
from selfsent.evaluation.tasks.label_free import (
    ContextTask,
    DocumentTask,
    crops_task,
    halves_task,
    robust_task,
    title_task,
)
from selfsent.methods import METHODS

SINGLE = 2000
"""Sentences that are damaged and cut, at most; of every other judge MAX_SENTENCES."""
ALL = "all"
JUDGES_TOGETHER = "judges"
"""The name of the mean of several."""
LEAST_SCORE = 0.1
"""Below it a score weighs no more in the mean of several."""


class Judge(Protocol):
    """A task that any number of encoders can be scored on."""

    def score(self, encoder: Encoder) -> Score:
        """The score of an encoder, with its interval."""


class Held:
    """Sentences kept apart, as judges want them.

    Args:
        corpus: sentences, with documents or without.
        rows: those kept apart, of a document in order.
        most: sentences that are used, MAX_SENTENCES where it is not given; documents beyond it are left out.
    """

    def __init__(self, corpus: Documented, rows: Numbers, most: int | None = None) -> None:
        self.corpus = corpus
        self.has_documents = corpus.documents is not None
        self._names = np.arange(len(corpus)) if corpus.documents is None else np.asarray(corpus.documents)
        self.rows = limited(corpus, self._names, rows, most=most)

    @cached_property
    def texts(self) -> list[str]:
        """The sentences."""
        return self.corpus.texts(self.rows)

    @cached_property
    def document(self) -> Numbers:
        """Where each is from, (n,), counted from 0."""
        return np.unique(self._names[self.rows], return_inverse=True)[1].astype(np.int64)

    @cached_property
    def documents(self) -> list[list[str]]:
        """The sentences of each document.

        Raises:
            DataError: the corpus has none.
        """
        if not self.has_documents:
            raise DataError(WITHOUT_DOCUMENTS)
        found: list[list[str]] = [[] for _ in range(int(self.document.max()) + 1)]
        for text, document in zip(self.texts, self.document, strict=True):
            found[document].append(text)
        return found

    @cached_property
    def single(self) -> tuple[list[str], Numbers]:
        """Distinct sentences for damage, as many as SINGLE, spread over all, and the document of each."""
        first = {text: row for row, text in reversed(list(enumerate(self.texts)))}
        rows = np.sort(np.fromiter(first.values(), np.int64))
        chosen = np.sort(np.random.default_rng(0).permutation(rows)[:SINGLE])
        return [self.texts[row] for row in chosen], self.document[chosen]


def _context(held: Held) -> Judge:
    return ContextTask(held.corpus, held.rows)


def _document(held: Held) -> Judge:
    return DocumentTask([text for each in held.documents for text in each], np.sort(held.document))


JUDGES: dict[str, Callable[[Held], Judge]] = {
    "context": _context,
    "title": lambda held: title_task(held.documents),
    "halves": lambda held: halves_task(held.documents),
    "document": _document,
    "crops": lambda held: crops_task(*held.single),
    "robust": lambda held: robust_task(*held.single),
}
"""How the task of each judge is made."""


def aimed_at(methods: Iterable[str]) -> set[str]:
    """The judges that ask for what a model was trained to do by one of these methods."""
    return {judge for name in methods if name in METHODS for judge in METHODS[name].aimed_at}


def check_judges(names: Sequence[str]) -> tuple[str, ...]:
    """The judges that are meant; `all` is all of them.

    Raises:
        SettingsError: there is no such judge.
    """
    for name in names:
        if name not in (ALL, *JUDGES):
            raise SettingsError(f"there is no judge {name!r}; {guess(name, (ALL, *JUDGES))}")
    return tuple(JUDGES) if ALL in names else tuple(dict.fromkeys(names))


def make_judges(held: Held, names: Sequence[str] = (ALL,)) -> tuple[dict[str, Judge], dict[str, str]]:
    """The tasks of these judges, and why others cannot be had of this text, by name.

    Raises:
        SettingsError: there is no such judge.
    """
    found: dict[str, Judge] = {}
    absent: dict[str, str] = {}
    for name in check_judges(names):
        try:
            found[name] = JUDGES[name](held)
        except DataError as error:
            absent[name] = str(error)
    return found, absent


class TogetherTask:
    """The geometric mean of several judges, as one score, with each of them beside it.

    In a plain mean the judge that varies most decides: `robust` moves by twenty points where `crops` moves by two.

    Args:
        held: sentences kept apart.

    Raises:
        DataError: the text is good for none of them.
    """

    def __init__(self, held: Held) -> None:
        self.judges, absent = make_judges(held)
        if not self.judges:
            raise DataError(next(iter(absent.values())))

    def score(self, encoder: Encoder) -> Score:
        """The mean for an encoder, with an interval over items of each score; they are resampled apart."""
        scores = {name: judge.score(encoder) for name, judge in self.judges.items()}
        samples = _mean([score.samples for score in scores.values()])
        each = {name: score.score for name, score in scores.items()}
        data = fingerprint({"signature": [score.signature.partition("|pool")[0] for score in scores.values()]})
        label = signature(JUDGES_TOGETHER, "geometric-mean", *scores, data=data, pool=encoder.pooling, v=2)
        total = sum(score.n for score in scores.values())
        mean = float(_mean(list(each.values())))
        return Score(JUDGES_TOGETHER, mean, *interval(samples), total, label, each, samples=samples)


def _mean(scores: Sequence[Any]) -> Any:
    """The geometric mean of scores from 0 to 100, or of samples of them; nothing right counts as a tenth of a point."""
    return np.exp(np.mean(np.log(np.maximum(scores, LEAST_SCORE)), axis=0))
