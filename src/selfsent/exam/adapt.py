"""Adapters: maps learned for an encoder that cannot be trained. The vectors of documents stay as they are.

A query's vector q becomes q + q·down·up + shift, of length 1, and a weight of words goes with it. Candidates are

* the strongest directions of the documents damped, as whitening does: of a covariance U Λ Uᵀ, the direction i ≤ r is
  multiplied by (λᵣ ÷ λᵢ)^s;
* a share of the documents' mean taken off, which lowers hubs: texts that are near to every query;
* ridge regression from queries to their answers, in its RANK strongest directions;
* the identity.

The one that is best on half of the queries is taken, if it is ahead of the identity by more than chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import Vectors, unit
from selfsent.errors import DataError, first_line
from selfsent.evaluation.results import Score, best_minus
from selfsent.evaluation.tasks.beir import texts_in
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.exam.compare import WEIGHTS
from selfsent.files import atomic_file
from selfsent.progress import SILENT, Progress
from selfsent.renamed import renamed_arguments
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.scorer import Scorer
from selfsent.stats.resampling import Difference

RANKS, STRENGTHS = (8, 32, 128), (0.25, 0.5)
MEANS, RIDGES = (0.1, 0.25, 0.5), (1.0, 10.0)
"""Shares of the mean, and ridges relative to the mean eigenvalue of the queries' second moments."""
RANK = 32
FOLDS = 4
_WEIGHED = 3
"""Maps that are tried with every weight of words; the others with the encoder's own."""


@dataclass(frozen=True)
class Adapter:
    """A low-rank map of query vectors, and the weight of words.

    Args:
        name: of the candidate, in words.
        down: (d, r).
        up: (r, d).
        shift: (d,).
        words: weight of BM25 relative to the cosine.

    Examples:
        >>> adapter = Adapter.identity(2, words=0.5)
        >>> adapter(np.array([[3.0, 4.0]], np.float32)).tolist()
        [[0.6000000238418579, 0.800000011920929]]
    """

    name: str
    down: Vectors
    up: Vectors
    shift: Vectors
    words: float

    @classmethod
    def identity(cls, size: int, words: float) -> Adapter:
        """The map that changes nothing, of vectors of this size."""
        down, up, shift = (np.zeros(shape, np.float32) for shape in ((size, 1), (1, size), (size,)))
        return cls("identity", down, up, shift, words)

    def __call__(self, queries: Vectors) -> Vectors:
        """Queries (q, d) as unit vectors to multiply with documents' vectors.

        Raises:
            DataError: vectors of another size.
        """
        if queries.shape[1] != len(self.shift):
            problem = f"the adapter is for vectors of {len(self.shift)} numbers, and these have {queries.shape[1]}"
            raise DataError(problem)
        rows = unit(queries)
        return unit(np.asarray(rows + rows @ self.down @ self.up + self.shift, np.float32))

    def save(self, path: Path) -> None:
        """Write a `.safetensors` file.

        Raises:
            OutputError: it cannot be written.
        """
        from safetensors.numpy import save_file

        words = np.array([self.words], np.float32)
        arrays = {"down": self.down, "up": self.up, "shift": self.shift, "words": words}
        tensors = {key: np.ascontiguousarray(value) for key, value in arrays.items()}
        with atomic_file(path) as temporary:
            save_file(tensors, temporary, {"name": self.name})

    @classmethod
    def load(cls, path: Path) -> Adapter:
        """Read what `save` wrote.

        Raises:
            DataError: it is missing or holds something else.
        """
        from safetensors import safe_open

        try:
            with safe_open(path, "numpy") as file:
                found = {key: file.get_tensor(key) for key in ("down", "up", "shift", "words")}
                name = (file.metadata() or {}).get("name", "")
            made = cls(name, found["down"], found["up"], found["shift"], float(found["words"].item()))
            (size,), (rank, wide) = made.shift.shape, made.up.shape
            sound = all(np.isfinite(each).all() for each in found.values()) and 0 <= made.words < np.inf
            if made.down.shape != (size, rank) or wide != size or not sound:
                raise ValueError("its arrays do not fit together")
        except Exception as error:  # safetensors raises its own
            raise DataError(f"{path} is no adapter of selfsent adapt: {first_line(error)}") from error
        return made


Make = Callable[[Vectors, Vectors], Adapter]
"""Queries and the means of their answers, (q, d) each -> what is learned from them."""


class Adapted(Scorer):
    """An encoder whose query vectors go through a map; see `Scorer.query_document_vectors`."""

    def __init__(self, encoder: Scorer, change: Callable[[Vectors], Vectors]) -> None:
        super().__init__(encoder, "adapted", encoder.pooling)
        self.encoder, self.change, self.lexical_weight = encoder, change, encoder.lexical_weight
        self.texts_read, self.parts = encoder.texts_read, (encoder,)

    def query_document_vectors(
        self, queries: Sequence[str], texts: Sequence[str], search: bool = False
    ) -> tuple[Any, Any]:
        """Unit vectors of queries, changed, and of texts."""
        asked, held = self.encoder.query_document_vectors(queries, texts, search)
        return self.change(asked), held


def of_files(folder: Path, documents: Vectors, queries: Vectors, name: str) -> Scorer:
    """An encoder of the texts of a search set in a folder, from arrays in the order of its lines.

    Args:
        folder: in BEIR's layout.
        documents: (n, d), a row for each line of `corpus`.
        queries: (q, d), a row for each line of `queries`.
        name: in results.

    Raises:
        DataError: other numbers of rows, or of numbers in a row.
    """
    found = []
    for what, texts, rows in zip(("queries", "corpus"), texts_in(folder), (queries, documents), strict=True):
        if len(texts) != len(rows) or rows.shape[1] != documents.shape[1]:
            problem = f"the vectors of {what} have the shape {rows.shape}, and {folder} has {len(texts):,} lines there"
            advice = "give a vector of one size for each line, in order"
            raise DataError(f"{problem}; {advice}")
        found.append(_looked_up(dict(zip(texts, rows, strict=True))))
    return Scorer(found[1], name, searching=found)


def _looked_up(place: dict[str, Vectors]) -> Callable[[Sequence[str]], Vectors]:
    return lambda texts: np.stack([place[text] for text in texts])


@dataclass(frozen=True)
class Adaptation:
    """The adapter, and its scores beside those of the identity with the encoder's own weight of words.

    Args:
        adapter: the chosen one.
        before: on the half of the queries that chose, and on the other half, without adapter.
        after: likewise, with it. On the first half it is cross-fitted.
    """

    adapter: Adapter
    before: tuple[Score, Score]
    after: tuple[Score, Score]

    @property
    def gains(self) -> tuple[Difference, Difference]:
        """The differences on both halves."""
        one, other = (a.minus(b) for a, b in zip(self.after, self.before, strict=True))
        return one, other

    @property
    def line(self) -> str:
        """The result in a few sentences, and a warning if the encoder has read what was asked about."""
        if not (found := self.before[1].has_read):
            return self._result
        read, asked = found
        fact = f"The encoder has read {read:,} of the {asked:,} texts asked about"
        return f"{self._result} {fact}, so what it gains on others is not known: ask about texts that it has not read."

    @property
    def _result(self) -> str:
        """The chosen adapter and its gain."""
        if self.adapter.name == "identity" and self.after[0] is self.before[0]:
            return "Keep the vectors as they are: nothing that was tried is ahead by more than chance."
        one, other = (less.shown for less in self.gains)
        what = f"{self.adapter.name}, words at {self.adapter.words:g}"
        return f"Chosen: {what}. That is {one} on the half of the queries that chose it, and {other} on the other half."


@renamed_arguments(word_weight="lexical_weight")
def adapt(
    encoder: Scorer,
    dev: RetrievalTask,
    test: RetrievalTask,
    lexical_weight: float | None = None,
    progress: Progress = SILENT,
) -> Adaptation:
    """Learn an adapter from queries with known answers.

    Args:
        encoder: one with vectors.
        dev: the queries to learn from, and to choose by.
        test: other ones over the same documents, to show the gain on.
        lexical_weight: of BM25; by default it is chosen, too.
        progress: receives the number of maps and weights tried.

    Raises:
        DataError: the encoder has no vectors.
    """
    own = encoder.lexical_weight if lexical_weight is None else lexical_weight
    queries, documents = encoder.query_document_vectors(dev.queries, dev.documents, search=True)
    answers = _answers(dev.grades, documents)
    none = Adapter.identity(documents.shape[1], own)

    def score(task: RetrievalTask, change: Callable[[Vectors], Vectors], weight: float) -> Score:
        changed = Adapted(encoder, change)
        return task.score(Hybrid(changed, weight) if weight else changed)

    def tried_with(make: Make, weights: Iterable[float]) -> Iterator[tuple[Make, float, Score]]:
        crossed = _cross_fitted(make, queries, answers)
        yield from ((make, weight, score(dev, lambda asked: crossed, weight)) for weight in weights)

    makers, weights = list(_makers(documents)), sorted({0.0, *WEIGHTS} - {own})
    weighed = 0 if lexical_weight is not None else 1 + min(_WEIGHED, len(makers))
    total, tried = len(makers) + weighed * len(weights), list[tuple[Make, float, Score]]()

    def try_with(make: Make, weights: Iterable[float]) -> None:
        for each in tried_with(make, weights):
            tried.append(each)
            progress.count("trying maps", 1, total)

    for make in makers:
        try_with(make, [own])
    before = score(dev, none, own)
    if weighed:
        best = sorted(tried, key=lambda each: -each[2].score)[:_WEIGHED]
        for make in [_always(none), *(each[0] for each in best)]:
            try_with(make, weights)
    shown = score(test, none, own)
    if not best_minus([each[2] for each in tried], before).low > 0:
        return Adaptation(none, (before, shown), (before, shown))
    make, weight, after = max(tried, key=lambda each: each[2].score)
    adapter = replace(make(queries, answers), words=weight)
    return Adaptation(adapter, (before, shown), (after, score(test, adapter, weight)))


def _answers(grades: Sequence[Any], documents: Vectors) -> Vectors:
    """The mean of the vectors of each query's answers, (q, d)."""
    rows = [[row for row, grade in each.items() if grade > 0 and row < len(documents)] for each in grades]
    found = [documents[each].mean(0) if each else np.zeros(documents.shape[1], np.float32) for each in rows]
    return np.asarray(np.stack(found), np.float32)


def _makers(documents: Vectors) -> Iterator[Make]:
    """Functions of queries and answers, (q, d) each, that make the candidates."""
    size, mean = documents.shape[1], documents.mean(0)
    centred = (documents - mean).astype(np.float64)
    spread, directions = np.linalg.eigh(centred.T @ centred / len(documents))
    spread, directions = np.maximum(spread[::-1], 1e-12), directions[:, ::-1]
    none = Adapter.identity(size, 0)
    for share in MEANS:
        yield _always(Adapter(f"{share:g} of the mean taken off", none.down, none.up, np.float32(-share) * mean, 0))
    for rank in RANKS:
        if rank < min(size, len(documents)):
            for power in STRENGTHS:
                damped = 1 - (spread[rank] / spread[:rank]) ** power
                down, up = _single(directions[:, :rank] * damped), _single(-directions[:, :rank].T)
                yield _always(Adapter(f"{rank} directions damped by {power:g}", down, up, none.shift, 0))
    for ridge in RIDGES:
        yield partial(_regression, ridge)


def _always(made: Adapter) -> Make:
    return lambda queries, answers: made


def _regression(ridge: float, queries: Vectors, answers: Vectors) -> Adapter:
    """W of minimal |Q + Q W − A|² + ridge · |W|², in its strongest directions."""
    one, size = queries.astype(np.float64), queries.shape[1]
    moments = one.T @ one
    penalty = ridge * np.trace(moments) / size * np.eye(size)
    left, scales, right = np.linalg.svd(np.linalg.solve(moments + penalty, one.T @ (answers - one)))
    down, up = _single(left[:, :RANK] * scales[:RANK]), _single(right[:RANK])
    return Adapter(f"regression with a ridge of {ridge:g}", down, up, np.zeros(size, np.float32), 0)


def _single(values: NDArray[np.float64]) -> Vectors:
    return np.ascontiguousarray(values, np.float32)


def _cross_fitted(make: Make, queries: Vectors, answers: Vectors) -> Vectors:
    """The queries of each fold through the adapter that was made from the others."""
    found, fold = np.empty_like(queries), np.arange(len(queries)) % FOLDS
    for each in range(FOLDS):
        held = fold == each
        found[held] = make(queries[~held], answers[~held])(queries[held]) if held.any() else 0
    return found
