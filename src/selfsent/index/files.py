"""The files of an index: a manifest, a database of rows, postings and new vectors, and a faiss file of older ones."""

from __future__ import annotations

import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from selfsent.data.corpus.batch import KINDS, PARTS
from selfsent.errors import DataError, OutputError
from selfsent.files import read_json, write_json
from selfsent.index.conditions import sql_columns_of
from selfsent.index.limits import LIMITS, IndexLimits
from selfsent.integrity import checksums, damaged, is_signed, signed
from selfsent.lexical import Analyzer
from selfsent.search.ivf import IVF

MANIFEST, SUMS = "index.json", "sums.json"
VERSION = 3
"""Format version of an index that is written; see `_read_version_2` for the older one that is read."""
_RENAMED = {"word_weight": "lexical_weight", "arranged": "indexed", "probed": "nprobe", "cells": "nlist"}
"""Keys of the manifest in version 2, and their names now."""
SENTENCE_BITS = 20
"""An input has the number row · 2^20 + sentence; the bound on sentences in a text."""
_LOCK_TIMEOUT = 600
"""Seconds to wait for another writer."""
_SCHEMA = """
CREATE TABLE state(version INTEGER, rows INTEGER);
CREATE TABLE texts(doc_id INTEGER PRIMARY KEY, key INTEGER, text TEXT);
CREATE TABLE inputs(number INTEGER PRIMARY KEY, doc_id INTEGER{});
CREATE TABLE postings(term TEXT, start INTEGER, doc_ids BLOB, counts BLOB, PRIMARY KEY(term, start)) WITHOUT ROWID;
CREATE TABLE blocks(start INTEGER PRIMARY KEY, lengths BLOB, vectors BLOB);
CREATE TABLE tombstones(doc_id INTEGER PRIMARY KEY);
INSERT INTO state VALUES(1, 0);
"""
_T = TypeVar("_T")


class IndexFiles:
    """One segment version of an index: the output of `write_index` or of a compaction, and later writes to it.

    Compaction replaces the directory as a whole. The database gets a new name each time: SQLite finds its journal by
    name, and a reader of the older version must not open the journal of the newer one.

    Args:
        path: the directory.
        limits: of the index.

    Raises:
        DataError: no index, a damaged one, or one of an unknown version.
    """

    def __init__(self, path: Path, limits: IndexLimits = LIMITS) -> None:
        self.path, self.limits, self.segment_version = path, limits, segment_version(path)
        self.manifest = read_json(path / MANIFEST)
        if not is_index(path):
            what = "does not exist" if not path.exists() else "holds no index"
            raise DataError(f"{path} {what}: make one with selfsent index build MODEL CORPUS --output {path}")
        self.version = self.manifest["version"]
        """Format version of these files."""
        if self.version not in (2, VERSION):
            again = f"selfsent index build {self.manifest.get('model', 'MODEL')} CORPUS --output {path} --overwrite"
            raise DataError(f"{path} was made by another version of selfsent: make it again with {again}")
        if not is_signed(self.manifest):
            raise self.damaged(f"{MANIFEST} is not as it was written")
        self.manifest = {_RENAMED.get(name, name): value for name, value in self.manifest.items()}
        try:
            self.columns: dict[str, type] = {name: KINDS[kind] for name, kind in self.manifest["columns"].items()}
            self.rows = path / str(self.manifest["files"][0])
            self.id_column: str | None = self.manifest["id_column"]
            self.sql_columns = sql_columns_of(self.columns)
            """Name in the database of each metadata column."""
            self.id_sql_column = None if self.id_column is None else self.sql_columns[self.id_column]
            """Name in the database of the column with the ids."""
            self.part = next((part for part in PARTS if part in self.columns), None)
            """The unit of a row: `sentence` or `passage`; None for whole texts."""
            self.size = int(self.manifest["size"])
            if odd := [name for name in self.manifest["files"] if Path(name).name != name]:
                raise ValueError(f"{odd[0]!r} is elsewhere")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise self.damaged(repr(error)) from error

    def was_analyzed_by(self, analyzer: Analyzer) -> bool:
        """Whether the postings hold the terms of this analyzer, not those of other rules or of another Snowball."""
        return self.version == VERSION and self.manifest.get("analyzer") == analyzer.fingerprint

    def damaged(self, why: object) -> DataError:
        """The error of a damaged index."""
        return DataError(f"{self.path} is damaged ({why}): make the index again")

    @cached_property
    def ivf(self) -> IVF | None:
        """The indexed vectors, of the first document ids, on disk; None if all are in the database."""
        if not self.manifest["indexed"]:
            return None
        found = IVF.read(self.path / self.manifest["files"][1])
        found.nprobe = int(self.manifest["nprobe"])
        return found

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of SQLite into those of a damaged, unreadable or locked index."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "full" in str(error) or "readonly" in str(error):
                raise OutputError(f"{self.path} cannot be written: {error}") from error
            raise self.damaged(error) from error
        except sqlite3.DatabaseError as error:
            raise self.damaged(error) from error

    def connect(self, writing: bool = False) -> sqlite3.Connection:
        """A connection to the database, in autocommit mode outside of transactions."""
        name, writable = quote(str(self.rows.absolute())), os.access(self.path, os.W_OK)
        mode = "mode=rw" if writable else "mode=ro&immutable=1"
        db = sqlite3.connect(f"file:{name}?{mode}", _LOCK_TIMEOUT, 0, None, False, uri=True)
        db.execute("PRAGMA temp_store=MEMORY")
        if self.version == 2:
            self._read_version_2(db)
        db.execute(f"PRAGMA query_only={not writing}")
        db.execute("PRAGMA secure_delete=ON")  # no deleted text stays in the file
        return db

    def _read_version_2(self, db: sqlite3.Connection) -> None:
        """Show the tables of version 2 under their names now: temporary views come before tables of the same name."""
        columns = "".join(f", {name}" for name in self.sql_columns.values())
        db.executescript(f"""
            CREATE TEMP VIEW texts AS SELECT slot AS doc_id, key, text FROM main.texts;
            CREATE TEMP VIEW inputs AS SELECT number, slot AS doc_id{columns} FROM main.inputs;
            CREATE TEMP VIEW postings AS SELECT term, start, slots AS doc_ids, counts FROM main.postings;
            CREATE TEMP VIEW tombstones AS SELECT slot AS doc_id FROM main.dead;
        """)

    def check(self, db: sqlite3.Connection, max_size: float = float("inf"), whole: bool = True) -> None:
        """Verify the checksums, in a transaction, unless a later or unfinished write has not written them yet.

        Args:
            db: a connection.
            max_size: maximum size in bytes of an index to verify.
            whole: whether to read files whose size and time of change are as recorded with their checksum, too.

        Raises:
            DataError: a file has changed.
        """
        about, journal = read_json(self.path / SUMS), self.rows.with_name(f"{self.rows.name}-wal")
        [version] = db.execute("SELECT version FROM state").fetchone()
        if not {"version", "sums"} <= {*about} or not is_signed(about):
            raise self.damaged(f"{SUMS} is not as it was written")
        if about["version"] != version or (journal.exists() and journal.stat().st_size):
            return
        sums, known, now = about["sums"], {} if whole else about.get("stats", {}), self._stats()
        if sum(file.stat().st_size for name in sums if (file := self.path / name).exists()) > max_size:
            return
        sums = {name: each for name, each in sums.items() if name not in now or known.get(name) != now[name]}
        # A reader that began with an empty journal reads the file itself, and no checkpoint changes that meanwhile.
        if self.rows.name in sums and _checksum(self.rows) != sums[self.rows.name]:
            raise self.damaged(f"{self.rows.name} is not as it was written")
        if name := damaged(self.path, {name: each for name, each in sums.items() if name != self.rows.name}):
            raise self.damaged(f"{name} is not as it was written")

    def write_checksums(self, db: sqlite3.Connection) -> None:
        """Move the journal into the database and write checksums; do neither while a reader needs the journal."""
        db.execute("PRAGMA busy_timeout=0")
        [busy, *_] = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            [version] = db.execute("SELECT version FROM state").fetchone()
            about, stats, others = read_json(self.path / SUMS), self._stats(), self.manifest["files"][1:]
            known = about.get("stats", {})  # vectors of a segment version never change
            sums = {name: about["sums"][name] for name in others if name in known}
            sums |= checksums(self.path, [name for name in others if name not in sums])
            sums[self.rows.name] = _checksum(self.rows)
            write_json(self.path / SUMS, signed({"version": version, "sums": sums, "stats": stats}))

    def _stats(self) -> dict[str, list[int]]:
        """Size and time of change of each file that is there."""
        found = {name: self.path / name for name in self.manifest["files"] if (self.path / name).is_file()}
        return {name: [about.st_size, about.st_mtime_ns] for name, path in found.items() if (about := path.stat())}


_OPENED: dict[tuple[int, int], int] = {}
"""Open descriptors of databases whose checksum was computed, by device and inode."""
_READING = threading.RLock()
"""Held while a checksum is computed, so that no other thread closes its descriptor."""


def close_deleted() -> None:
    """Close the descriptors of databases that were deleted: until then their space on the disk stays taken.

    While another thread computes a checksum this is left to a later call.
    """
    if _READING.acquire(blocking=False):
        try:
            for file, descriptor in [*_OPENED.items()]:
                if not os.fstat(descriptor).st_nlink:
                    os.close(_OPENED.pop(file))
        finally:
            _READING.release()


def _checksum(path: Path) -> int:
    """The CRC-32 of a database.

    Its descriptor stays open: closing it would release the locks that SQLite holds for this process, and another
    process could then remove the journal.
    """
    with _READING:
        close_deleted()
        about = path.stat()
        descriptor = _OPENED.get((about.st_dev, about.st_ino), -1)
        if descriptor < 0:
            descriptor = _OPENED[about.st_dev, about.st_ino] = os.open(path, os.O_RDONLY)
        found = start = 0
        while part := os.pread(descriptor, 1 << 20, start):
            found, start = zlib.crc32(part, found), start + len(part)
        return found


def is_index(path: Path) -> bool:
    """Whether a directory holds an index of some version."""
    return read_json(path / MANIFEST).get("kind") == "selfsent index"


def segment_version(path: Path) -> tuple[int, int]:
    """Identity of the segment version in a directory: inode and time of change of its manifest; zeros without one."""
    try:
        about = (path / MANIFEST).stat()
    except OSError:
        return 0, 0
    return about.st_ino, about.st_mtime_ns


def of_newest_segment(
    path: Path, make: Callable[[IndexFiles], _T], files: IndexFiles | None = None, limits: IndexLimits = LIMITS
) -> tuple[IndexFiles, _T]:
    """The newest segment version in a directory, and the result of a function of it.

    The function is called again if a newer version replaces the files meanwhile.

    Args:
        path: the directory.
        make: the function; it raises `DataError` or `sqlite3.Error` where files have disappeared.
        files: the newest version so far.
        limits: of the index, where there is none so far.
    """
    if files is not None:
        limits = files.limits
    while True:
        if files is None or segment_version(path) != files.segment_version:
            files = IndexFiles(path, limits)
        try:
            return files, make(files)
        except (DataError, sqlite3.Error):
            if segment_version(path) == files.segment_version:
                raise


def new_database(path: Path, columns: Mapping[str, type]) -> sqlite3.Connection:
    """A new database, without protection against a crash until its journal is on."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;")
    db.executescript(_SCHEMA.format("".join(f", {name}" for name in sql_columns_of(columns).values())))
    return db


def make_lookups(db: sqlite3.Connection, id_sql_column: str | None) -> None:
    """Create the lookups by text, document and id; faster after the tables are full."""
    db.execute("CREATE INDEX texts_key ON texts(key)")
    db.execute("CREATE INDEX inputs_doc_id ON inputs(doc_id)")
    if id_sql_column:
        db.execute(f"CREATE INDEX inputs_id ON inputs({id_sql_column})")
