"""Search in passages: a document counts by its best one, as in an index of passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.passages import check_passages, split_passages
from selfsent.data.vector_files import Vectors, inner
from selfsent.scorers.scorer import QueryRows, Scorer, SearchScorer, TextRows

_NAMED = re.compile(r"(.+)\+passages:(\d+)(?:\.0*)?((?:\+.*)?)")


def passages_in(name: str) -> tuple[str, int] | None:
    """The model and the words of a passage in the name of a search in passages; None for other names.

    Examples:
        >>> passages_in("bundled+words+passages:120"), passages_in("bundled+passages:120+words")
        (('bundled+words', 120), ('bundled+words', 120))
    """
    found = _NAMED.fullmatch(name)
    return (found[1] + found[3], int(found[2])) if found and not Path(name).exists() else None


class InPassages(SearchScorer):
    """Search whose documents are split into passages; the score of a document is that of its best passage.

    Args:
        scorer: of queries and passages.
        words: of a passage at most (see `split_passages`).

    Raises:
        SettingsError: too few or too many words.
    """

    def __init__(self, scorer: Scorer, words: int) -> None:
        check_passages(words)
        name = f"{scorer.name}+passages:{words}"
        super().__init__(None, name, f"{scorer.pooling}/{words}", scorer.trained_on, scorer.trained_by)
        self.parts = (scorer,)
        self.scorer, self.words, self.measure = scorer, words, f"{scorer.measure}max"
        self.texts_read, self.lexical_weight = scorer.texts_read, scorer.lexical_weight

    def search_rows(self, queries: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:
        """Rows for queries and documents, with the score of the best passage as inner product."""
        parts = [split_passages(text, self.words) or [text] for text in texts]
        flat = [part for own in parts for part in own]
        asked, held = self.scorer.query_document_vectors(queries, flat, search=True)
        ends = np.cumsum([0, *map(len, parts)])
        return _Queries(asked), _Documents(held, ends)


class _Queries(QueryRows):
    """Rows of queries, as the scorer makes them."""

    def __matmul__(self, other: _Documents) -> Vectors:
        """(q, n) the score of each document's best passage."""
        scores = inner(self.rows, other.parts)
        return np.asarray(np.maximum.reduceat(scores, other.ends[:-1], axis=1), np.float32)


@dataclass(frozen=True)
class _Documents(TextRows):
    """Rows of passages, and where the passages of each document end."""

    parts: Any
    ends: NDArray[np.int64]
