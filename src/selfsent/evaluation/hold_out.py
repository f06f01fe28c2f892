"""Which documents of a corpus are trained on, which choose, and which score; of pairs, those that share no text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.display import counted
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.stats.duplicates import connected

Numbers = NDArray[np.int64]

MAX_SENTENCES = 10_000  # held-out sentences that are scored; documents beyond it are left out
HELD_SHARE, HELD_MINIMUM = 0.1, 500
"""Share of the documents that is held out of a corpus of a thousand or more, and how many at least."""
HELD_OF_FEW = 0.2  # the share that is held out of a smaller corpus
HELD_LEAST = 30  # documents below which an interval by resampling them would be too narrow to be honest
WITHOUT_DOCUMENTS = (
    "the corpus has no documents to find a next sentence in: give a document column, or split_sentences if a text"
    " holds several sentences"
)
NO_NEIGHBOURS = (
    "no document has two different sentences: split texts that hold several with split_sentences,"
    " or check the document column"
)
_READ = 1 << 16  # sentences whose text is in memory at once while documents are chosen


class Documented(Protocol):
    """What evaluation needs of a corpus."""

    documents: Numbers | None
    fingerprint: str

    def __len__(self) -> int:
        """Number of sentences."""

    def texts(self, rows: Numbers) -> list[str]:
        """The sentences in these rows."""


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
            notice: called with the reason where nothing is held out.
            joins: whether the model joins pairs, and has no vectors to be scored.
            count: documents to hold out each time, 0 for none; None for the default (see `split_documents`).
            single: choices are made by scores that need no documents: without them single sentences are kept apart to
                choose by, and none to score.
            pairs: whether rows are texts that belong together; those that share a text count as one document.

        Raises:
            DataError: choices are to be made by it, or a count is given, and the corpus has too few documents or none.
            SettingsError: the count is out of range, or there are no vectors to choose by.
        """
        everything = np.arange(len(corpus))
        if dev and count == 0:
            raise SettingsError("hold_out=0 leaves nothing to choose by: give a number, or `dev` with a task")
        if dev and joins:
            raise SettingsError("dev=context scores vectors, and a cross-encoder has none: give a task of pairs")
        if count == 0 or joins:
            return cls(everything, None, None)
        if dev and corpus.documents is None and not single:
            raise DataError(WITHOUT_DOCUMENTS)
        if dev and corpus.documents is None and not pairs:
            return cls(*split_documents(corpus, count, single=True), None)
        whole = Subset(corpus, everything, pair_groups(corpus)) if pairs else corpus
        what = "groups of pairs that share no text" if pairs else "documents"
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
            kept, chosen = split_documents(Subset(whole, train), count, seed=1, single=pairs, what=what)
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
            raise SettingsError(f"sentences is {count}; it must be at least 2")
        if count is None or count >= len(self.train):
            return self
        return replace(self, train=np.sort(np.random.default_rng(0).permutation(self.train)[:count]))


def split_documents(
    corpus: Documented, count: int | None = None, seed: int = 0, *, single: bool = False, what: str = "documents"
) -> tuple[Numbers, Numbers]:
    """Keep whole documents out of training, chosen by a hash of their first sentence.

    The choice depends on the documents alone, not on their order, so it stays put when a corpus is read again or grows;
    of two counts the larger one's documents hold the smaller one's.

    Args:
        corpus: sentences with documents.
        count: documents to hold out. None for a tenth of them, 500 at least, as long as all their sentences are scored;
            of fewer than a thousand documents a fifth.
        seed: another seed, another choice.
        single: documents may be of one sentence, and of a corpus without documents each sentence counts as one.
        what: the name of documents in errors.

    Returns:
        (rows to train on, rows held out), both ascending.

    Raises:
        DataError: the corpus has no documents, too few of them, or all that would be held out are of one sentence.
        SettingsError: the count is below HELD_LEAST.
    """
    if corpus.documents is None and not single:
        raise DataError(WITHOUT_DOCUMENTS)
    documents = np.arange(len(corpus)) if corpus.documents is None else corpus.documents
    names, first, sizes = np.unique(documents, return_index=True, return_counts=True)
    total, blocks = len(names), np.array_split(first, 1 + len(first) // _READ)
    order = np.argsort(np.concatenate([text_hashes(corpus.texts(block), seed) for block in blocks]), kind="stable")
    if single:  # what holds more than a tenth of the rows is held out last
        order = order[np.argsort(sizes[order] > HELD_SHARE * len(corpus), kind="stable")]
    if count is not None and count < HELD_LEAST:
        raise SettingsError(f"hold_out is {count}; an honest interval needs {HELD_LEAST} {what} at least")
    if count is not None and total - count < 2:
        raise DataError(f"too few {what} to hold {count:,} out: the corpus has {total:,}")
    if count is None and total >= 2 * HELD_MINIMUM:
        count = max(HELD_MINIMUM, min(round(HELD_SHARE * total), _fitting(sizes[order], MAX_SENTENCES)))
    elif count is None and (count := round(HELD_OF_FEW * total)) < HELD_LEAST:
        raise DataError(
            f"too few {what} to hold any out: the corpus has {total}, and {round(HELD_LEAST / HELD_OF_FEW)} are needed;"
            f" hold_out={HELD_LEAST} needs fewer"
        )
    if not single and sizes[order[:count]].max() < 2:
        raise DataError(NO_NEIGHBOURS)
    held = np.isin(documents, names[order[:count]])
    return np.flatnonzero(~held), np.flatnonzero(held)


def limited(corpus: Documented, documents: Numbers, rows: Numbers, most: int | None = None) -> Numbers:
    """Rows of so many documents, in the order of their hash, that MAX_SENTENCES, or `most`, is not exceeded."""
    most = MAX_SENTENCES if most is None else most
    if len(rows) <= most:
        return rows
    _, first, member, size = np.unique(documents[rows], return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(text_hashes(corpus.texts(rows[first])), kind="stable")
    return rows[np.isin(member, order[: max(1, _fitting(size[order], most))])]


def _fitting(sizes: Numbers, most: int) -> int:
    """How many of the first documents, of these sizes, have no more sentences than `most`."""
    return int(np.searchsorted(sizes.cumsum(), most, side="right"))


def text_hashes(texts: list[str], seed: int = 0) -> NDArray[np.uint64]:
    """A number for each text, (n,): the same on every machine, another one for another seed."""
    key = str(seed).encode()
    digests = b"".join(hashlib.blake2b(t.encode("utf-8", "replace"), digest_size=8, key=key).digest() for t in texts)
    return np.frombuffer(digests, np.uint64)


class Subset:
    """Some rows of a corpus, in the form that evaluation takes; other `documents` may replace its own."""

    def __init__(self, corpus: Corpus | Subset, rows: np.ndarray, documents: np.ndarray | None = None) -> None:
        self.corpus, self.rows = corpus, rows
        self.fingerprint: str = corpus.fingerprint
        documents = corpus.documents if documents is None else documents
        self.documents: np.ndarray | None = None if documents is None else np.asarray(documents)[rows]

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, rows: np.ndarray) -> list[str]:
        """The sentences in these rows of the subset."""
        return self.corpus.texts(self.rows[rows])


def pair_groups(corpus: Corpus) -> np.ndarray:
    """The group of each pair, (rows,): pairs that share a text, or a document, directly or through others are one."""
    hashes = [text_hashes(batch) for column in corpus.view_columns[:2] for batch in corpus.batches(column)]
    texts, ids = np.unique(np.concatenate(hashes), return_inverse=True)
    one, other = ids[: len(corpus)], ids[len(corpus) :]
    if corpus.documents is None:
        return connected(one, other, len(texts))[one]
    nodes = len(texts) + np.asarray(corpus.documents)
    return connected(np.tile(one, 2), np.concatenate([other, nodes]), int(nodes.max()) + 1)[one]
