"""Writes rows, texts and words into the database of an index, within a transaction."""

from __future__ import annotations

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.batch import as_kind
from selfsent.lexical import Analyzer
from selfsent.search.index_files import ROW, cells_of

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus

TOGETHER = 8192
"""Texts or rows of the input at a time."""
_TERMS = 1 << 22
"""Terms of a block: they bound the memory of writing."""


class RowWriter:
    """Changes the rows of an index, within a transaction."""

    def __init__(
        self, db: sqlite3.Connection, columns: dict[str, type], id_column: str | None, language: str | None
    ) -> None:
        self._db, self._columns, self._id_column = db, columns, id_column
        self._cells = cells_of(columns)
        self.id_cell = None if id_column is None else self._cells[id_column]
        self._analyzer = Analyzer(language)
        [self._slots] = db.execute("SELECT COALESCE(SUM(LENGTH(lengths)), 0) / 4 FROM blocks").fetchone()
        [self._row] = db.execute("SELECT rows FROM state").fetchone()
        self._is_new = not self._slots
        self.removed = 0
        for table in ("seen(id, row)", "gone(number, slot)"):
            db.execute(f"CREATE TEMP TABLE {table}")

    def add(self, corpus: Corpus, vectors: Callable[[NDArray[np.int64]], NDArray[np.float16] | None]) -> int:
        """Add the rows of a corpus; returns the number of new texts.

        Args:
            corpus: to add.
            vectors: those of its rows (n,) that the database keeps; None if it keeps none.
        """
        slots, first = np.empty(len(corpus), np.int64), self._slots
        words = Words(self._db)
        for start in range(0, len(corpus), TOGETHER):
            rows = np.arange(start, min(len(corpus), start + TOGETHER))
            texts = corpus.texts(rows)
            keys = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True) for text in texts]
            slots[rows] = self._known(texts, keys)
            new = np.flatnonzero(slots[rows] < 0)
            slots[rows[new]] = self._slots + np.arange(len(new))
            given = ((int(slots[start + i]), keys[i], texts[i]) for i in new.tolist())
            self._db.executemany("INSERT INTO texts VALUES(?, ?, ?)", given)
            terms = [self._analyzer(texts[i]) for i in new.tolist()]
            words.add(self._slots, terms)
            if len(new):
                lengths, block = np.array(list(map(len, terms)), np.int32), vectors(rows[new])
                cells = self._slots, lengths.tobytes(), None if block is None else block.tobytes()
                self._db.execute("INSERT INTO blocks VALUES(?, ?, ?)", cells)
            self._slots += len(new)
        words.flush()
        self._add_inputs(corpus, slots)
        return int(self._slots - first)

    def _known(self, texts: Sequence[str], keys: Sequence[int]) -> list[int]:
        """The slot of each text; -1 for new ones."""
        if self._is_new:
            return [-1] * len(texts)
        query = "SELECT COALESCE((SELECT slot FROM texts WHERE key = ? AND text = ?), -1)"
        return [self._db.execute(query, pair).fetchone()[0] for pair in zip(keys, texts, strict=True)]

    def _add_inputs(self, corpus: Corpus, slots: NDArray[np.int64]) -> None:
        inputs = corpus.input_rows
        for start in range(0, len(inputs), TOGETHER):
            numbers = np.arange(start, min(len(inputs), start + TOGETHER))
            held = np.asarray(inputs.corpus_rows[numbers])
            cells = inputs.describe(numbers)
            rows = [self._row + row for row in cells["row"]]
            sentences = cells.get("sentence", [0] * len(rows))
            columns = [[as_kind(cell, self._columns[name]) for cell in cells[name]] for name in self._cells]
            if self._id_column is not None:
                ids = columns[list(self._cells).index(self._id_column)]
                given = ((each, row) for each, row in zip(ids, rows, strict=True) if each is not None)
                self._db.executemany("INSERT INTO seen VALUES(?, ?)", given)
            each = zip(rows, sentences, held.tolist(), *columns, strict=True)
            kept = (((row << ROW) + sentence, int(slots[own]), *rest) for row, sentence, own, *rest in each if own >= 0)
            self._db.executemany(f"INSERT INTO inputs VALUES(?, ?{', ?' * len(columns)})", kept)
        self._db.execute("UPDATE state SET rows = rows + ?", (inputs.rows,))

    def replace(self) -> int:
        """Remove the rows whose id came again, in a later row; returns how many."""
        if self.id_cell is not None:
            newest = "SELECT id, MAX(row) AS row FROM seen GROUP BY id HAVING ? OR MAX(row) > MIN(row)"
            joined = f"({newest}) AS newest JOIN inputs ON inputs.{self.id_cell} = newest.id"
            older = f"SELECT number, slot FROM {joined} WHERE number < newest.row << {ROW}"
            self.remove(older, [not self._is_new])
        return self.removed

    def remove(self, query: str, values: Sequence[Any]) -> None:
        """Remove the inputs that a query finds, and texts that no other input has."""
        self._db.execute("DELETE FROM gone")
        self._db.execute(f"INSERT INTO gone {query}", values)
        self.removed += self._db.execute(f"SELECT COUNT(DISTINCT number >> {ROW}) FROM gone").fetchone()[0]
        self._db.execute("DELETE FROM inputs WHERE number IN (SELECT number FROM gone)")
        lost = "SELECT DISTINCT slot FROM gone WHERE slot NOT IN (SELECT slot FROM inputs)"
        self._db.execute(f"INSERT INTO dead {lost}")
        self._db.execute(f"DELETE FROM texts WHERE slot IN ({lost})")


class Words:
    """Collects the terms of texts, and writes them as blocks: for each term its slots, and counts there."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db, self._first = db, 0
        self._clear()

    def _clear(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._terms, self._lengths = array("i"), array("i")

    def add(self, slot: int, texts: Sequence[Sequence[str]]) -> None:
        """Add the terms of texts in slots from `slot` on, which follow those that came before."""
        if not self._lengths:
            self._first = slot
        for terms in texts:
            self._terms.extend(map(self._numbers.__getitem__, terms))
            self._lengths.append(len(terms))
        if len(self._terms) > _TERMS:
            self.flush()

    def flush(self) -> None:
        """Write what was collected."""
        if not self._terms:
            return
        terms = np.array(self._terms, np.int64)
        slots = np.repeat(np.arange(self._first, self._first + len(self._lengths)), self._lengths)
        pairs, counts = np.unique(terms << 32 | slots, return_counts=True)
        slots, counts = (pairs & 0xFFFFFFFF).astype(np.int32), np.minimum(counts, 65535).astype(np.uint16)
        ends = np.searchsorted(pairs, np.arange(len(self._numbers) + 1) << 32).tolist()
        rows = (
            (term, self._first, slots[ends[i] : ends[i + 1]].tobytes(), counts[ends[i] : ends[i + 1]].tobytes())
            for term, i in sorted(self._numbers.items())
        )
        self._db.executemany("INSERT INTO postings VALUES(?, ?, ?, ?)", rows)
        self._clear()
