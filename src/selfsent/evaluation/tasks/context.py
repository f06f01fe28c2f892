"""The label-free score of an encoder on unjudged text: a sentence finds the one that follows it in its document.

Near-duplicates of query or answer are excluded, as finding them needs no understanding; ties count against the
answer; documents are resampled for the interval. Candidates are not sampled: the expectation over all samples is
computed exactly, so that scores do not depend on a draw, and corpora of different size are comparable.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.vector_files import inner
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.hold_out import NO_NEIGHBOURS, WITHOUT_DOCUMENTS, Numbers, Subset, limited
from selfsent.evaluation.results import Score, has_read, measure, signature
from selfsent.scorers.lexical import LEXICAL, LexicalScorer
from selfsent.scorers.scorer import Scorer
from selfsent.stats.duplicates import near_duplicates
from selfsent.stats.metrics import mean
from selfsent.stats.resampling import Floats

CONTEXT = "context"
CANDIDATES = 100  # candidates per query, the answer included
CUTOFF = 10  # ranks that count
TIE = 1e-6  # closer cosines are ties, and ties count against the answer, so that constant vectors get no score
BLOCK = 1 << 22  # similarities held at once: 16 MiB of float32


class ContextTask:
    """Each sentence must find the next one of its document, among sentences from elsewhere; the score is MRR@10.

    Args:
        corpus: sentences with documents.
        rows: the sentences to use, in order within documents.

    Raises:
        DataError: the corpus has no documents, or none with two different sentences.
    """

    name = CONTEXT

    def __init__(self, corpus: Corpus | Subset, rows: Numbers) -> None:
        if corpus.documents is None:
            raise DataError(WITHOUT_DOCUMENTS)
        rows = limited(corpus, rows)
        self.texts = corpus.texts(rows)
        self.document = np.unique(corpus.documents[rows], return_inverse=True)[1].astype(np.int64)
        """(n,) document number of each sentence."""
        self.near = near_duplicates(self.texts)
        one, other = self.near.nonzero()
        alike = np.bincount(one[other == one + 1], minlength=len(rows)) > 0
        has_next = np.append(self.document[1:] == self.document[:-1], False)
        self.queries: Numbers = np.flatnonzero(has_next & ~alike)
        """The sentences with an answer, the next one."""
        self._data = fingerprint({"text": self.texts, "document": self.document.tolist()})
        if len(self.queries) < 2:
            raise DataError(NO_NEIGHBOURS)

    def score(self, scorer: Scorer) -> Score:
        """The score of a scorer, with an interval over documents, and the scores of TF-IDF and BM25 as metrics."""
        if isinstance(scorer, LexicalScorer) and scorer.kind in self.lexical:
            return replace(self.lexical[scorer.kind], metrics={})
        return replace(self._score(scorer), metrics={kind: one.score for kind, one in self.lexical.items()})

    @cached_property
    def lexical(self) -> dict[str, Score]:
        """The scores of `tfidf` and `bm25`, with document frequencies of all sentences."""
        return {kind: self._score(LexicalScorer(kind)) for kind in LEXICAL}

    def reciprocal_ranks(self, vectors: Any, texts: Any = None, block: int = BLOCK) -> Floats:
        """The (expected) reciprocal rank of each query's answer, 0 beyond the cutoff.

        Args:
            vectors: (n, d) unit vectors of all sentences as queries; an array or a scipy sparse matrix.
            texts: (n, d) of the same sentences as candidates, if they differ.
            block: maximum number of similarities in memory.
        """
        texts, size, found = vectors if texts is None else texts, max(1, block // len(self.texts)), []
        for start in range(0, len(self.queries), size):
            queries = self.queries[start : start + size]
            line, answer = np.arange(len(queries)), queries + 1
            similarity = inner(vectors[queries], texts)
            excluded = (self.near[queries] + self.near[answer]).toarray().astype(bool)
            excluded[line, answer] = True
            as_near = similarity >= similarity[line, answer][:, None] - TIE
            found.append(np.stack([(as_near & ~excluded).sum(1), (~excluded).sum(1)]))
        beaten, others = np.concatenate(found, axis=1)
        return expected_reciprocal_rank(beaten, others, CANDIDATES - 1, CUTOFF)

    def _score(self, scorer: Scorer) -> Score:
        ranks = self.reciprocal_ranks(*scorer.query_document_vectors(self.texts, self.texts))
        groups = self.document[self.queries]
        size = {"c": CANDIDATES, "s": len(self.texts), "n": len(ranks), "docs": len(np.unique(groups))}
        about = {"data": self._data, "pool": scorer.pooling, "v": 1}
        label = signature(CONTEXT, f"mrr@{CUTOFF}", scorer.measure, "next", **size, **about)
        read = int(scorer.texts_read.of(self.texts).sum())
        details = has_read(read, len(self.texts))
        return measure(CONTEXT, mean(ranks), len(ranks), signature=label, groups=groups, details=details)


def expected_reciprocal_rank(beaten_by: Numbers, others: Numbers, drawn: int, cutoff: int) -> Floats:
    """The mean over all samples of candidates of 1/rank, 0 beyond the cutoff.

    Args:
        beaten_by: (n,) candidates as near as the answer.
        others: (n,) candidates in all, the answer not among them.
        drawn: candidates in a sample, without replacement.
        cutoff: last rank that counts.
    """
    before = np.arange(cutoff)
    drawn_of, worse = np.minimum(drawn, others)[:, None], (others - beaten_by)[:, None]
    # Hypergeometric distribution by log gamma: scipy.stats.hypergeom is a hundred times slower.
    ways = _log_choices(beaten_by[:, None], before) + _log_choices(worse, drawn_of - before)
    chance = np.exp(ways - _log_choices(others[:, None], drawn_of))
    return np.asarray(chance @ (1 / (1 + before)), np.float64)


def _log_choices(among: Numbers, chosen: Numbers) -> Floats:
    """The log of binomial coefficients, broadcast; -inf for none."""
    from scipy.special import gammaln

    possible = (chosen >= 0) & (chosen <= among)
    few = np.where(possible, chosen, 0)
    return np.where(possible, gammaln(among + 1) - gammaln(few + 1) - gammaln(among - few + 1), -np.inf)
