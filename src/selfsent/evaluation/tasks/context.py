"""The label-free score: does a sentence's neighbour in its document stand out from other sentences?

Each query sentence must find the sentence that follows it among sentences of other places (MRR@10). Queries,
candidates and answers come from documents kept out of training; near-duplicates of query or answer are no candidates,
because finding them needs no understanding. Sampling candidates is not simulated: the expectation over all samples is
computed exactly, so that scores do not hang on a draw and corpora of different size stay comparable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.lexical import LEXICAL, LexicalEncoder
from selfsent.evaluation.results import Score, measure, signature
from selfsent.evaluation.stats.duplicates import near_duplicates
from selfsent.evaluation.stats.metrics import mean
from selfsent.evaluation.stats.resampling import Floats
from selfsent.evaluation.vectors import inner

Rows = NDArray[np.int64]
Relation = Literal["next", "same"]

SCORE_NAME = "context"
VERSION = 1
RELATION: Relation = "next"
CANDIDATES = 100
"""Sentences a query is looked for among, the answer included; None for all of them."""
CUTOFF = 10
MAX_SENTENCES = 10_000
"""Held-out sentences that are scored; documents beyond it are left out."""
HELD_SHARE = 0.1
HELD_MINIMUM = 500
"""Documents held out of a corpus that has twice as many, or more."""
HELD_OF_FEW = 0.2
"""The share that is held out of a smaller corpus."""
HELD_LEAST = 30
"""Documents below which an interval by resampling them would be too narrow to be honest."""
TIE = 1e-6
"""Cosines nearer than this are ties, and ties count against the answer: constant vectors must not score."""
WITHOUT_DOCUMENTS = (
    "the corpus has no documents to find a next sentence in: give a document column, or --split-sentences if a text"
    " holds several sentences"
)
NO_NEIGHBOURS = (
    "no document has two different sentences: split texts that hold several with --split-sentences,"
    " or check the document column"
)
BLOCK = 1 << 22
"""Similarities held at once: 16 MiB of float32."""


class Documented(Protocol):
    """What is asked of a corpus."""

    documents: Rows | None
    fingerprint: str

    def __len__(self) -> int:
        """Number of sentences."""

    def texts(self, rows: Rows) -> list[str]:
        """The sentences in these rows."""


def split_documents(corpus: Documented, count: int | None = None, seed: int = 0) -> tuple[Rows, Rows]:
    """Keep whole documents out of training, chosen by a hash of their first sentence.

    The choice hangs on the documents alone, not on their order, so it stays put when a corpus is read again or grows;
    of two counts the larger one's documents hold the smaller one's.

    Args:
        corpus: sentences with documents.
        count: documents to hold out. None for a tenth of them, 500 at least, as long as all their sentences are scored;
            of fewer than a thousand documents a fifth.
        seed: another seed, another choice.

    Returns:
        (rows to train on, rows held out), both ascending.

    Raises:
        DataError: the corpus has no documents, too few of them, or all that would be held out are of one sentence.
        SettingsError: the count is below HELD_LEAST.
    """
    if corpus.documents is None:
        raise DataError(WITHOUT_DOCUMENTS)
    names, first, sizes = np.unique(corpus.documents, return_index=True, return_counts=True)
    order = np.argsort(_hashes(corpus.texts(first), seed), kind="stable")
    if count is None:
        count = _usual_count(sizes[order])
    elif count < HELD_LEAST:
        raise SettingsError(f"--hold-out is {count}; an honest interval needs {HELD_LEAST} documents at least")
    elif len(names) - count < 2:
        raise DataError(f"too few documents to hold {count:,} out: the corpus has {len(names):,}")
    if sizes[order[:count]].max() < 2:
        raise DataError(NO_NEIGHBOURS)
    held = np.isin(corpus.documents, names[order[:count]])
    return np.flatnonzero(~held), np.flatnonzero(held)


def _usual_count(sizes: Rows) -> int:
    """How many documents are held out where nobody says it, from their sizes, in the order they are held out in."""
    total = len(sizes)
    if total >= 2 * HELD_MINIMUM:
        return max(HELD_MINIMUM, min(round(HELD_SHARE * total), _fitting(sizes)))
    if (count := round(HELD_OF_FEW * total)) < HELD_LEAST:
        needed = round(HELD_LEAST / HELD_OF_FEW)
        raise DataError(
            f"too few documents to hold any out: the corpus has {total}, and {needed} are needed;"
            f" --hold-out {HELD_LEAST} needs fewer"
        )
    return count


class ContextTask:
    """Queries and candidates, fixed once, on which any number of encoders can be scored and paired.

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
        rows = _limited(corpus, corpus.documents, rows, seed)
        self.texts = corpus.texts(rows)
        self.document: Rows = np.unique(corpus.documents[rows], return_inverse=True)[1].astype(np.int64)
        self.relation, self.candidates, self.cutoff = relation, candidates, cutoff
        self.near = near_duplicates(self.texts)
        self.queries = self._queries()
        if len(self.queries) < 2:
            raise DataError(NO_NEIGHBOURS)

    def score(self, encoder: Encoder) -> Score:
        """The score of an encoder, with the interval over resampled documents, and TF-IDF's and BM25's beside it."""
        if isinstance(encoder, LexicalEncoder):
            return replace(self.lexical[encoder.kind], metrics={})
        return replace(self._score(encoder), metrics={kind: one.score for kind, one in self.lexical.items()})

    @cached_property
    def lexical(self) -> dict[str, Score]:
        """The scores of `tfidf` and `bm25`, their document frequencies taken from the candidates."""
        return {kind: self._score(LexicalEncoder(kind)) for kind in LEXICAL}

    def reciprocal_ranks(self, vectors: Any, texts: Any = None) -> Floats:
        """The (expected) reciprocal rank of each query's answer, 0 beyond the cutoff.

        Args:
            vectors: (sentences, d) of unit length, an array or a scipy sparse matrix.
            texts: the same of the candidates, where they differ from those of the queries.
        """
        goals = vectors if texts is None else texts
        found = [self._rank_block(vectors, goals, block) for block in self._blocks()]
        beaten, others = (np.concatenate(part) for part in zip(*found, strict=True))
        if self.candidates is None:
            return np.where(beaten < self.cutoff, 1 / (1 + beaten), 0.0)
        return expected_reciprocal_rank(beaten, others, self.candidates - 1, self.cutoff)

    def _rank_block(self, vectors: Any, goals: Any, queries: Rows) -> tuple[Rows, Rows]:
        """How many candidates are as near as the answer, and how many there are; each (queries,)."""
        similarity = inner(vectors[queries], goals)
        line = np.arange(len(queries))
        excluded = self.near[queries].toarray().astype(bool)  # the query itself among them
        relevant = self._relevant(queries) & ~excluded
        answer = np.where(relevant, similarity, -np.inf).argmax(1)
        excluded |= self.near[answer].toarray().astype(bool) | relevant
        as_near = similarity >= similarity[line, answer][:, None] - TIE
        return (as_near & ~excluded).sum(1), (~excluded).sum(1)

    def _relevant(self, queries: Rows) -> NDArray[np.bool_]:
        relevant: NDArray[np.bool_] = self.document[queries][:, None] == self.document[None, :]
        relevant[np.arange(len(queries)), queries] = False
        if self.relation == "next":
            relevant &= np.arange(len(self.texts))[None, :] == queries[:, None] + 1
        return relevant

    def _queries(self) -> Rows:
        everything = np.arange(len(self.texts))
        queries = []
        for block in self._blocks(everything):
            answers = self._relevant(block) & ~self.near[block].toarray().astype(bool)
            queries.append(block[answers.any(1)])
        return np.concatenate(queries)

    def _blocks(self, rows: Rows | None = None) -> Iterator[Rows]:
        chosen = self.queries if rows is None else rows
        size = max(1, BLOCK // max(1, len(self.texts)))
        return (chosen[start : start + size] for start in range(0, len(chosen), size))

    def _score(self, encoder: Encoder) -> Score:
        ranks = self.reciprocal_ranks(*encoder.sides(self.texts, self.texts))
        groups = self.document[self.queries]
        size = {"c": self.candidates or "all", "s": len(self.texts), "n": len(ranks), "docs": len(np.unique(groups))}
        label = signature(
            SCORE_NAME,
            f"mrr@{self.cutoff}",
            encoder.measure,
            self.relation,
            **size,
            data=fingerprint({"text": self.texts, "document": self.document.tolist()}),
            pool=encoder.pooling,
            v=VERSION,
        )
        return measure(SCORE_NAME, mean(ranks), len(ranks), signature=label, groups=groups)


def expected_reciprocal_rank(beaten_by: Rows, others: Rows, drawn: int, cutoff: int) -> Floats:
    """The mean over all samples of candidates of 1/rank, 0 beyond the cutoff.

    Args:
        beaten_by: (n,) candidates as near as the answer.
        others: (n,) candidates in all, the answer not among them.
        drawn: candidates in a sample, without replacement.
        cutoff: ranks that count.
    """
    from scipy.stats import hypergeom

    before = np.arange(cutoff)
    chance = hypergeom.pmf(before[None, :], others[:, None], beaten_by[:, None], np.minimum(drawn, others)[:, None])
    return np.asarray(chance @ (1 / (1 + before)), np.float64)


def score_context(encoder: Encoder, corpus: Documented, rows: Rows | None = None, hold_out: int | None = None) -> Score:
    """The label-free score of an encoder on the held-out documents of a corpus (see `ContextTask`).

    Args:
        encoder: the model.
        corpus: sentences with documents.
        rows: the sentences to use; by default those that `split_documents` holds out.
        hold_out: how many documents it holds out.
    """
    return ContextTask(corpus, split_documents(corpus, hold_out)[1] if rows is None else rows).score(encoder)


def _limited(corpus: Documented, documents: Rows, rows: Rows, seed: int) -> Rows:
    """Rows of so many documents, in the order of their hash, that MAX_SENTENCES is not exceeded."""
    if len(rows) <= MAX_SENTENCES:
        return rows
    names, first, member, size = np.unique(documents[rows], return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(_hashes(corpus.texts(rows[first]), seed), kind="stable")
    chosen = np.zeros(len(names), bool)
    chosen[order[: max(1, _fitting(size[order]))]] = True
    return rows[chosen[member]]


def _fitting(sizes: Rows) -> int:
    """How many of the first documents, of these sizes, have no more than MAX_SENTENCES."""
    return int(np.searchsorted(sizes.cumsum(), MAX_SENTENCES, side="right"))


def _hashes(texts: list[str], seed: int) -> NDArray[np.uint64]:
    key = str(seed).encode()
    digests = b"".join(hashlib.blake2b(t.encode("utf-8", "replace"), digest_size=8, key=key).digest() for t in texts)
    return np.frombuffer(digests, np.uint64)
