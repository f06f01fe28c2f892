"""Hard negatives: texts that rank high for a query and are not its partner, mined once and cached with the corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.data.vector_files import unit
from selfsent.data.views.positives import WHOLE, Documents, Surroundings
from selfsent.errors import SettingsError
from selfsent.lexical import BM25, Analyzer, language_of
from selfsent.lexical.analyzer import SAMPLED
from selfsent.lexical.hybrid import fuse
from selfsent.methods.ranking import Retriever
from selfsent.models.bases import resolve
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import Side, encode
from selfsent.models.fingerprint import files_fingerprint
from selfsent.models.loading import load_encoder
from selfsent.models.prompts import Prompts
from selfsent.progress import SILENT, Progress
from selfsent.resumable import ArrayCache, Compute, key_of

_FORMAT = 1
"""Version of the cache files."""
_CHUNK, _BLOCK = 256, 1 << 24
"""Queries ranked and stored at once, and maximum number of scores in memory."""


@dataclass(frozen=True)
class HardNegatives:
    """Mined hard negatives of a corpus.

    Args:
        rows: (corpus rows, k) the corpus row of each negative, best first; the row itself where there are fewer.
        scores: (corpus rows, 1 + k) scores of the partner and of the negatives; −inf where there are fewer.
    """

    rows: np.ndarray
    scores: np.ndarray


def hardest(scores: np.ndarray, partner: np.ndarray, count: int, max_relative_score: float = 0.95) -> np.ndarray:
    """The best candidates that are probably not partners, (q, count), best first; -1 where there are fewer.

    A candidate with a score above a share of the partner's may be an answer, too: `perc pos` of Moreira et al. 2024,
    arXiv:2407.15831, section 3.

    Args:
        scores: (q, n) of all candidates; −inf excludes one.
        partner: (q,) the score of each partner.
        count: number of candidates to return.
        max_relative_score: maximum score, relative to the partner's.

    Examples:
        >>> hardest(np.array([[0.9, 0.97, 0.2, 0.5]]), np.array([1.0]), 2)
        array([[0, 3]])
    """
    limit = partner - (1 - max_relative_score) * np.abs(partner)
    allowed = np.where(scores <= limit[:, None], scores, -np.inf)
    best = np.argpartition(-allowed, min(count, allowed.shape[1]) - 1, axis=1)[:, :count]
    found = np.take_along_axis(allowed, best, 1)
    best = np.where(found > -np.inf, best, -1)
    best = np.take_along_axis(best, np.argsort(-found, axis=1, kind="stable"), 1)
    return np.pad(best, ((0, 0), (0, count - best.shape[1])), constant_values=-1)


class MiningTask:
    """Queries, their partners, and the texts among which negatives are mined.

    Args:
        corpus: pairs, or the sentences of documents.
        rows: (q,) ascending corpus rows of the queries.
        whole: whether the partner of a row is its document without the row, and not the second text of the row.
    """

    def __init__(self, corpus: Corpus, rows: np.ndarray, whole: bool) -> None:
        self.corpus, self.rows, self.whole = corpus, rows, whole
        if whole:
            self.documents = Documents(np.asarray(corpus.documents))
            _, first, own = np.unique(self.documents.numbers[rows], return_index=True, return_inverse=True)
            self.searched = rows[first]
            """(n,) the corpus row of each candidate, for a document its first."""
            self.texts = self._passages(self.searched, 1.0)
            """Texts of the candidates."""
            self.own = own
            """(q,) the candidate that is, or holds, the partner of each row."""
            return
        place: dict[str, int] = {}
        partners = corpus.texts(rows, corpus.input_columns[1])
        self.own = np.array([place.setdefault(text, len(place)) for text in partners])
        self.searched, self.texts = rows[np.unique(self.own, return_index=True)[1]], [*place]

    def queries(self, places: np.ndarray) -> list[str]:
        """Texts of queries, by their positions in `rows`."""
        return self.corpus.texts(self.rows[places], self.corpus.input_columns[0])

    def partners(self, places: np.ndarray) -> list[str]:
        """The positive text of each query, by its position in `rows`."""
        return self._passages(self.rows[places], 0.0) if self.whole else [self.texts[n] for n in self.own[places]]

    @cached_property
    def answers(self) -> dict[str, set[int]]:
        """Candidates that are partners of a query text in any row; empty if partners are documents."""
        found: dict[str, set[int]] = {}
        for query, own in zip([] if self.whole else self.queries(np.arange(len(self.rows))), self.own, strict=False):
            found.setdefault(query, set()).add(int(own))
        return found

    def _passages(self, rows: np.ndarray, kept: float) -> list[str]:
        read, counts = Surroundings(WHOLE, kept)(rows, 0, self.documents)
        texts, ends = self.corpus.texts(read), np.cumsum(counts)
        return [" ".join(texts[end - count : end]) for end, count in zip(ends, counts, strict=True)]


def mine(
    corpus: Corpus,
    rows: np.ndarray,
    base: str,
    count: int,
    retriever: Retriever = "both",
    max_relative_score: float = 0.95,
    whole: bool = False,
    max_length: int | None = None,
    prompts: Prompts | None = None,
    progress: Progress = SILENT,
    chunk_size: int = _CHUNK,
) -> HardNegatives:
    """Mine hard negatives for rows; cached ones are read, and an interrupted run continues.

    Args:
        corpus: pairs, or the sentences of documents.
        rows: corpus rows of the queries. Negatives are partners, or documents, of these rows alone.
        base: an encoder.
        count: negatives of a row.
        retriever: ranking that finds them. base: cosine; words: BM25; both: as `search` ranks with this encoder.
        max_relative_score: maximum score of a negative, relative to the partner's.
        whole: whether the partner of a row is its document.
        max_length: tokens read of a text; None for the maximum of the encoder.
        prompts: in place of the encoder's.
        progress: receives the number of rows done.
        chunk_size: rows ranked and stored at once, which an interruption may lose.

    Raises:
        BaseEncoderError: no such encoder.
        SettingsError: there is nothing to mine from, or vectors of the encoder are not finite.
    """
    rows = np.unique(rows)
    how = [count, retriever, max_relative_score, whole, max_length, files_fingerprint(base)]
    sides = () if prompts in (None, Prompts.of(resolve(base))) else (prompts.query, prompts.document)
    directory = corpus.directory / f"mined-{key_of([_FORMAT, corpus.input_columns, *how, *sides, rows])}"

    def prepare() -> tuple[Compute, int]:
        task = MiningTask(corpus, rows, whole)
        if len(task.texts) < 2:
            raise SettingsError("there is one text to mine negatives from: give at least two")
        encoder = load_encoder(base, prompts=prompts)
        encoder.tokenizer.model_max_length = min(max_length or np.inf, encoder.tokenizer.model_max_length)
        rank = _ranked(task, encoder, retriever, base)

        def compute(left: np.ndarray) -> np.ndarray:
            scores, partner = rank(np.searchsorted(rows, left))
            best = hardest(scores, partner, count, max_relative_score)
            kept = np.where(best < 0, -np.inf, np.take_along_axis(scores, best, 1))
            numbers = np.where(best < 0, left[:, None], task.searched[best])
            found = np.hstack([partner[:, None], kept]).astype(np.float32).view(np.int32)
            return np.hstack([numbers, found]).astype(np.int32)

        return compute, max(1, min(chunk_size, _BLOCK // len(task.texts)))

    cache = ArrayCache(directory, len(corpus), 2 * count + 1, np.int32)
    found = cache.fill(rows, prepare, progress.counting("mining", len(rows)))
    numbers, scores = np.split(np.ascontiguousarray(found), [count], axis=1)
    lone = np.where(cache.done[:, None] > 0, numbers, np.arange(len(corpus))[:, None])
    return HardNegatives(lone, np.ascontiguousarray(scores).view(np.float32))


def _ranked(
    task: MiningTask, encoder: Encoder, retriever: Retriever, base: str
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Function from positions in `rows` to scores (q, n) of candidates, −inf for partners, and (q,) of partners."""
    weight = {"base": 0.0, "words": 1.0}.get(retriever, encoder.lexical_weight)
    every, size = np.arange(len(task.rows)), len(task.texts)

    def encoded(texts: list[str], side: Side) -> np.ndarray:
        return unit(_finite(encode(encoder, texts, side=side), base, "vectors"))

    pool = None if retriever == "words" else encoded(task.texts, "document")
    if weight:
        sample = task.texts[:: 1 + size // SAMPLED]
        bm25 = BM25(task.queries(every), Analyzer(language_of(sample)))
        bm25.add(task.texts)
        for part in np.split(every, range(_CHUNK, len(every), _CHUNK)) if task.whole else []:
            bm25.add(task.partners(part))
        queries, texts = bm25.queries, bm25.texts

    def rank(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores, partner = np.zeros((len(places), size), np.float32), np.zeros(len(places), np.float32)
        if pool is not None:
            vectors = encoded(task.queries(places), "query")
            scores += vectors @ pool.T
            if task.whole:
                documents = encoded(task.partners(places), "document")
                partner += np.einsum("nd,nd->n", vectors, documents)
        if weight:
            scores = fuse(scores, (queries[places] @ texts[:size].T).toarray(), weight)
            if task.whole:
                shared = queries[places].multiply(texts[size + places])
                partner = fuse(partner, np.asarray(shared.sum(axis=1), np.float32).ravel(), weight)
        if not task.whole:
            partner = scores[np.arange(len(places)), task.own[places]].copy()
        scores[np.arange(len(places)), task.own[places]] = -np.inf
        for place, query in enumerate(task.queries(places) if task.answers else []):
            scores[place, [*task.answers[query]]] = -np.inf
        return scores, partner

    return rank


def _finite(numbers: np.ndarray, model: str, kind: str) -> np.ndarray:
    if not np.isfinite(numbers).all():
        raise SettingsError(f"{model} makes {kind} that are not finite: choose another model")
    return numbers


def teacher_scores(
    corpus: Corpus,
    rows: np.ndarray,
    negatives: HardNegatives,
    teacher: str,
    whole: bool,
    progress: Progress = SILENT,
) -> np.ndarray:
    """Scores of partners and hard negatives by a cross-encoder, (corpus rows, 1 + k), cached like `mine`.

    Raises:
        SettingsError: a score is not finite.
    """
    rows = np.unique(rows)
    about = [_FORMAT, corpus.input_columns, whole, negatives.rows[rows], rows, files_fingerprint(teacher)]

    def prepare() -> tuple[Compute, int]:
        from sentence_transformers import CrossEncoder

        task, directory = MiningTask(corpus, rows, whole), str(resolve(teacher))
        model = CrossEncoder(directory, local_files_only=True, model_kwargs={"use_safetensors": True})
        place = {int(row): number for number, row in enumerate(task.searched)}

        def compute(left: np.ndarray) -> np.ndarray:
            pairs, there = list[tuple[str, str]](), np.isfinite(negatives.scores[left])
            places = np.searchsorted(rows, left)
            for n, texts in enumerate(zip(task.queries(places), task.partners(places), strict=True)):
                mined = negatives.rows[left[n]][there[n, 1:]]
                pairs += [texts, *((texts[0], task.texts[place[int(row)]]) for row in mined)]
            found = np.full(there.shape, -np.inf, np.float32)
            found[there] = _finite(model.predict(pairs, show_progress_bar=False), teacher, "scores")
            return found

        return compute, _CHUNK

    directory = corpus.directory / f"judged-{key_of(about)}"
    cache = ArrayCache(directory, len(corpus), negatives.scores.shape[1], np.float32)
    return np.asarray(cache.fill(rows, prepare, progress.counting("asking the teacher", len(rows))))
