"""Label-free metrics: scores of an encoder on unjudged text.

* `context`: a sentence finds the sentence that follows it in its document.
* `title`, `halves`: the first sentence of a document finds the rest, its first half the second.
* `document`: the nearest sentences come from the same document.
* `robust`, `crops`: a damaged sentence finds itself, the first half of its words the second.

Near-duplicates of query or answer are excluded, as finding them needs no understanding; ties count against the
answer; documents are resampled for the interval. Candidates are not sampled: the expectation over all samples is
computed exactly, so that scores do not depend on a draw, and corpora of different size are comparable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.vector_files import inner, unit
from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import fingerprint
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.hold_out import NO_NEIGHBOURS, WITHOUT_DOCUMENTS, Numbers, Subset, limited
from selfsent.evaluation.lexical import LEXICAL, Hybrid, LexicalEncoder
from selfsent.evaluation.results import Score, measure, signature
from selfsent.evaluation.stats.duplicates import near_duplicates
from selfsent.evaluation.stats.metrics import mean
from selfsent.evaluation.stats.resampling import Floats

Passage = Sequence[str]  # sentences, represented by their mean vector

CONTEXT = "context"
CANDIDATES = 100  # candidates per query, the answer included; None for all
CUTOFF = 10  # ranks that count; also the nearest sentences in `document`
TIE = 1e-6  # closer cosines are ties, and ties count against the answer, so that constant vectors get no score
BLOCK = 1 << 22  # similarities held at once: 16 MiB of float32
NONE = -1  # no answer: not a query
LEAST = 30  # minimum number of queries


class LabelFreeTask(ABC):
    """A label-free score, shown with those of TF-IDF and BM25.

    Args:
        name: of the score.
        documents: source of each query; whole documents are resampled.
        queries: those with an answer, as indices of `documents`.
        texts: number of texts searched.
        content: for the signature's fingerprint.
    """

    def __init__(
        self, name: str, documents: Numbers, queries: Numbers, texts: int, content: Mapping[str, Sequence[Any]]
    ) -> None:
        self.name, self.document, self.queries, self.size = name, documents, queries, texts
        self._data = fingerprint(content)

    def score(self, encoder: Encoder) -> Score:
        """The score of an encoder, with an interval over documents, and those of TF-IDF and BM25 as metrics."""
        if isinstance(encoder, LexicalEncoder) and encoder.kind in self.lexical:
            return replace(self.lexical[encoder.kind], metrics={})
        return replace(self._score(encoder), metrics={kind: one.score for kind, one in self.lexical.items()})

    @cached_property
    def lexical(self) -> dict[str, Score]:
        """The scores of `tfidf` and `bm25`, with document frequencies of the texts to find."""
        return {kind: self._score(LexicalEncoder(kind)) for kind in LEXICAL}

    @abstractmethod
    def _score(self, encoder: Encoder) -> Score: ...

    def _measured(self, values: Floats, encoder: Encoder, metric: str, *relation: str, **size: Any) -> Score:
        groups = self.document[self.queries]
        size |= {"s": self.size, "n": len(values), "docs": len(np.unique(groups))}
        size |= {"data": self._data, "pool": encoder.pooling, "v": 1}
        label = signature(self.name, metric, encoder.measure, *relation, **size)
        return measure(self.name, mean(values), len(values), signature=label, groups=groups)


class PartnerTask(LabelFreeTask):
    """Each query has one right answer among texts from elsewhere; the score is MRR@10.

    Args:
        name: of the score.
        sources: (q,) possible queries, of one or several sentences each.
        targets: (n,) candidates.
        answers: (q,) the right candidate of each, or NONE.
        documents: (q,) source of each; whole documents are resampled.
        candidates: number of candidates per query, the answer included; None for all.
        near: near-duplicates between queries and candidates, (q, n), and among candidates, (n, n), as sparse booleans;
            computed by default.
        relation: of answer to query, for the signature.
        content: for the signature's fingerprint, instead of sources and targets.

    Raises:
        DataError: fewer than two have an answer that is no near-duplicate.
    """

    def __init__(
        self,
        name: str,
        sources: Sequence[Passage],
        targets: Sequence[Passage],
        answers: Numbers,
        documents: Numbers,
        *,
        candidates: int | None = CANDIDATES,
        near: tuple[Any, Any] | None = None,
        relation: tuple[str, ...] = (),
        content: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self.sources, self.targets, self.answers, self.candidates = sources, targets, answers, candidates
        self.relation, count = relation, len(sources)
        if near is None:
            both = near_duplicates([" ".join(each) for side in (sources, targets) for each in side])
            near = both[:count, count:], both[count:, count:]
        self.near_sources, self.near = near
        row, column = self.near_sources.nonzero()
        alike = np.bincount(row[column == answers[row]], minlength=count) > 0
        content = content or {"asked": list(map(list, sources)), "text": list(map(list, targets))}
        super().__init__(name, documents, np.flatnonzero((answers != NONE) & ~alike), len(targets), content)
        if len(self.queries) < 2:
            raise DataError(NO_NEIGHBOURS if name == CONTEXT else "too few texts have a partner that differs from them")

    def reciprocal_ranks(self, vectors: Any, texts: Any = None) -> Floats:
        """The (expected) reciprocal rank of each query's answer, 0 beyond the cutoff.

        Args:
            vectors: (q, d) unit vectors of all possible queries; an array or a scipy sparse matrix.
            texts: (n, d) of the candidates, if they are other texts.
        """
        texts, size, found = vectors if texts is None else texts, max(1, BLOCK // max(1, self.size)), []
        for start in range(0, len(self.queries), size):
            block = self.queries[start : start + size]
            line, answer = np.arange(len(block)), self.answers[block]
            similarity = inner(vectors[block], texts)
            excluded = (self.near_sources[block] + self.near[answer]).toarray().astype(bool)
            excluded[line, answer] = True
            as_near = similarity >= similarity[line, answer][:, None] - TIE
            found.append(np.stack([(as_near & ~excluded).sum(1), (~excluded).sum(1)]))
        beaten, others = np.concatenate(found, axis=1)
        if self.candidates is None:
            return np.where(beaten < CUTOFF, 1 / (1 + beaten), 0.0)
        return expected_reciprocal_rank(beaten, others, self.candidates - 1, CUTOFF)

    def _score(self, encoder: Encoder) -> Score:
        ranks = self.reciprocal_ranks(*passage_sides(encoder, self.sources, self.targets))
        return self._measured(ranks, encoder, f"mrr@{CUTOFF}", *self.relation, c=self.candidates or "all")


def passage_sides(encoder: Encoder, queries: Sequence[Passage], texts: Sequence[Passage]) -> tuple[Any, Any]:
    """Rows for queries and texts, (q, d) and (n, d), with inner products as similarities.

    The vector of several sentences is the mean of their unit vectors, so that none is encoded twice, or truncated.
    Words are counted over all sentences.
    """
    if isinstance(encoder, LexicalEncoder | Hybrid):
        joined = [" ".join(each) for each in queries], [" ".join(each) for each in texts]
        if isinstance(encoder, LexicalEncoder):
            return encoder.sides(*joined)
        return encoder.sides_from(passage_sides(encoder.encoder, queries, texts), *joined)
    sentences = list(dict.fromkeys(sentence for side in (queries, texts) for each in side for sentence in each))
    index = {sentence: number for number, sentence in enumerate(sentences)}
    vectors = encoder.sides(sentences, sentences)[0]
    if all(len(each) == 1 for side in (queries, texts) for each in side):
        return tuple(vectors[[index[each[0]] for each in side]] for side in (queries, texts))
    means = [np.stack([vectors[[index[s] for s in each]].mean(0) for each in side]) for side in (queries, texts)]
    return unit(means[0]), unit(means[1])


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
    log_chance = (
        _log_choices(beaten_by[:, None], before)
        + _log_choices(worse, drawn_of - before)
        - _log_choices(others[:, None], drawn_of)
    )
    return np.asarray(np.exp(log_chance) @ (1 / (1 + before)), np.float64)


def _log_choices(among: Numbers, chosen: Numbers) -> Floats:
    """The log of binomial coefficients, broadcast; -inf for none."""
    from scipy.special import gammaln

    possible = (chosen >= 0) & (chosen <= among)
    few = np.where(possible, chosen, 0)
    return np.where(possible, gammaln(among + 1) - gammaln(few + 1) - gammaln(among - few + 1), -np.inf)


class ContextTask(PartnerTask):
    """Each sentence must find the next one of its document, among sentences from elsewhere.

    Args:
        corpus: sentences with documents.
        rows: the sentences to use, in order within documents.
        candidates: number of candidates per query, the answer included; None for all.

    Raises:
        DataError: the corpus has no documents, or none with two different sentences.
    """

    def __init__(self, corpus: Corpus | Subset, rows: Numbers, candidates: int | None = CANDIDATES) -> None:
        if corpus.documents is None:
            raise DataError(WITHOUT_DOCUMENTS)
        rows = limited(corpus, corpus.documents, rows)
        self.texts = corpus.texts(rows)
        document = np.unique(corpus.documents[rows], return_inverse=True)[1].astype(np.int64)
        has_next, near = np.append(document[1:] == document[:-1], False), near_duplicates(self.texts)
        sentences = [(text,) for text in self.texts]
        super().__init__(
            *(CONTEXT, sentences, sentences, np.where(has_next, np.arange(1, len(rows) + 1), NONE), document),
            candidates=candidates,
            near=(near, near),
            relation=("next",),
            content={"text": self.texts, "document": document.tolist()},
        )


def title_task(documents: Sequence[Passage]) -> PartnerTask:
    """The first sentence of each document (its title, if any) must find the rest.

    Raises:
        DataError: too few documents have a rest.
    """
    return _cut_task("title", documents, 2, lambda size: 1)


def halves_task(documents: Sequence[Passage]) -> PartnerTask:
    """The first half of each document's sentences must find the second half.

    Raises:
        DataError: too few documents are long enough; two sentences would be the same as in `context`.
    """
    return _cut_task("halves", documents, 4, lambda size: size // 2)


def _cut_task(name: str, documents: Sequence[Passage], least: int, cut: Callable[[int], int]) -> PartnerTask:
    long = [(document, cut(len(document))) for document in documents if len(document) >= least]
    if len(long) < LEAST:
        raise DataError(f"{name} needs {LEAST} documents of {least} sentences or more")
    first, rest = [document[:end] for document, end in long], [document[end:] for document, end in long]
    return PartnerTask(name, first, rest, np.arange(len(long)), np.arange(len(long)))


class DocumentTask(LabelFreeTask):
    """Precision at k of sentences from the same document, with k the number of its other sentences, at most ten.

    Near-duplicates of a sentence are excluded. All other sentences are candidates, so the score falls as their number
    grows: it compares encoders, not corpora.

    Args:
        texts: sentences.
        documents: (n,) source of each.

    Raises:
        DataError: too few sentences share a document.
    """

    def __init__(self, texts: Sequence[str], documents: Numbers) -> None:
        self.texts, self.near = list(texts), near_duplicates(texts)
        number, size = np.unique(documents, return_inverse=True, return_counts=True)[1:]
        one, other = self.near.nonzero()
        alike = np.bincount(one[documents[one] == documents[other]], minlength=len(texts))  # itself included
        self.wanted = np.minimum(size[number] - alike, CUTOFF)
        content = {"text": self.texts, "document": documents.tolist()}
        super().__init__("document", documents, np.flatnonzero(self.wanted), len(texts), content)
        if len(self.queries) < LEAST:
            raise DataError(f"document needs {LEAST} sentences with others in their document")

    def _score(self, encoder: Encoder) -> Score:
        queries, texts = encoder.sides(self.texts, self.texts)
        shares = []
        for block in np.array_split(self.queries, 1 + len(self.queries) * len(self.texts) // BLOCK):
            similarity = inner(queries[block], texts)
            similarity[self.near[block].toarray().astype(bool)] = -np.inf
            order = np.argsort(-similarity, axis=1, kind="stable")[:, :CUTOFF]
            hits = self.document[order] == self.document[block][:, None]
            hits &= np.arange(CUTOFF)[None, : order.shape[1]] < self.wanted[block][:, None]
            shares.append(hits.sum(1) / self.wanted[block])
        return self._measured(np.concatenate(shares), encoder, f"precision@{CUTOFF}")
