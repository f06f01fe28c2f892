"""Reads the newest version of an index: its files, a connection of each thread, and a snapshot in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from os import getpid
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from selfsent.index.files import IndexFiles, of_newest_segment, segment_version
from selfsent.index.limits import LIMITS, IndexLimits
from selfsent.index.snapshot import Snapshot
from selfsent.lexical import Analyzer

if TYPE_CHECKING:
    import sqlite3


class Reading(NamedTuple):
    """One version of an index, within a transaction of a thread."""

    files: IndexFiles
    db: sqlite3.Connection
    snapshot: Snapshot
    analyzer: Analyzer


class Reader:
    """An open index that many threads read.

    Args:
        path: the directory.
        limits: of the index.

    Raises:
        SettingsError: faiss is not installed, and the index has many texts.
        DataError: no index, a damaged one, or one of another version.
    """

    def __init__(self, path: Path, limits: IndexLimits = LIMITS) -> None:
        self._path, self._limits = path, limits
        self._threads, self._lock = threading.local(), threading.Lock()
        self._open(check=True)

    def _open(self, check: bool = False) -> None:
        """Open the newest segment version and its newest snapshot."""

        def snapshot_of(files: IndexFiles) -> Snapshot:
            with files.errors(), closing(files.connect()) as db:
                db.execute("BEGIN")
                if check:
                    files.check(db, files.limits.verified_on_opening)
                return Snapshot(files, db)

        self.files, self._snapshot = of_newest_segment(self._path, snapshot_of, limits=self._limits)

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """A snapshot with its files, a connection of this thread in a transaction, and an analyzer of the language.

        All calls of a thread within the block get the same.
        """
        if (held := getattr(self._threads, "held", None)) is not None:
            yield held
            return
        files, db, analyzer = self._connected()
        with files.errors():
            snapshot = self._snapshot
            db.execute("BEGIN")
            try:
                [version] = db.execute("SELECT version FROM state").fetchone()
                if files is not self.files or version != snapshot.version:
                    snapshot = self._newer(files, db, version)
                self._threads.held = Reading(files, db, snapshot, analyzer)
                yield self._threads.held
            finally:
                self._threads.held = None
                db.execute("COMMIT")

    def _connected(self) -> tuple[IndexFiles, sqlite3.Connection, Analyzer]:
        """The newest segment version, the connection of this thread to it, and its analyzer."""
        with self._lock:
            if segment_version(self._path) != self.files.segment_version:
                self._open()
            files = self.files
        known: tuple[int, IndexFiles, sqlite3.Connection, Analyzer] | None = getattr(self._threads, "known", None)
        if known is not None and known[0] == getpid():  # no connection survives a fork
            if known[1] is files:
                return known[1:]
            known[2].close()
        with files.errors():
            files, db = of_newest_segment(self._path, IndexFiles.connect, files)
        analyzer = Analyzer(files.manifest["language"])
        self._threads.known = getpid(), files, db, analyzer
        return files, db, analyzer

    def _newer(self, files: IndexFiles, db: sqlite3.Connection, version: int) -> Snapshot:
        """The snapshot of a version; the newest is kept."""
        with self._lock:
            if files is self.files and self._snapshot.version == version:
                return self._snapshot
            snapshot = Snapshot(files, db)
            if files is self.files and version > self._snapshot.version:
                self._snapshot = snapshot
            return snapshot
