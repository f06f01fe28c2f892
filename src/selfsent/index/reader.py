"""Reads the newest version of an index: its files, connections to them, and a snapshot in memory."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from os import getpid
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from selfsent.index.files import IndexFiles, close_deleted, of_newest_segment, segment_version
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


class Connection(NamedTuple):
    """A connection to a segment version, which no two threads use at once, and the analyzer that goes with it."""

    process: int
    files: IndexFiles
    db: sqlite3.Connection
    analyzer: Analyzer


def _close(connections: Iterable[Connection]) -> None:
    """Close the connections of this process."""
    for each in connections:
        if each.process == getpid():
            each.db.close()
    close_deleted()


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
        self._free: list[Connection] = []
        """Connections that no thread uses. Bound to threads, those of an idle one would keep files that are gone."""
        weakref.finalize(self, _close, self._free)  # the statements of a connection hold it, until a garbage collection
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
        with self._connected() as (_, files, db, analyzer), files.errors():
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

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """A connection to the newest segment version, which another thread may have afterwards."""
        with self._lock:
            if segment_version(self._path) != self.files.segment_version:
                self._open()
            files, free = self.files, [each for each in self._free if each.process == getpid()]  # none survives a fork
            self._free[:] = [each for each in free if each.files is files]
            if old := [each for each in free if each.files is not files]:
                _close(old)
            found = self._free.pop() if self._free else None
        if found is None:
            with files.errors():
                files, db = of_newest_segment(self._path, IndexFiles.connect, files)
            found = Connection(getpid(), files, db, Analyzer(files.manifest["language"]))
        try:
            yield found
        finally:
            with self._lock:
                kept = found.files is self.files and not found.db.in_transaction
                if kept:
                    self._free.append(found)
            if not kept:
                _close([found])

    def _newer(self, files: IndexFiles, db: sqlite3.Connection, version: int) -> Snapshot:
        """The snapshot of a version; the newest is kept."""
        with self._lock:
            if files is self.files and self._snapshot.version == version:
                return self._snapshot
            snapshot = Snapshot(files, db)
            if files is self.files and version > self._snapshot.version:
                self._snapshot = snapshot
            return snapshot
