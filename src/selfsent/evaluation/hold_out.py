"""The split of a corpus into training, development and test documents, or into pairs without shared texts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.display import counted, listed
from selfsent.errors import DataError, SettingsError
from selfsent.stats.duplicates import connected

Numbers = NDArray[np.int64]

MAX_SENTENCES = 10_000  # scored held-out sentences; further documents are dropped
HELD_SHARE, HELD_MINIMUM = 0.1, 500
"""Share and minimum of documents held out from a corpus of a thousand or more."""
HELD_OF_FEW = 0.2  # share held out from a smaller corpus
HELD_LEAST = 30  # fewer documents would give too narrow bootstrap intervals
WITHOUT_DOCUMENTS = (
    "the corpus has no documents to find a next sentence in: give a document column, or split_sentences if a text"
    " holds several sentences"
)
NO_NEIGHBOURS = (
    "no document has two different sentences: split texts that hold several with split_sentences,"
    " or check the document column"
)
_READ = 1 << 16  # sentences in memory at once while choosing documents


@dataclass(frozen=True)
class HoldOut:
    """The split of a corpus: training, development and test rows.

    `pairs` are split so that no text is in two parts, and scored by search. Texts without documents may have a column
    with a `title` of each, which must find its text. `reason` says why nothing could be
    held out.
    """

    train: np.ndarray
    dev: np.ndarray | None
    test: np.ndarray | None
    pairs: bool = False
    title: str | None = None
    reason: str = ""

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        dev: bool,
        joins: bool = False,
        count: int | None = None,
        pairs: bool = False,
    ) -> HoldOut:
        """Hold out test documents for the label-free score, and development documents if needed.

        Args:
            corpus: sentences, with or without documents.
            dev: whether a development part is needed.
            joins: whether the model is a cross-encoder, without vectors.
            count: documents per part, 0 for none; None for the default (see `split_documents`).
            pairs: whether rows are pairs; pairs that share a text count as one document.

        Raises:
            DataError: too few documents, with `dev` or a count.
            SettingsError: a count out of range, or `dev` without vectors.
        """
        everything = np.arange(len(corpus))
        if dev and count == 0:
            raise SettingsError("hold_out=0 leaves nothing to choose by: give a number, or `dev` with a task")
        if dev and joins:
            raise SettingsError("dev=context scores vectors, and a cross-encoder has none: give a task of pairs")
        if count == 0 or joins:
            return cls(everything, None, None)
        if dev and corpus.documents is None:
            raise DataError(WITHOUT_DOCUMENTS)
        whole = Subset(corpus, everything, pair_groups(corpus)) if pairs else corpus
        title = corpus.title if corpus.documents is None and not pairs else None
        what = "groups of pairs that share no text" if pairs else "texts" if title else "documents"
        try:
            if not (pairs or title) and corpus.documents is None and not count:
                raise DataError(without_documents(corpus))
            train, test = split_documents(whole, count, single=pairs or title is not None, what=what)
        except DataError as error:
            if dev or count:
                raise
            reason = f"no {'search' if pairs else 'label-free'} score: {error}"
            return cls(everything, None, None, reason=reason)
        if not dev:
            return cls(train, None, test, pairs, title)
        try:
            kept, chosen = split_documents(Subset(whole, train), count, seed=1, single=pairs, what=what)
        except DataError as error:
            held = len(np.unique(np.asarray(whole.documents)[test]))
            raise DataError(f"{held} {what} are kept to score by, and of the others: {error}") from None
        return cls(train[kept], train[chosen], test, pairs)

    def summary(self, corpus: Corpus) -> str:
        """The sizes of the training and test parts, in words; requires a test part."""
        held = np.concatenate([rows for rows in (self.dev, self.test) if rows is not None])
        which = corpus.report.counted(len(held))
        if self.pairs:
            which += ", which share no text with the others"
        elif self.title:
            which += f", which {self.title} must find"
        else:
            which = f"{counted(len(np.unique(np.asarray(corpus.documents)[held])), 'document')} of {which}"
        return f"kept aside to score by: {which}; training on {corpus.report.counted(len(self.train))}"

    def thinned(self, count: int | None) -> HoldOut:
        """A copy with at most so many training rows, drawn at random.

        Raises:
            SettingsError: a count below two.
        """
        if count is not None and count < 2:
            raise SettingsError(f"sentences is {count}; it must be at least 2")
        if count is None or count >= len(self.train):
            return self
        return replace(self, train=np.sort(np.random.default_rng(0).permutation(self.train)[:count]))


def without_documents(corpus: Corpus) -> str:
    """Why texts without documents have no score, and the option that gives one."""
    problem = "each text is one sentence, and no column with titles is known"
    if corpus.report.others:
        named = listed([each[:40] for each in corpus.report.others[:8]])
        return f"{problem}: name it with title_column, or one whose rows belong together with document_column ({named})"
    advice = "judge a hundred pairs with selfsent label, and score with selfsent evaluate --pairs"
    return f"{problem}, nor are there other columns: {advice}"


def split_documents(
    corpus: Corpus | Subset, count: int | None = None, seed: int = 0, *, single: bool = False, what: str = "documents"
) -> tuple[Numbers, Numbers]:
    """Hold out whole documents, chosen by a hash of their first sentence.

    The choice is independent of their order, and stable when a corpus is read again or grows. A larger count holds out
    a superset of a smaller one.

    Args:
        corpus: sentences with documents.
        count: documents to hold out. None for a tenth, at least 500, as long as all their sentences are scored; a fifth
            of fewer than a thousand documents.
        seed: of the choice.
        single: allow documents of one sentence, and treat each sentence of a corpus without documents as one.
        what: noun for documents in errors.

    Returns:
        (rows to train on, rows held out), both ascending.

    Raises:
        DataError: no documents, too few, or only documents of one sentence to hold out.
        SettingsError: a count below HELD_LEAST.
    """
    if corpus.documents is None and not single:
        raise DataError(WITHOUT_DOCUMENTS)
    documents = np.arange(len(corpus)) if corpus.documents is None else corpus.documents
    names, first, sizes = np.unique(documents, return_index=True, return_counts=True)
    total, blocks = len(names), np.array_split(first, 1 + len(first) // _READ)
    order = np.argsort(np.concatenate([text_hashes(corpus.texts(block), seed) for block in blocks]), kind="stable")
    if single:  # documents with more than a tenth of the rows are held out last
        order = order[np.argsort(sizes[order] > HELD_SHARE * len(corpus), kind="stable")]
    if count is not None and count < HELD_LEAST:
        raise SettingsError(f"hold_out is {count}; an honest interval needs at least {HELD_LEAST} {what}")
    if count is not None and total - count < 2:
        raise DataError(f"too few {what} to hold {count:,} out: the corpus has {total:,}")
    if count is None and total >= 2 * HELD_MINIMUM:
        count = max(HELD_MINIMUM, min(round(HELD_SHARE * total), _fitting(sizes[order], MAX_SENTENCES)))
    elif count is None and (count := round(HELD_OF_FEW * total)) < HELD_LEAST:
        there = f"the corpus has {total}, and {round(HELD_LEAST / HELD_OF_FEW)} are needed"
        raise DataError(f"too few {what} to hold any out: {there}; hold_out={HELD_LEAST} needs fewer")
    if not single and sizes[order[:count]].max() < 2:
        raise DataError(NO_NEIGHBOURS)
    held = np.isin(documents, names[order[:count]])
    return np.flatnonzero(~held), np.flatnonzero(held)


def limited(corpus: Corpus | Subset, rows: Numbers) -> Numbers:
    """Rows of the first documents, in hash order, up to MAX_SENTENCES rows."""
    if len(rows) <= MAX_SENTENCES:
        return rows
    documents = np.asarray(corpus.documents)[rows]
    _, first, member, size = np.unique(documents, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(text_hashes(corpus.texts(rows[first])), kind="stable")
    return rows[np.isin(member, order[: max(1, _fitting(size[order], MAX_SENTENCES))])]


def by_document(corpus: Corpus, rows: Numbers) -> dict[int, list[str]]:
    """The sentences in these rows, by document in ascending order."""
    found: dict[int, list[str]] = {}
    for document, text in zip(np.asarray(corpus.documents)[rows].tolist(), corpus.texts(rows), strict=True):
        found.setdefault(document, []).append(text)
    return dict(sorted(found.items()))


def _fitting(sizes: Numbers, most: int) -> int:
    """How many of the first documents, of these sizes, have at most `most` sentences in total."""
    return int(np.searchsorted(sizes.cumsum(), most, side="right"))


def text_hashes(texts: list[str], seed: int = 0) -> NDArray[np.uint64]:
    """A hash of each text, (n,): reproducible across machines, and dependent on the seed."""
    key = str(seed).encode()
    digests = b"".join(hashlib.blake2b(t.encode("utf-8", "replace"), digest_size=8, key=key).digest() for t in texts)
    return np.frombuffer(digests, np.uint64)


class Subset:
    """Some rows of a corpus as evaluation takes them, optionally with other `documents`."""

    def __init__(self, corpus: Corpus | Subset, rows: np.ndarray, documents: np.ndarray | None = None) -> None:
        self.corpus, self.rows = corpus, rows
        documents = corpus.documents if documents is None else documents
        self.documents: np.ndarray | None = None if documents is None else np.asarray(documents)[rows]

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, rows: np.ndarray) -> list[str]:
        """The sentences in these rows of the subset."""
        return self.corpus.texts(self.rows[rows])


def pair_groups(corpus: Corpus) -> np.ndarray:
    """The group of each pair, (rows,): connected components of pairs that share a text or document."""
    hashes = [text_hashes(batch) for column in corpus.input_columns[:2] for batch in corpus.batches(column)]
    texts, ids = np.unique(np.concatenate(hashes), return_inverse=True)
    one, other = ids[: len(corpus)], ids[len(corpus) :]
    if corpus.documents is None:
        return connected(one, other, len(texts))[one]
    nodes = len(texts) + np.asarray(corpus.documents)
    return connected(np.tile(one, 2), np.concatenate([other, nodes]), int(nodes.max()) + 1)[one]
