"""Programs above a search: the best sentence of a text, hubs, feedback of the first texts. No model is trained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.sentences import split_texts
from selfsent.data.vector_files import Vectors, inner, unit
from selfsent.errors import DataError, SettingsError
from selfsent.lexical.hybrid import top_k
from selfsent.scorers.lexical import Hybrid, HybridRows
from selfsent.scorers.scorer import QueryRows, Scorer, SearchScorer, TextRows

NEAREST = 10
"""Nearest texts that make a hub: chosen on dev queries (docs/log), as the following."""
FIRST = 3
"""First texts that are fed back."""
TOGETHER = 64
"""Queries compared with sentences, and texts with each other, at a time: for the memory."""
_NAMED = re.compile(r"(.+)\+(sentences|hubs|feedback):(\d+\.?\d*|\.\d+)((?:\+.*)?)")


def program_in(name: str) -> tuple[str, str, float] | None:
    """The search, the program and its share in the name of a search with a program; None for other names.

    Raises:
        SettingsError: a share above 1.

    Examples:
        >>> program_in("bundled+words+sentences:0.4"), program_in("bundled+hubs:.5+words"), program_in("bundled")
        (('bundled+words', 'sentences', 0.4), ('bundled+words', 'hubs', 0.5), None)
    """
    found = _NAMED.fullmatch(name)
    if not found or Path(name).exists():
        return None
    if (share := float(found[3])) > 1:
        raise SettingsError(f"{name}: the share of {found[2]} is {found[3]}; it must be from 0 to 1")
    return found[1] + found[4], found[2], share


class Program(SearchScorer):
    """Search whose scores a program changes, by vectors that the search has anyhow.

    | kind | score of query q and text d, of cosine c and with words |
    |---|---|
    | `sentences` | (1 - share) · c(q, d) + share · the largest c of q and a sentence of d |
    | `hubs` | c(q, d) - share · the mean c of d and its 10 nearest other texts |
    | `feedback` | c(q', d) of q' = (1 - share) · q + share · the mean of the first 3 texts (Rocchio, 1971) |

    Each adds the words of the search, as it does. Hubs are texts that are near to many queries (Radovanović et al.,
    2010); the mean of neighbours is the correction of CSLS (Conneau et al., 2018. arXiv:1710.04087, equation 2), of
    texts in place of queries. Feedback of vectors is that of Li et al., 2021. arXiv:2108.11044.

    Args:
        scorer: an encoder, or with words.
        kind: of the program.
        share: from 0 to 1.
        together: queries compared with sentences, and texts with each other, at a time.

    Raises:
        DataError: the search is not by vectors.

    Examples:
        >>> search = Program(load_scorer("bundled+words"), "hubs", 0.5)  # doctest: +SKIP
    """

    def __init__(self, scorer: Scorer, kind: str, share: float, together: int = TOGETHER) -> None:
        self.encoder = scorer.scorer if isinstance(scorer, Hybrid) else scorer
        """The encoder of the search."""
        if not self.encoder.has_vectors:
            raise DataError(f"{scorer.name}+{kind}:{share:g}: {scorer.name} is no encoder, alone or with words")
        name = f"{scorer.name}+{kind}:{share:g}"
        super().__init__(None, name, f"{scorer.pooling}+{kind}", scorer.trained_on, scorer.trained_by)
        self.parts = (scorer,)
        self.scorer, self.kind, self.share, self.measure = scorer, kind, share, f"{scorer.measure}+{kind}:{share:g}"
        self.texts_read, self.lexical_weight = scorer.texts_read, scorer.lexical_weight
        self.together = together

    def search_rows(self, queries: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:
        """Rows for queries and texts, with scores as inner products."""
        asked, held = self.scorer.query_document_vectors(queries, texts, search=True)
        documents = _Documents(held, self.share, self.together)
        if self.kind == "sentences":
            own = [found or [text] for text, found in zip(texts, split_texts(texts), strict=True)]
            flat = [part for each in own for part in each]
            _, parts = self.encoder.query_document_vectors(queries[:1], flat, search=True)
            documents = replace(documents, parts=parts, starts=np.cumsum([0, *map(len, own)])[:-1])
        elif self.kind == "hubs":
            documents = replace(documents, crowds=crowds_of(_vectors(held), together=self.together))
        return _Queries(asked), documents


def crowds_of(vectors: Vectors, nearest: int = NEAREST, together: int = TOGETHER) -> Vectors:
    """The mean cosine of each text and its nearest other ones, (n,); 0 for a single text.

    Args:
        vectors: (n, d) of length 1.
        nearest: texts in a mean.
        together: texts compared with all at a time.
    """
    count, found = min(nearest, len(vectors) - 1), np.zeros(len(vectors), np.float32)
    for start in range(0, len(vectors) if count else 0, together):
        alike = inner(vectors[start : start + together], vectors)
        alike[np.arange(len(alike)), start + np.arange(len(alike))] = -np.inf
        found[start : start + together] = np.partition(alike, -count, axis=1)[:, -count:].mean(axis=1)
    return found


def _vectors(rows: Any) -> Vectors:
    found: Vectors = rows.vectors if isinstance(rows, HybridRows) else rows
    return found


@dataclass(frozen=True)
class _Documents(TextRows):
    """Rows of texts, and the inputs of their program.

    Args:
        rows: as the search makes them.
        share: of the program.
        together: queries compared with sentences at a time.
        parts: vectors of their sentences.
        starts: the first sentence of each text.
        crowds: see `crowds_of`.
    """

    rows: Any
    share: float
    together: int
    parts: Vectors | None = None
    starts: NDArray[np.int64] | None = None
    crowds: Vectors | None = None


class _Queries(QueryRows):
    """Rows of queries, as the search makes them."""

    def __matmul__(self, other: _Documents) -> Vectors:
        """(q, n) scores."""
        scores, share = inner(self.rows, other.rows), other.share
        if other.crowds is not None:
            return np.asarray(scores - share * other.crowds, np.float32)
        asked, held = _vectors(self.rows), _vectors(other.rows)
        if other.parts is not None and other.starts is not None:
            for start in range(0, len(asked), other.together):
                rows = slice(start, start + other.together)
                best = np.maximum.reduceat(inner(asked[rows], other.parts), other.starts, axis=1)
                scores[rows] += share * (best - inner(asked[rows], held))
            return scores
        fed_back = unit(held[top_k(scores, FIRST)].mean(axis=1))
        moved = unit((1 - share) * asked + share * fed_back)
        return np.asarray(scores + inner(moved - asked, held), np.float32)
