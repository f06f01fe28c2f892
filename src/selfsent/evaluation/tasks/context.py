"""The label-free score: does a sentence's neighbour in its document stand out from other sentences?

Each query sentence must find the sentence that follows it among sentences of other places (MRR@10). Queries,
candidates and answers come from documents kept out of training. How partners are found is in `partners.py`.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.results import Score
from selfsent.evaluation.stats.duplicates import near_duplicates
from selfsent.evaluation.tasks.partners import CANDIDATES, CUTOFF, NONE, PartnerTask, Rows

Relation = Literal["next", "same"]

SCORE_NAME = "context"
RELATION: Relation = "next"
MAX_SENTENCES = 10_000
"""Held-out sentences that are scored; documents beyond it are left out."""
HELD_SHARE = 0.1
HELD_MINIMUM = 500
"""Documents held out of a corpus that has twice as many, or more."""
HELD_OF_FEW = 0.2
"""The share that is held out of a smaller corpus."""
HELD_LEAST = 30
"""Documents below which an interval by resampling them would be too narrow to be honest."""
WITHOUT_DOCUMENTS = (
    "the corpus has no documents to find a next sentence in: give a document column, or --split-sentences if a text"
    " holds several sentences"
)
NO_NEIGHBOURS = (
    "no document has two different sentences: split texts that hold several with --split-sentences,"
    " or check the document column"
)

TOGETHER = 1 << 16
"""Sentences whose text is in memory at once while documents are chosen."""


class Documented(Protocol):
    """What is asked of a corpus."""

    documents: Rows | None
    fingerprint: str

    def __len__(self) -> int:
        """Number of sentences."""

    def texts(self, rows: Rows) -> list[str]:
        """The sentences in these rows."""


def split_documents(
    corpus: Documented, count: int | None = None, seed: int = 0, *, single: bool = False, what: str = "documents"
) -> tuple[Rows, Rows]:
    """Keep whole documents out of training, chosen by a hash of their first sentence.

    The choice hangs on the documents alone, not on their order, so it stays put when a corpus is read again or grows;
    of two counts the larger one's documents hold the smaller one's.

    Args:
        corpus: sentences with documents.
        count: documents to hold out. None for a tenth of them, 500 at least, as long as all their sentences are scored;
            of fewer than a thousand documents a fifth.
        seed: another seed, another choice.
        single: documents may be of one sentence, and of a corpus without documents each sentence counts as one.
        what: how documents are called in complaints.

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
    parts = np.array_split(first, 1 + len(first) // TOGETHER)
    order = np.argsort(np.concatenate([text_hashes(corpus.texts(part), seed) for part in parts]), kind="stable")
    if single:  # what holds more than a tenth of the rows is held out last
        order = order[np.argsort(sizes[order] > HELD_SHARE * len(corpus), kind="stable")]
    if count is None:
        count = _usual_count(sizes[order], what)
    elif count < HELD_LEAST:
        raise SettingsError(f"--hold-out is {count}; an honest interval needs {HELD_LEAST} {what} at least")
    elif len(names) - count < 2:
        raise DataError(f"too few {what} to hold {count:,} out: the corpus has {len(names):,}")
    if not single and sizes[order[:count]].max() < 2:
        raise DataError(NO_NEIGHBOURS)
    held = np.isin(documents, names[order[:count]])
    return np.flatnonzero(~held), np.flatnonzero(held)


def _usual_count(sizes: Rows, what: str) -> int:
    """How many documents are held out where nobody says it, from their sizes, in the order they are held out in."""
    total = len(sizes)
    if total >= 2 * HELD_MINIMUM:
        return max(HELD_MINIMUM, min(round(HELD_SHARE * total), _fitting(sizes, MAX_SENTENCES)))
    if (count := round(HELD_OF_FEW * total)) < HELD_LEAST:
        needed = round(HELD_LEAST / HELD_OF_FEW)
        raise DataError(
            f"too few {what} to hold any out: the corpus has {total}, and {needed} are needed;"
            f" --hold-out {HELD_LEAST} needs fewer"
        )
    return count


class ContextTask(PartnerTask):
    """Each sentence must find the next one of its document, among sentences of other places.

    Args:
        corpus: sentences with documents.
        rows: the sentences to use, those of a document in order; by default the held-out part of `split_documents`.
        relation: `next`: the answer is the following sentence; `same`: any other sentence of the document.
        candidates: sentences a query's answer is looked for among; None for all.
        cutoff: ranks beyond it count as zero.
        seed: chooses documents when there are more than MAX_SENTENCES sentences.

    Raises:
        DataError: the corpus has no documents, too few of them, or none with two different sentences.
    """

    too_few = NO_NEIGHBOURS

    def __init__(
        self,
        corpus: Documented,
        rows: Rows | None = None,
        *,
        relation: Relation = RELATION,
        candidates: int | None = CANDIDATES,
        cutoff: int = CUTOFF,
        seed: int = 0,
    ) -> None:
        if rows is None:
            rows = split_documents(corpus, seed=seed)[1]
        if corpus.documents is None:
            raise DataError(WITHOUT_DOCUMENTS)
        rows = limited(corpus, corpus.documents, rows, seed)
        self.texts = corpus.texts(rows)
        document: Rows = np.unique(corpus.documents[rows], return_inverse=True)[1].astype(np.int64)
        self.relation, self.kind = relation, (relation,)
        near, place = near_duplicates(self.texts), np.arange(len(rows))
        has_next = np.append(document[1:] == document[:-1], False)
        alone = [(text,) for text in self.texts]
        super().__init__(
            SCORE_NAME,
            alone,
            alone,
            np.where(has_next, place + 1, NONE),
            document,
            candidates=candidates,
            cutoff=cutoff,
            near=(near, near),
        )

    def _relevant(self, queries: Rows) -> NDArray[np.bool_]:
        if self.relation == "next":
            return super()._relevant(queries)
        relevant: NDArray[np.bool_] = self.document[queries][:, None] == self.document[None, :]
        relevant[np.arange(len(queries)), queries] = False
        return relevant

    @cached_property
    def _data(self) -> str:
        return fingerprint({"text": self.texts, "document": self.document.tolist()})


def score_context(encoder: Encoder, corpus: Documented, rows: Rows | None = None, hold_out: int | None = None) -> Score:
    """The label-free score of an encoder on the held-out documents of a corpus (see `ContextTask`).

    Args:
        encoder: the model.
        corpus: sentences with documents.
        rows: the sentences to use; by default those that `split_documents` holds out.
        hold_out: how many documents it holds out.
    """
    return ContextTask(corpus, split_documents(corpus, hold_out)[1] if rows is None else rows).score(encoder)


def limited(corpus: Documented, documents: Rows, rows: Rows, seed: int = 0, most: int | None = None) -> Rows:
    """Rows of so many documents, in the order of their hash, that MAX_SENTENCES, or `most`, is not exceeded."""
    most = MAX_SENTENCES if most is None else most
    if len(rows) <= most:
        return rows
    names, first, member, size = np.unique(documents[rows], return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(text_hashes(corpus.texts(rows[first]), seed), kind="stable")
    chosen = np.zeros(len(names), bool)
    chosen[order[: max(1, _fitting(size[order], most))]] = True
    return rows[chosen[member]]


def _fitting(sizes: Rows, most: int) -> int:
    """How many of the first documents, of these sizes, have no more sentences than `most`."""
    return int(np.searchsorted(sizes.cumsum(), most, side="right"))


def text_hashes(texts: list[str], seed: int = 0) -> NDArray[np.uint64]:
    """A number for each text, (n,): the same on every machine, another one for another seed."""
    key = str(seed).encode()
    digests = b"".join(hashlib.blake2b(t.encode("utf-8", "replace"), digest_size=8, key=key).digest() for t in texts)
    return np.frombuffer(digests, np.uint64)
