"""A common interface to all encoders. Every distinct sentence is encoded once."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from selfsent.data.vector_files import UNKNOWN, Vectors, unit, write_vectors
from selfsent.display import counted
from selfsent.errors import DataError
from selfsent.lexical.hybrid import SEARCH_WEIGHT
from selfsent.models.texts_read import TextsRead
from selfsent.resumable import VectorsOfTexts
from selfsent.stats.metrics import cosines
from selfsent.stats.resampling import Floats

Encode = Callable[[Sequence[str]], Vectors]
"""n texts -> (n, d)."""


class Scorer:
    """An encode function with a name and a cache of vectors, which threads may share.

    Args:
        encode: n texts -> (n, d); None if it scores pairs and has no vectors.
        name: of the model in results.
        pooling: for the signature, with the precision if not float32; `custom` if unknown.
        trained_on: known training corpora.
        trained_by: known training methods.
        searching: encode functions for queries and texts of a search, if they differ (by a prompt).
    """

    measure = "cos"
    """Name of `similarity` in the signature."""

    def __init__(
        self,
        encode: Encode | None,
        name: str,
        pooling: str = UNKNOWN,
        trained_on: Sequence[str] = (),
        trained_by: Sequence[str] = (),
        searching: Sequence[Encode | None] = (None, None),
    ) -> None:
        self.name, self.pooling, self.trained_on, self.trained_by = name, pooling, trained_on, trained_by
        self._encode = encode
        self.has_vectors = encode is not None
        """Whether it has vectors of single texts, as some tasks need."""
        self._broken = 0
        self.lexical_weight = SEARCH_WEIGHT["transformer"]
        """Weight of BM25 relative to its cosine."""
        self.remote = ""
        """The address and model of an API that encodes; empty if vectors are computed here."""
        self.texts_read = TextsRead()
        """The record of the texts that the model was trained on."""
        self._rows: dict[str, int] = {}
        self._vectors: Vectors = np.zeros((0, 0), np.float32)
        """Vectors of the texts in `_rows`, with spare capacity."""
        self._one = threading.Lock()
        self._searching = [Scorer(each, name) if each else self for each in searching]
        self.parts: Sequence[Scorer] = [each for each in self._searching if each is not self]
        """The scorers that it asks."""

    @property
    def broken(self) -> int:
        """Number of vectors or pair scores so far that were not finite, counted as zeros."""
        return self._broken + sum(each.broken for each in self.parts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The line about those, if there are any."""
        line = f"{self.name}: {counted(self.broken, 'output')} not finite, taken for zeros"
        return (line,) if self.broken else ()

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, (n, d), float32.

        Raises:
            DataError: it has no vectors, or does not return one of equal size per text.
        """
        self.remember(texts)
        vectors: Vectors = self._vectors[[self._rows[text] for text in texts]]
        return vectors

    def query_document_vectors(
        self, queries: Sequence[str], texts: Sequence[str], search: bool = False
    ) -> tuple[Any, Any]:
        """Rows for queries and texts, (q, d) and (n, d), with inner products as similarities.

        Unit vectors; sparse matrices for `LexicalScorer`. `inner` multiplies both kinds.

        Args:
            queries: (q,) texts.
            texts: (n,) texts.
            search: whether this is an asymmetric search, with prompts for queries and texts if the model has them.
        """
        asking, held = self._searching if search else (self, self)
        if asking is held:
            self.remember([*queries, *texts])
        return unit(asking(queries)), unit(held(texts))

    def remember(self, texts: Iterable[str]) -> None:
        """Encode and cache new texts, in one call."""
        if self._encode is None:
            raise DataError(f"{self.name} has no vectors, so this task cannot use it")
        with self._one:
            new = [text for text in dict.fromkeys(texts) if text not in self._rows]
            if new:
                self._keep(new, np.asarray(self._encode(new), np.float32))

    def _keep(self, new: list[str], vectors: Vectors) -> None:
        if vectors.ndim != 2 or len(vectors) != len(new):
            raise DataError(f"{self.name} returned an array of shape {vectors.shape} for {len(new)} texts, not (n, d)")
        if self._rows and vectors.shape[1] != self._vectors.shape[1]:
            raise DataError(f"{self.name} returned vectors of size {self._vectors.shape[1]} and {vectors.shape[1]}")
        broken = ~np.isfinite(vectors).all(axis=1, keepdims=True)
        if broken.any():
            self._broken += int(broken.sum())
            vectors = np.where(broken, np.float32(0), vectors)
        start, end = len(self._rows), len(self._rows) + len(new)
        if not start:
            self._vectors = vectors
        elif end > len(self._vectors):  # double the capacity, so that adding single texts rarely copies
            grown = np.empty((2 * end, vectors.shape[1]), np.float32)
            grown[:start] = self._vectors[:start]
            self._vectors = grown
        self._vectors[start:end] = vectors
        self._rows.update((text, start + number) for number, text in enumerate(new))  # last, as other threads read it

    def cut(self, size: int) -> Scorer:
        """An encoder with the first `size` numbers of its vectors, each of which is computed once for all sizes."""

        def beginnings_of(whole: Scorer) -> Encode:
            return lambda texts: whole(texts)[:, :size]

        sides = [None if side is self else beginnings_of(side) for side in self._searching]
        found = Scorer(beginnings_of(self), self.name, self.pooling, self.trained_on, self.trained_by, sides)
        found.lexical_weight, found.texts_read = self.lexical_weight, self.texts_read
        return found

    def keep(self, path: Path) -> None:
        """Keep the vectors of texts that are searched in a file (see `VectorsOfTexts`), for later processes as well."""
        held = self._searching[1]
        assert held._encode is not None
        self._searching[1] = Scorer(VectorsOfTexts(path, held._encode), self.name)

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Floats:
        """The cosine of each pair of texts, (n,), computed in float64; NaN becomes 0."""
        self.remember([*left, *right])
        return cosines(self(left), self(right))

    def write(self, path: Path) -> None:
        """Write all cached vectors to a file usable in place of the model.

        Raises:
            DataError: nothing was encoded.
            SettingsError: the file is neither `.parquet` nor `.npz`.
        """
        if not self._rows:
            raise DataError(f"{self.name} has encoded nothing, so there are no vectors for {path}")
        trained_on, trained_by = "\n".join(self.trained_on), "\n".join(self.trained_by)
        about = {"pooling": self.pooling, "trained_on": trained_on, "trained_by": trained_by}
        about |= {"texts_read": self.texts_read.line} if self.texts_read else {}
        write_vectors(path, list(self._rows), self._vectors[: len(self._rows)], **about)


class SearchScorer(Scorer, ABC):
    """A scorer that ranks the documents of a search, and compares no texts that are alike."""

    def query_document_vectors(
        self, queries: Sequence[str], texts: Sequence[str], search: bool = False
    ) -> tuple[Any, Any]:
        """Rows for queries and texts, with scores as inner products.

        Raises:
            DataError: no search, but texts that are alike.
        """
        if not search:
            raise self._unfit()
        return self.search_rows(queries, texts)

    @abstractmethod
    def search_rows(self, queries: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:
        """Rows for queries and texts of a search, with scores as inner products."""

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Floats:
        """Unsupported.

        Raises:
            DataError: always.
        """
        raise self._unfit()

    def _unfit(self) -> DataError:
        return DataError(f"{self.name} ranks the documents of a search, so this task cannot use it")


@dataclass(frozen=True)
class QueryRows:
    """Rows of queries of another scorer; a subclass defines their product with `TextRows`."""

    rows: Any

    def __getitem__(self, rows: slice) -> Self:
        return replace(self, rows=self.rows[rows])


class TextRows:
    """Rows of texts on the right side of a product."""

    @property
    def T(self) -> Self:  # noqa: N802 - as in numpy
        """Itself: `@` transposes the right side."""
        return self


class PairScorer(Scorer):
    """A cross-encoder: it scores pairs and has no vectors, so only pair tasks can use it.

    Args:
        predict: n pairs of texts -> (n,) scores.
        name: of the model in results.
        trained_on: known training corpora.
    """

    measure = "cross"

    def __init__(
        self, predict: Callable[[list[tuple[str, str]]], Any], name: str, trained_on: Sequence[str] = ()
    ) -> None:
        super().__init__(None, name, "none", trained_on)
        self._predict = predict

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Floats:
        """The score of each pair of texts, (n,).

        Raises:
            DataError: the model has more than one output per pair.
        """
        scores = np.asarray(self._predict(list(zip(left, right, strict=True))), np.float64)
        if scores.shape != (len(left),):
            raise DataError(f"{self.name} returned an array of shape {scores.shape}; a pair task needs (n,)")
        broken = ~np.isfinite(scores)
        self._broken += int(broken.sum())
        return np.where(broken, 0.0, scores)
