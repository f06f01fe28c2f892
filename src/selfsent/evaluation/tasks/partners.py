"""Find the partner: each query has one right answer among texts of other places, and the score is MRR@10.

What is shared by the label-free scores: near-duplicates of query or answer are no candidates, because finding them
needs no understanding; ties count against the answer; documents are resampled for the interval. Sampling candidates is
not simulated: the expectation over all samples is computed exactly, so that scores do not hang on a draw and corpora of
different size stay comparable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import inner, unit
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.hybrid import Hybrid
from selfsent.evaluation.lexical import LEXICAL, LexicalEncoder
from selfsent.evaluation.results import Score, measure, signature
from selfsent.evaluation.stats.duplicates import near_duplicates
from selfsent.evaluation.stats.metrics import mean
from selfsent.evaluation.stats.resampling import Floats

Rows = NDArray[np.int64]
Passage = Sequence[str]
"""Sentences whose mean vector stands for them."""

CANDIDATES = 100
"""Texts a query is looked for among, the answer included; None for all of them."""
CUTOFF = 10
TIE = 1e-6
"""Cosines nearer than this are ties, and ties count against the answer: constant vectors must not score."""
BLOCK = 1 << 22
"""Similarities held at once: 16 MiB of float32."""
NONE = -1
"""The answer of what is no query."""
LEAST = 30
"""Queries below which a score says nothing."""


class BesideWords(ABC):
    """A score that TF-IDF and BM25 can have, too, and that is told with theirs beside it."""

    def score(self, encoder: Encoder) -> Score:
        """The score of an encoder, with the interval over resampled documents, and TF-IDF's and BM25's beside it."""
        if isinstance(encoder, LexicalEncoder) and encoder.kind in self.lexical:
            return replace(self.lexical[encoder.kind], metrics={})
        return replace(self._score(encoder), metrics={kind: one.score for kind, one in self.lexical.items()})

    @cached_property
    def lexical(self) -> dict[str, Score]:
        """The scores of `tfidf` and `bm25`, their document frequencies taken from the texts to be found."""
        return {kind: self._score(LexicalEncoder(kind)) for kind in LEXICAL}

    @abstractmethod
    def _score(self, encoder: Encoder) -> Score: ...


class PartnerTask(BesideWords):
    """Queries and candidates, fixed once, on which any number of encoders can be scored and paired.

    Args:
        name: of the score.
        asked: (q,) texts that may be queries, each of one sentence or several.
        texts: (n,) candidates.
        answers: (q,) the right candidate of each, NONE where there is none.
        documents: (q,) where each is from; whole documents are resampled.
        candidates: texts a query's answer is looked for among; None for all.
        cutoff: ranks beyond it count as zero.
        near: which candidates are near-duplicates of a query, (q, n), and of each other, (n, n): sparse booleans. Found
            out where they are not given.

    Raises:
        DataError: fewer than two have an answer that is no near-duplicate of theirs.
    """

    version = 1
    kind: tuple[str, ...] = ()
    """What else the signature says."""
    too_few = "too few texts have a partner that differs from them"

    def __init__(
        self,
        name: str,
        asked: Sequence[Passage],
        texts: Sequence[Passage],
        answers: Rows,
        documents: Rows,
        *,
        candidates: int | None = CANDIDATES,
        cutoff: int = CUTOFF,
        near: tuple[Any, Any] | None = None,
    ) -> None:
        self.name, self.asked, self.goals, self.answers = name, asked, texts, answers
        self.document, self.candidates, self.cutoff = documents, candidates, cutoff
        self.near_asked, self.near = near or _near(asked, texts)
        self.queries = self._queries()
        if len(self.queries) < 2:
            raise DataError(self.too_few)

    def reciprocal_ranks(self, vectors: Any, texts: Any = None) -> Floats:
        """The (expected) reciprocal rank of each query's answer, 0 beyond the cutoff.

        Args:
            vectors: (q, d) of unit length, of all that may be queries; an array or a scipy sparse matrix.
            texts: (n, d) the same of the candidates, where they are others.
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
        excluded = self.near_asked[queries].toarray().astype(bool)  # the query itself among them
        relevant = self._relevant(queries) & ~excluded
        answer = np.where(relevant, similarity, -np.inf).argmax(1)
        excluded |= self.near[answer].toarray().astype(bool) | relevant
        as_near = similarity >= similarity[line, answer][:, None] - TIE
        return (as_near & ~excluded).sum(1), (~excluded).sum(1)

    def _relevant(self, queries: Rows) -> NDArray[np.bool_]:
        """Which candidates are answers, (queries, n)."""
        found: NDArray[np.bool_] = np.arange(len(self.goals))[None, :] == self.answers[queries][:, None]
        return found

    def _queries(self) -> Rows:
        queries = []
        for block in self._blocks(np.arange(len(self.asked))):
            answers = self._relevant(block) & ~self.near_asked[block].toarray().astype(bool)
            queries.append(block[answers.any(1)])
        return np.concatenate(queries) if queries else np.zeros(0, np.int64)

    def _blocks(self, rows: Rows | None = None) -> Iterator[Rows]:
        chosen = self.queries if rows is None else rows
        size = max(1, BLOCK // max(1, len(self.goals)))
        return (chosen[start : start + size] for start in range(0, len(chosen), size))

    def _score(self, encoder: Encoder) -> Score:
        ranks = self.reciprocal_ranks(*passage_sides(encoder, self.asked, self.goals))
        groups = self.document[self.queries]
        size = {"c": self.candidates or "all", "s": len(self.goals), "n": len(ranks), "docs": len(np.unique(groups))}
        label = signature(
            self.name,
            f"mrr@{self.cutoff}",
            encoder.measure,
            *self.kind,
            **size,
            data=self._data,
            pool=encoder.pooling,
            v=self.version,
        )
        return measure(self.name, mean(ranks), len(ranks), signature=label, groups=groups)

    @cached_property
    def _data(self) -> str:
        return fingerprint({"asked": [list(each) for each in self.asked], "text": [list(each) for each in self.goals]})


def passage_sides(encoder: Encoder, queries: Sequence[Passage], texts: Sequence[Passage]) -> tuple[Any, Any]:
    """Rows for queries and for texts, (q, d) and (n, d), whose inner products say how near they are.

    The vector of several sentences is the mean of theirs, each of unit length, so that a sentence that is in a task as
    itself is not encoded again as part of a text, and nothing is cut off. Words are counted over all sentences.
    """
    if isinstance(encoder, LexicalEncoder | Hybrid):
        joined = [" ".join(each) for each in queries], [" ".join(each) for each in texts]
        if isinstance(encoder, LexicalEncoder):
            return encoder.sides(*joined)
        return encoder.beside(passage_sides(encoder.encoder, queries, texts), *joined)
    sentences = list(dict.fromkeys(sentence for side in (queries, texts) for each in side for sentence in each))
    place = {sentence: number for number, sentence in enumerate(sentences)}
    vectors = encoder.sides(sentences, sentences)[0]
    if all(len(each) == 1 for side in (queries, texts) for each in side):
        return tuple(vectors[[place[each[0]] for each in side]] for side in (queries, texts))
    means = [np.stack([vectors[[place[s] for s in each]].mean(0) for each in side]) for side in (queries, texts)]
    return unit(means[0]), unit(means[1])


def expected_reciprocal_rank(beaten_by: Rows, others: Rows, drawn: int, cutoff: int) -> Floats:
    """The mean over all samples of candidates of 1/rank, 0 beyond the cutoff.

    Args:
        beaten_by: (n,) candidates as near as the answer.
        others: (n,) candidates in all, the answer not among them.
        drawn: candidates in a sample, without replacement.
        cutoff: ranks that count.
    """
    before = np.arange(cutoff)
    drawn_of, worse = np.minimum(drawn, others)[:, None], (others - beaten_by)[:, None]
    # Hypergeometric, by log gamma: scipy.stats.hypergeom is a hundred times slower.
    log_chance = (
        log_choices(beaten_by[:, None], before)
        + log_choices(worse, drawn_of - before)
        - log_choices(others[:, None], drawn_of)
    )
    return np.asarray(np.exp(log_chance) @ (1 / (1 + before)), np.float64)


def log_choices(among: Rows, chosen: Rows) -> Floats:
    """The logarithm of the ways to choose so many among so many, broadcast; -inf where there is none."""
    from scipy.special import gammaln

    possible = (chosen >= 0) & (chosen <= among)
    few = np.where(possible, chosen, 0)
    return np.where(possible, gammaln(among + 1) - gammaln(few + 1) - gammaln(among - few + 1), -np.inf)


def _near(asked: Sequence[Passage], texts: Sequence[Passage]) -> tuple[Any, Any]:
    both = near_duplicates([" ".join(each) for side in (asked, texts) for each in side])
    count = len(asked)
    return both[:count, count:], both[count:, count:]
