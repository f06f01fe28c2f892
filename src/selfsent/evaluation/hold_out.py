"""Which documents of a corpus are trained on, which choose, and which score; of pairs, those that share no text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.display import counted
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.stats.duplicates import connected
from selfsent.evaluation.tasks.context import WITHOUT_DOCUMENTS, split_documents, text_hashes

_GROUPS = "groups of pairs that share no text"


@dataclass(frozen=True)
class HoldOut:
    """The documents of a corpus shared out: to train on, to choose by, and to score.

    Where its rows are `pairs`, they are shared out so that no text is in two parts, and scored by search.
    """

    train: np.ndarray
    dev: np.ndarray | None
    test: np.ndarray | None
    pairs: bool = False

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        dev: bool,
        notice: Callable[[str], None],
        joins: bool = False,
        count: int | None = None,
        single: bool = False,
        pairs: bool = False,
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
            pairs: whether rows are texts that belong together; those that share a text count as one document.

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
        if dev and corpus.documents is None:
            if not single:
                raise DataError(WITHOUT_DOCUMENTS)
            if not pairs:
                return cls(*split_documents(corpus, count, single=True), None)
        whole = Part(corpus, everything, pair_groups(corpus)) if pairs else corpus
        what = _GROUPS if pairs else "documents"
        try:
            train, test = split_documents(whole, count, single=pairs, what=what)
        except DataError as error:
            if dev or count:
                raise
            notice(f"no {'search' if pairs else 'label-free'} score: {error}")
            return cls(everything, None, None)
        if not dev:
            return cls(train, None, test, pairs)
        try:
            kept, chosen = split_documents(Part(whole, train), count, seed=1, single=pairs, what=what)
        except DataError as error:
            held = len(np.unique(np.asarray(whole.documents)[test]))
            raise DataError(f"{held} {what} are kept to score by, and of the others: {error}") from None
        return cls(train[kept], train[chosen], test, pairs)

    def summary(self, corpus: Corpus) -> str:
        """Which part of the corpus is trained on and which is scored, in words; there must be a part to score."""
        held = np.concatenate([rows for rows in (self.dev, self.test) if rows is not None])
        which = corpus.report.counted(len(held))
        if self.pairs:
            which += ", which share no text with the others"
        else:
            which = f"{counted(len(np.unique(np.asarray(corpus.documents)[held])), 'document')} of {which}"
        return f"kept aside to score by: {which}; training on {corpus.report.counted(len(self.train))}"

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
    """Some rows of a corpus, in the form that evaluation takes; other `documents` may take the place of its own."""

    def __init__(self, corpus: Corpus | Part, rows: np.ndarray, documents: np.ndarray | None = None) -> None:
        self.corpus, self.rows = corpus, rows
        own = corpus.documents if documents is None else documents
        self.documents: np.ndarray | None = None if own is None else np.asarray(own)[rows]
        self.fingerprint: str = corpus.fingerprint

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, rows: np.ndarray) -> list[str]:
        """The sentences in these rows of the part."""
        return self.corpus.texts(self.rows[rows])


def pair_groups(corpus: Corpus) -> np.ndarray:
    """The group of each pair, (rows,): pairs that share a text, or a document, directly or through others are one."""
    hashes = [text_hashes(batch) for column in corpus.view_columns[:2] for batch in corpus.batches(column)]
    texts, ids = np.unique(np.concatenate(hashes), return_inverse=True)
    one, other = ids[: len(corpus)], ids[len(corpus) :]
    if corpus.documents is None:
        return connected(one, other, len(texts))[one]
    places = len(texts) + np.asarray(corpus.documents)
    return connected(np.tile(one, 2), np.concatenate([other, places]), int(places.max()) + 1)[one]
