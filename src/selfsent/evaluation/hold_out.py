"""Which documents of a corpus are trained on, which choose, and which score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.display import counted
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.tasks.context import split_documents


@dataclass(frozen=True)
class HoldOut:
    """The documents of a corpus shared out: to train on, to choose by, and to score."""

    train: np.ndarray
    dev: np.ndarray | None
    test: np.ndarray | None

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        dev: bool,
        notice: Callable[[str], None],
        joins: bool = False,
        count: int | None = None,
        single: bool = False,
    ) -> HoldOut:
        """Hold out documents for the label-free score, and others when choices are made by it.

        Args:
            corpus: sentences, with documents or without.
            dev: whether choices are made by the score.
            notice: is told why nothing is held out, where that is so.
            joins: whether the model joins pairs, and has no vectors to be scored.
            count: documents to hold out each time, 0 for none; None for the usual number (see `split_documents`).
            single: choices are made by scores that need no documents: without them single sentences are kept apart to
                choose by, and none to score.

        Raises:
            DataError: choices are to be made by it, or a count is given, and the corpus has too few documents or none.
            SettingsError: the count is out of range, or there are no vectors to choose by.
        """
        everything = np.arange(len(corpus))
        if count == 0 and dev:
            raise SettingsError("--hold-out 0 leaves nothing to choose by: give a number, or --dev with a task")
        if count == 0:
            return cls(everything, None, None)
        if joins and dev:
            raise SettingsError("--dev context scores vectors, and a cross-encoder has none: give a task of pairs")
        if joins:
            return cls(everything, None, None)
        if dev and single and corpus.documents is None:
            return cls(*split_documents(corpus, count, single=True), None)
        try:
            train, test = split_documents(corpus, count)
        except DataError as error:
            if dev or count:
                raise
            notice(f"no label-free score: {error}")
            return cls(everything, None, None)
        if not dev:
            return cls(train, None, test)
        try:
            kept, chosen = split_documents(Part(corpus, train), count, seed=1)
        except DataError as error:
            held = len(np.unique(np.asarray(corpus.documents)[test]))
            raise DataError(f"{held} documents are kept to score by, and of the others: {error}") from None
        return cls(train[kept], train[chosen], test)

    def summary(self, corpus: Corpus) -> str:
        """Which part of the corpus is trained on and which is scored, in words; there must be a part to score."""
        held = np.concatenate([rows for rows in (self.dev, self.test) if rows is not None])
        documents = len(np.unique(np.asarray(corpus.documents)[held]))
        return (
            f"kept aside to score by: {counted(documents, 'document')} of {corpus.report.counted(len(held))};"
            f" training on {corpus.report.counted(len(self.train))}"
        )

    def thinned(self, count: int | None) -> HoldOut:
        """With no more rows to train on than this, drawn at random.

        Raises:
            SettingsError: fewer than two are wanted.
        """
        if count is not None and count < 2:
            raise SettingsError(f"--sentences is {count}; it must be at least 2")
        if count is None or count >= len(self.train):
            return self
        chosen = np.random.default_rng(0).permutation(self.train)[:count]
        return replace(self, train=np.sort(chosen))


class Part:
    """Some rows of a corpus, in the form that evaluation takes."""

    def __init__(self, corpus: Corpus, rows: np.ndarray) -> None:
        self.corpus, self.rows = corpus, rows
        self.documents = None if corpus.documents is None else np.asarray(corpus.documents)[rows]
        self.fingerprint = corpus.fingerprint

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, rows: np.ndarray) -> list[str]:
        """The sentences in these rows of the part."""
        return self.corpus.texts(self.rows[rows])
