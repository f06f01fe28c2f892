"""Judgements of hits on the search page: `serve --judge`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from selfsent.data.judgements import Judgements
from selfsent.errors import SettingsError
from selfsent.index import Index
from selfsent.serving.requests import JudgeRequest

LONGEST = 1000
"""Maximum number of characters of a query that is judged."""


class Judging:
    """Judgements of the hits of an index, kept in a file.

    Args:
        index: with ids. Nothing but its ids and the queries gets into the file.
        judgements: the file.

    Raises:
        SettingsError: the index has no ids.
    """

    def __init__(self, index: Index, judgements: Judgements) -> None:
        if index.id_column is None:
            advice = "build it by selfsent index with --id-column"
            raise SettingsError(f"{index.path} has no ids, which judgements need: {advice}")
        self._index, self._judgements, self._column = index, judgements, index.id_column

    @property
    def about(self) -> dict[str, int]:
        """The numbers of judgements, and of queries with an answer."""
        return {"judged": len(self._judgements), "answered": self._judgements.queries}

    def of(self, query: str, hits: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The id of each hit, as text, and its judgement: True, False or None."""
        names = ["" if hit[self._column] is None else str(hit[self._column]) for hit in hits]
        return [{"id": name, "relevant": self._judgements.of(query, name)} for name in names]

    def judge(self, request: JudgeRequest) -> dict[str, int]:
        """Write a judgement, or take it back.

        Raises:
            SettingsError: a query that is too long, or an id that the index does not have.
            DataError: as `Judgements.judge`.
            OutputError: the file cannot be written.
        """
        if len(request.query) > LONGEST:
            raise SettingsError(f"query is too long to be judged: at most {LONGEST:,} characters")
        if not self._index.has_id(request.id):
            raise SettingsError("the index has no text with this id")
        self._judgements.judge(request.query, request.id, request.relevant)
        return self.about
