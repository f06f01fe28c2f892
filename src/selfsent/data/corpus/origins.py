"""The map between rows of the input and rows of the table, and the carried columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.batch import as_kind
from selfsent.data.corpus.mapped import MappedTable, mapped_array

PIECES, FIRST, ROWS, CARRIED = "piece.npy", "first.npy", "piece_row.npy", "carried.arrow"
KINDS: dict[str, type] = {kind.__name__: kind for kind in (bool, int, float, str)}
_TOGETHER = 1 << 16

Integers = NDArray[np.int64]


class Origins:
    """Maps rows of the input to rows of the corpus.

    A *piece* is a text as it was read: a row of the input, or, where texts were split, a sentence of one. The pieces
    are all there, in the order of the input: also empty ones, which are in no row of the corpus, and those that repeat
    another, which share its row.

    Args:
        directory: of the corpus.
        count: rows of the corpus. Where nothing was kept of the input, they stand for its rows.
        kinds: column that was carried along -> `bool`, `int`, `float` or `str`, by name.

    Example:
        >>> from selfsent import read_corpus
        >>> origins = read_corpus(["it rains", "", "it rains"], carry=(), least=1).origins
        >>> origins.table_rows.tolist(), origins.first.tolist(), origins.repeats.tolist()
        ([0, -1, 0], [0], [2])
    """

    def __init__(self, directory: Path, count: int, kinds: Mapping[str, str]) -> None:
        table_rows, first = mapped_array(directory / PIECES), mapped_array(directory / FIRST)
        self.table_rows: Integers = np.arange(count) if table_rows is None else table_rows
        """(pieces,) the row of the corpus that has the text of each piece; -1 for an empty one, or one left out."""
        self.first: Integers = np.arange(count) if first is None else first
        """(count,) the first piece with the text of each row of the corpus."""
        self._rows: Integers | None = mapped_array(directory / ROWS)
        self._carried = MappedTable(directory / CARRIED) if kinds else None
        self._kinds = {name: KINDS[kind] for name, kind in kinds.items()}

    def __len__(self) -> int:
        return len(self.table_rows)

    @property
    def rows(self) -> int:
        """Number of rows of the input."""
        return len(self) if self._rows is None else int(self._rows[-1]) + 1

    @property
    def split(self) -> bool:
        """Whether a row may have several pieces."""
        return self._rows is not None

    @property
    def unit(self) -> str:
        """The name of a piece in messages."""
        return "sentence" if self.split else "row"

    @property
    def columns(self) -> dict[str, type]:
        """Columns of `describe`, with their types."""
        return {"row": int, **({"sentence": int} if self.split else {}), **self._kinds}

    @cached_property
    def repeats(self) -> Integers:
        """(count,) how many pieces have the text of each row of the corpus."""
        counts = np.zeros(len(self.first), dtype=np.int64)
        for start in range(0, len(self), _TOGETHER):
            rows = np.asarray(self.table_rows[start : start + _TOGETHER])
            np.add.at(counts, rows[rows >= 0], 1)
        return counts

    def places(self, pieces: Integers) -> dict[str, Integers]:
        """Positions of pieces (n,) in the input, from 0: `row`, and `sentence` where texts were split, (n,) each."""
        if self._rows is None:
            return {"row": pieces}
        rows = np.asarray(self._rows[pieces])
        return {"row": rows, "sentence": pieces - np.searchsorted(self._rows, rows)}

    def begins(self, pieces: Integers) -> NDArray[np.bool_]:
        """Which pieces (n,) are the first occurrence of their text."""
        rows = np.asarray(self.table_rows[pieces])
        begins = rows >= 0
        begins[begins] = self.first[rows[begins]] == pieces[begins]
        return begins

    def in_pieces(self, advance: Callable[[int], None]) -> Callable[[int], None]:
        """A progress callback in rows of the corpus that calls `advance` in pieces."""
        rows = told = 0

        def more(count: int) -> None:
            nonlocal rows, told
            rows += count
            done = self.done(rows)
            advance(done - told)
            told = done

        return more

    def done(self, rows: int) -> int:
        """Number of leading pieces that are done once the first `rows` rows of the corpus are."""
        return int(self.first[rows]) if rows < len(self.first) else len(self)

    @cached_property
    def textless(self) -> int:
        """Number of pieces that are in no row of the corpus."""
        return len(self) - int(self.repeats.sum())

    def describe(self, pieces: Integers) -> dict[str, list[Any]]:
        """Positions and carried values of pieces (n,): name -> (n,) values.

        `row` is the number of the row of the input, from 0; `sentence`, where texts were split, the place in its row,
        from 0. The others are the columns that were carried along, None where a cell was empty.
        """
        places = self.places(pieces)
        found: dict[str, list[Any]] = {name: numbers.tolist() for name, numbers in places.items()}
        for place, (name, kind) in enumerate(self._kinds.items()):
            cells = self._carried.take(place, places["row"]) if self._carried else []
            found[name] = [as_kind(json.loads(cell), kind.__name__) for cell in cells]
        return found
