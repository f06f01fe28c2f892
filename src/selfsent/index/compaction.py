"""Compaction of an index: the next segment version, without deleted texts."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.files import atomic_directory
from selfsent.index.calibration import FILE as CALIBRATION
from selfsent.index.files import IndexFiles, make_lookups
from selfsent.index.rows import TOGETHER, PostingsWriter
from selfsent.index.segment import new_segment, writing_segment
from selfsent.index.snapshot import Snapshot
from selfsent.lexical import Analyzer


def compact(files: IndexFiles) -> None:
    """Write the next segment version: without deleted texts, with all vectors in IVF lists and one block of postings.

    It replaces the old version in one step; open readers of the old one are unaffected. Postings of an earlier analyzer
    are made again from the texts.

    Raises:
        DataError: the index is damaged.
        OutputError: it cannot be written.
    """
    with writing_segment(files, changing=False) as (files, db), atomic_directory(files.path) as temporary:
        snapshot = Snapshot(files, db)
        new = np.cumsum(snapshot.alive) - 1
        old = np.flatnonzero(snapshot.alive)
        analyzer = Analyzer(files.manifest["language"])
        same_terms = files.was_analyzed_by(analyzer)
        with new_segment(temporary, {**files.manifest, "analyzer": analyzer.fingerprint}) as (other, add_ivf):
            other.execute("UPDATE state SET version = ?, rows = ?", (snapshot.version + 1, snapshot.rows))
            if snapshot.query_map is not None:
                snapshot.query_map.write(other)
            texts = db.execute("SELECT doc_id, key, text FROM texts ORDER BY doc_id")
            kept_texts = ((int(new[doc_id]), *rest) for doc_id, *rest in texts)
            other.executemany("INSERT INTO texts VALUES(?, ?, ?)", kept_texts)
            more = ", ?" * len(files.sql_columns)
            inputs = ((number, int(new[doc_id]), *rest) for number, doc_id, *rest in db.execute("SELECT * FROM inputs"))
            other.executemany(f"INSERT INTO inputs VALUES(?, ?{more})", inputs)
            if same_terms:
                other.executemany("INSERT INTO postings VALUES(?, 0, ?, ?)", _joined(db, snapshot.alive, new))
                lengths = b"".join(each for (each,) in db.execute("SELECT lengths FROM blocks ORDER BY start"))
                kept = np.frombuffer(lengths, np.int32)[old]
            else:
                kept = _analyzed(other, analyzer)
            indexed = len(old) > files.limits.max_unindexed
            for start in range(0, len(old), TOGETHER):
                part = slice(start, start + TOGETHER)
                block = None if indexed else snapshot.take(old[part]).astype(np.float16).tobytes()
                other.execute("INSERT INTO blocks VALUES(?, ?, ?)", (start, kept[part].tobytes(), block))
            if indexed:
                add_ivf(files, lambda numbers: snapshot.take(old[numbers]), len(old))
            make_lookups(other, files.id_sql_column)
        if same_terms and (files.path / CALIBRATION).exists():  # after many changes it is out of date by itself
            shutil.copyfile(files.path / CALIBRATION, temporary / CALIBRATION)


def compact_if_due(files: IndexFiles) -> None:
    """Compact an index with too many tombstones, unindexed vectors, or blocks of postings."""
    with files.errors(), closing(files.connect()) as db:
        [tombstones] = db.execute("SELECT COUNT(*) FROM tombstones").fetchone()
        [blocks, texts] = db.execute("SELECT COUNT(*), COALESCE(SUM(LENGTH(lengths)), 0) / 4 FROM blocks").fetchone()
    unindexed, limits = texts - int(files.manifest["indexed"]), files.limits
    if (
        tombstones * limits.max_tombstones_share > texts
        or unindexed > max(limits.max_unindexed, texts // limits.unindexed_share)
        or blocks > limits.max_blocks + texts // TOGETHER
    ):
        compact(files)


def upgraded(files: IndexFiles) -> IndexFiles:
    """The files, compacted where their format or their terms are those of an earlier version."""
    if files.was_analyzed_by(Analyzer(files.manifest["language"])):
        return files
    compact(files)
    return IndexFiles(files.path, files.limits)


def _analyzed(db: sqlite3.Connection, analyzer: Analyzer) -> NDArray[np.int32]:
    """Write the postings of all texts of a database; returns the number of terms in each text, (n,)."""
    postings, lengths = PostingsWriter(db), list[int]()
    texts = db.execute("SELECT text FROM texts ORDER BY doc_id")
    while batch := texts.fetchmany(TOGETHER):
        terms = [analyzer(text) for (text,) in batch]
        postings.add(len(lengths), terms)
        lengths += map(len, terms)
    postings.flush()
    return np.array(lengths, np.int32)


def _joined(db: sqlite3.Connection, alive: NDArray[np.bool_], new: NDArray[np.int64]) -> Iterator[tuple[Any, ...]]:
    """Each term with all of its document ids and counts, without deleted texts."""
    found = db.execute("SELECT term, doc_ids, counts FROM postings ORDER BY term, start")
    for term, group in groupby(found, key=lambda each: each[0]):
        parts = [(doc_ids, counts) for _, doc_ids, counts in group]
        doc_ids = np.frombuffer(b"".join(part for part, _ in parts), np.int32)
        kept = alive[doc_ids]
        if kept.any():
            counts = np.frombuffer(b"".join(part for _, part in parts), np.uint16)
            yield term, new[doc_ids[kept]].astype(np.int32).tobytes(), counts[kept].tobytes()
