"""Writes rows, texts and postings into the database of an index, within a transaction."""

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

from selfsent.data.corpus.batch import PARTS, as_kind
from selfsent.index.conditions import sql_columns_of
from selfsent.index.files import SENTENCE_BITS
from selfsent.lexical import Analyzer

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus

TOGETHER = 8192
"""Texts, or rows of the input, in a batch."""
_TERMS = 1 << 22
"""Maximum number of terms in a block, which bounds the memory of writing."""


class RowWriter:
    """Changes the rows of an index, within a transaction.

    Args:
        db: a connection that holds the transaction.
        columns: names and types of the metadata columns.
        id_column: the column that identifies rows; None without.
        language: of the analyzer.
    """

    def __init__(
        self, db: sqlite3.Connection, columns: dict[str, type], id_column: str | None, language: str | None
    ) -> None:
        self._db, self._columns, self._id_column = db, columns, id_column
        self._sql_columns = sql_columns_of(columns)
        self.id_sql_column = None if id_column is None else self._sql_columns[id_column]
        self._analyzer = Analyzer(language)
        [self._n_docs] = db.execute("SELECT COALESCE(SUM(LENGTH(lengths)), 0) / 4 FROM blocks").fetchone()
        [self._row] = db.execute("SELECT rows FROM state").fetchone()
        self._is_new = not self._n_docs
        self.removed = 0
        for table in ("seen(id, row)", "gone(number, doc_id)"):
            db.execute(f"CREATE TEMP TABLE {table}")

    def add(self, corpus: Corpus, vectors: Callable[[NDArray[np.int64]], NDArray[np.float16] | None]) -> int:
        """Add the rows of a corpus; returns the number of new texts.

        Args:
            corpus: to add.
            vectors: from rows of the corpus (n,) to the vectors for the database (n, d), or None for none.
        """
        doc_ids, first = np.empty(len(corpus), np.int64), self._n_docs
        postings = PostingsWriter(self._db)
        for start in range(0, len(corpus), TOGETHER):
            rows = np.arange(start, min(len(corpus), start + TOGETHER))
            texts = corpus.texts(rows)
            keys = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True) for text in texts]
            doc_ids[rows] = self._known(texts, keys)
            new = np.flatnonzero(doc_ids[rows] < 0)
            doc_ids[rows[new]] = self._n_docs + np.arange(len(new))
            given = ((int(doc_ids[start + i]), keys[i], texts[i]) for i in new.tolist())
            self._db.executemany("INSERT INTO texts VALUES(?, ?, ?)", given)
            terms = [self._analyzer(texts[i]) for i in new.tolist()]
            postings.add(self._n_docs, terms)
            if len(new):
                lengths, block = np.array(list(map(len, terms)), np.int32), vectors(rows[new])
                block_of = self._n_docs, lengths.tobytes(), None if block is None else block.tobytes()
                self._db.execute("INSERT INTO blocks VALUES(?, ?, ?)", block_of)
            self._n_docs += len(new)
        postings.flush()
        self._add_inputs(corpus, doc_ids)
        return int(self._n_docs - first)

    def _known(self, texts: Sequence[str], keys: Sequence[int]) -> list[int]:
        """The document id of each text; -1 for new ones."""
        if self._is_new:
            return [-1] * len(texts)
        query = "SELECT COALESCE((SELECT doc_id FROM texts WHERE key = ? AND text = ?), -1)"
        return [self._db.execute(query, pair).fetchone()[0] for pair in zip(keys, texts, strict=True)]

    def _add_inputs(self, corpus: Corpus, doc_ids: NDArray[np.int64]) -> None:
        inputs = corpus.input_rows
        for start in range(0, len(inputs), TOGETHER):
            numbers = np.arange(start, min(len(inputs), start + TOGETHER))
            held = np.asarray(inputs.corpus_rows[numbers])
            cells = inputs.describe(numbers)
            rows = [self._row + row for row in cells["row"]]
            sentences = next((cells[part] for part in PARTS if part in cells), [0] * len(rows))
            columns = [[as_kind(cell, self._columns[name]) for cell in cells[name]] for name in self._sql_columns]
            if self._id_column is not None:
                ids = columns[list(self._sql_columns).index(self._id_column)]
                given = ((each, row) for each, row in zip(ids, rows, strict=True) if each is not None)
                self._db.executemany("INSERT INTO seen VALUES(?, ?)", given)
            each = zip(rows, sentences, held.tolist(), *columns, strict=True)
            kept = (
                ((row << SENTENCE_BITS) + sentence, int(doc_ids[own]), *rest)
                for row, sentence, own, *rest in each
                if own >= 0
            )
            self._db.executemany(f"INSERT INTO inputs VALUES(?, ?{', ?' * len(columns)})", kept)
        self._db.execute("UPDATE state SET rows = rows + ?", (inputs.rows,))

    def replace(self) -> int:
        """Remove the rows whose id comes again in a later row; returns their number."""
        if self.id_sql_column is not None:
            newest = "SELECT id, MAX(row) AS row FROM seen GROUP BY id HAVING ? OR MAX(row) > MIN(row)"
            joined = f"({newest}) AS newest JOIN inputs ON inputs.{self.id_sql_column} = newest.id"
            older = f"SELECT number, doc_id FROM {joined} WHERE number < newest.row << {SENTENCE_BITS}"
            self.remove(older, [not self._is_new])
        return self.removed

    def remove(self, query: str, values: Sequence[Any]) -> None:
        """Remove the inputs found by a query, and the texts without another input."""
        self._db.execute("DELETE FROM gone")
        self._db.execute(f"INSERT INTO gone {query}", values)
        self.removed += self._db.execute(f"SELECT COUNT(DISTINCT number >> {SENTENCE_BITS}) FROM gone").fetchone()[0]
        self._db.execute("DELETE FROM inputs WHERE number IN (SELECT number FROM gone)")
        lost = "SELECT DISTINCT doc_id FROM gone WHERE doc_id NOT IN (SELECT doc_id FROM inputs)"
        self._db.execute(f"INSERT INTO tombstones {lost}")
        self._db.execute(f"DELETE FROM texts WHERE doc_id IN ({lost})")


class PostingsWriter:
    """Collects the terms of texts, and writes blocks of postings: for each term its document ids and counts.

    Args:
        db: a connection that holds the transaction.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db, self._first = db, 0
        self._clear()

    def _clear(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        self._terms, self._lengths = array("i"), array("i")

    def add(self, doc_id: int, texts: Sequence[Sequence[str]]) -> None:
        """Add the terms of texts with document ids from `doc_id` on, which continue those of the last call."""
        if not self._lengths:
            self._first = doc_id
        for terms in texts:
            self._terms.extend(map(self._numbers.__getitem__, terms))
            self._lengths.append(len(terms))
        if len(self._terms) > _TERMS:
            self.flush()

    def flush(self) -> None:
        """Write the collected terms."""
        if not self._terms:
            return
        terms = np.array(self._terms, np.int64)
        doc_ids = np.repeat(np.arange(self._first, self._first + len(self._lengths)), self._lengths)
        pairs, counts = np.unique(terms << 32 | doc_ids, return_counts=True)
        doc_ids, counts = (pairs & 0xFFFFFFFF).astype(np.int32), np.minimum(counts, 65535).astype(np.uint16)
        ends = np.searchsorted(pairs, np.arange(len(self._numbers) + 1) << 32).tolist()
        rows = (
            (term, self._first, doc_ids[ends[i] : ends[i + 1]].tobytes(), counts[ends[i] : ends[i + 1]].tobytes())
            for term, i in sorted(self._numbers.items())
        )
        self._db.executemany("INSERT INTO postings VALUES(?, ?, ?, ?)", rows)
        self._clear()
