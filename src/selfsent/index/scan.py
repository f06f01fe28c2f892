"""The rows of an index in order, with vectors and BM25 weights, for a database that is to rank as the index does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.index.files import SENTENCE_BITS, IndexFiles
from selfsent.index.lookup import columns_of
from selfsent.index.reader import Reading
from selfsent.lexical.bm25 import BM25Stats, term_number


@dataclass(frozen=True)
class Row:
    """A row of an index.

    Args:
        key: 63 bits that stay the same while the row keeps its id, or its number in an index without ids.
        columns: of metadata, the number of the sentence or passage, and the number of the row in an index without ids.
        repeats: whether an earlier row has the same text, of which a search shows the first alone.
        text: of the row.
        vector: (d,) of length 1.
        words: the terms of the text in order, by `term_number`.
        terms: BM25 weight of each of them.
    """

    key: int
    columns: dict[str, Any]
    repeats: bool
    text: str
    vector: NDArray[np.float32]
    words: list[int]
    terms: dict[int, float]


def key_of(number: int, name: Any) -> int:
    """The key of a row, from its number with the sentence, and its id (None without)."""
    what = ("row", number) if name is None else ("id", name, number & ((1 << SENTENCE_BITS) - 1))
    return int.from_bytes(blake2b(repr(what).encode(), digest_size=8).digest()) >> 1


def row_keys(files: IndexFiles, db: sqlite3.Connection) -> NDArray[np.int64]:
    """The keys of all rows (n,), in order."""
    found = db.execute(f"SELECT number, {files.id_sql_column or 'NULL'} FROM inputs ORDER BY number")
    return np.fromiter((key_of(*each) for each in found), np.int64)


def scan_rows(now: Reading, mean_length: float, together: int) -> Iterator[list[Row]]:
    """Batches of rows, in order.

    Args:
        now: a version of the index.
        mean_length: of the texts in terms, for BM25.
        together: rows of a batch.
    """
    files, db, snapshot, analyzer = now
    stats = BM25Stats(snapshot.count, mean_length)
    columns = "".join(f", {column}" for column in files.sql_columns.values())
    first = "(SELECT MIN(number) FROM inputs AS other WHERE other.doc_id = inputs.doc_id)"
    about = f"number, doc_id, {files.id_sql_column or 'NULL'}, number > {first}, text{columns}"
    found = db.execute(f"SELECT {about} FROM inputs JOIN texts USING(doc_id) ORDER BY number")
    while batch := found.fetchmany(together):
        doc_ids, places = np.unique(np.array([doc_id for _, doc_id, *_ in batch], np.int64), return_inverse=True)
        vectors = snapshot.take(doc_ids)[places]
        rows = list[Row]()
        for (number, _, name, repeats, text, *cells), vector in zip(batch, vectors, strict=True):
            place = {} if files.id_column is not None else {"row": number >> SENTENCE_BITS}
            place |= {} if files.part is None else {files.part: number & ((1 << SENTENCE_BITS) - 1)}
            words = [*map(term_number, analyzer(text))]
            weights = stats.text_weights(words)
            rows.append(
                Row(
                    key_of(number, name),
                    {**place, **columns_of(files, cells)},
                    bool(repeats),
                    text,
                    vector,
                    words,
                    weights,
                )
            )
        yield rows
