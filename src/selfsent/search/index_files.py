"""The files of an index: a manifest, a database of rows, words and new vectors, and a faiss file of the other ones."""

from __future__ import annotations

import csv
import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from selfsent.data.corpus.batch import KINDS
from selfsent.errors import DataError, OutputError, SettingsError, guess
from selfsent.files import read_json, write_json
from selfsent.integrity import checksums, damaged, is_signed, signed
from selfsent.search.ivf import IVF

MANIFEST, SUMS = "index.json", "sums.json"
VERSION = 3
"""Format version of an index; bump when older ones cannot be read, or their words are not those of today."""
ROW = 20
"""An input is numbered by its row, times 2 to this power, plus its sentence: no text has more sentences."""
READ_WHOLE = 1 << 27
"""Checksums of an index up to this size in bytes are verified on opening, those of a larger one only before writing."""
_PATIENCE = 600
"""Seconds that a writer waits for another one."""
_SCHEMA = """
CREATE TABLE state(version INTEGER, rows INTEGER);
CREATE TABLE texts(slot INTEGER PRIMARY KEY, key INTEGER, text TEXT);
CREATE TABLE inputs(number INTEGER PRIMARY KEY, slot INTEGER{});
CREATE TABLE postings(term TEXT, start INTEGER, slots BLOB, counts BLOB, PRIMARY KEY(term, start)) WITHOUT ROWID;
CREATE TABLE blocks(start INTEGER PRIMARY KEY, lengths BLOB, vectors BLOB);
CREATE TABLE dead(slot INTEGER PRIMARY KEY);
INSERT INTO state VALUES(1, 0);
"""
_CONDITION = re.compile(r"\s*(?P<name>.*?)\s*(?P<sign>!=|>=|<=|=|<|>)\s*(?P<value>.*?)\s*", re.DOTALL)
_TRUTH = {"true": 1, "1": 1, "false": 0, "0": 0}
_T = TypeVar("_T")


class IndexFiles:
    """One generation of an index: what `write_index` or a compaction wrote, and later writes added to.

    A directory is replaced as a whole by the next generation, and a database never keeps its name: SQLite finds its
    journal by name, and a process that still reads an older generation must not take that of a newer one for its own.

    Args:
        path: the directory.

    Raises:
        DataError: no index, a damaged one, or one of another version.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.stamp = path, stamp_of(path)
        self.manifest = read_json(path / MANIFEST)
        if not is_index(path):
            what = "does not exist" if not path.exists() else "holds no index"
            raise DataError(f"{path} {what}: make one with selfsent index MODEL CORPUS --output {path}")
        if self.manifest["version"] != VERSION:
            again = f"selfsent index {self.manifest.get('model', 'MODEL')} CORPUS --output {path} --overwrite"
            raise DataError(f"{path} was made by another version of selfsent: make it again with {again}")
        if not is_signed(self.manifest):
            raise self.damaged(f"{MANIFEST} is not as it was written")
        try:
            self.columns: dict[str, type] = {name: KINDS[kind] for name, kind in self.manifest["columns"].items()}
            self.rows = path / str(self.manifest["files"][0])
            self.id_column: str | None = self.manifest["id_column"]
            self.cells = cells_of(self.columns)
            """The column in the database for each carried column."""
            self.id_cell = None if self.id_column is None else self.cells[self.id_column]
            """The column in the database with the ids."""
            self.size = int(self.manifest["size"])
            if odd := [name for name in self.manifest["files"] if Path(name).name != name]:
                raise ValueError(f"{odd[0]!r} is elsewhere")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise self.damaged(repr(error)) from error

    def damaged(self, why: object) -> DataError:
        """The error of a damaged index."""
        return DataError(f"{self.path} is damaged ({why}): make the index again")

    @cached_property
    def ivf(self) -> IVF | None:
        """The vectors of the first slots, on disk; None if all are in the database."""
        if not self.manifest["arranged"]:
            return None
        found = IVF.read(self.path / self.manifest["files"][1])
        found.nprobe = int(self.manifest["probed"])
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
        """A connection to the database, which commits what no transaction holds together."""
        name, writable = quote(str(self.rows.absolute())), os.access(self.path, os.W_OK)
        mode = "mode=rw" if writable else "mode=ro&immutable=1"
        db = sqlite3.connect(f"file:{name}?{mode}", _PATIENCE, 0, None, False, uri=True)
        db.execute(f"PRAGMA query_only={not writing}")
        db.execute("PRAGMA secure_delete=ON")  # no deleted text stays in the file
        return db

    def check(self, db: sqlite3.Connection, most: float = float("inf")) -> None:
        """Verify the checksums, in a transaction; those of a later or unfinished write are not there yet.

        Args:
            db: a connection.
            most: size in bytes of the largest index to read.

        Raises:
            DataError: a file has changed.
        """
        about, journal = read_json(self.path / SUMS), self.rows.with_name(f"{self.rows.name}-wal")
        [version] = db.execute("SELECT version FROM state").fetchone()
        if not {"version", "sums"} <= {*about} or not is_signed(about):
            raise self.damaged(f"{SUMS} is not as it was written")
        if about["version"] != version or (journal.exists() and journal.stat().st_size):
            return
        sums = about["sums"]
        if sum(file.stat().st_size for name in sums if (file := self.path / name).exists()) > most:
            return
        # A reader that began with an empty journal reads the file itself, and no checkpoint changes that meanwhile.
        if _checksum(self.rows) != sums[self.rows.name]:
            raise self.damaged(f"{self.rows.name} is not as it was written")
        if name := damaged(self.path, {name: each for name, each in sums.items() if name != self.rows.name}):
            raise self.damaged(f"{name} is not as it was written")

    def seal(self, db: sqlite3.Connection) -> None:
        """Move the journal into the database and write checksums; neither, while a reader needs the journal."""
        db.execute("PRAGMA busy_timeout=0")
        [busy, *_] = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            [version] = db.execute("SELECT version FROM state").fetchone()
            sums = {self.rows.name: _checksum(self.rows), **checksums(self.path, self.manifest["files"][1:])}
            write_json(self.path / SUMS, signed({"version": version, "sums": sums}))


_OPENED: dict[tuple[int, int], int] = {}
"""Descriptors of databases that were read for a checksum, by device and inode."""


def _checksum(path: Path) -> int:
    """The CRC-32 of a database.

    Its descriptor stays open: closing it would take away the locks that SQLite holds for this process, and another
    process would then take the journal for one that nobody needs.
    """
    for file, descriptor in [*_OPENED.items()]:
        if not os.fstat(descriptor).st_nlink:  # nobody will open it again
            os.close(_OPENED.pop(file))
    about = path.stat()
    descriptor = _OPENED.setdefault((about.st_dev, about.st_ino), -1)
    if descriptor < 0:
        descriptor = _OPENED[about.st_dev, about.st_ino] = os.open(path, os.O_RDONLY)
    found = start = 0
    while part := os.pread(descriptor, 1 << 20, start):
        found, start = zlib.crc32(part, found), start + len(part)
    return found


def is_index(path: Path) -> bool:
    """Whether a directory holds an index of some version."""
    return read_json(path / MANIFEST).get("kind") == "selfsent index"


def stamp_of(path: Path) -> tuple[int, int]:
    """What tells one generation in a directory from another."""
    try:
        about = (path / MANIFEST).stat()
    except OSError:
        return 0, 0
    return about.st_ino, about.st_mtime_ns


def of_newest(path: Path, make: Callable[[IndexFiles], _T], files: IndexFiles | None = None) -> tuple[IndexFiles, _T]:
    """The newest generation in a directory, and what is made of it; again, if another takes its place meanwhile.

    Args:
        path: the directory.
        make: raises `DataError` or `sqlite3.Error` where a generation has gone.
        files: the newest generation so far.
    """
    while True:
        if files is None or stamp_of(path) != files.stamp:
            files = IndexFiles(path)
        try:
            return files, make(files)
        except (DataError, sqlite3.Error):
            if stamp_of(path) == files.stamp:
                raise


def new_database(path: Path, columns: Mapping[str, type]) -> sqlite3.Connection:
    """A new database, not yet safe against a crash."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;")
    db.executescript(_SCHEMA.format("".join(f", {cell}" for cell in cells_of(columns).values())))
    return db


def make_lookups(db: sqlite3.Connection, id_cell: str | None) -> None:
    """Indexes by text, by place and by id; quicker made once the tables are full."""
    db.execute("CREATE INDEX texts_key ON texts(key)")
    db.execute("CREATE INDEX inputs_slot ON inputs(slot)")
    if id_cell:
        db.execute(f"CREATE INDEX inputs_id ON inputs({id_cell})")


def cells_of(columns: Mapping[str, type]) -> dict[str, str]:
    """Names in the database for the carried columns: names of a user may be any text."""
    return {name: f"c{i}" for i, name in enumerate(name for name in columns if name not in ("row", "sentence", "text"))}


def condition(where: str | Sequence[str] | None, columns: Mapping[str, type]) -> tuple[str, list[Any]]:
    """Conditions on carried columns as SQL, and its parameters; all of them must hold.

    Args:
        where: such as `team=sales`, `team=sales,support`, `team!=sales`, `priority>2` or `created>=2024-01-01`. Texts
            are compared as far as the value goes, so that `created<=2024-01` takes in all of January.
        columns: of the index.

    Raises:
        SettingsError: no condition, no such column, or a value that does not fit it.

    Example:
        >>> condition("team=sales", {"team": str})
        ("c0 IN (?)", ['sales'])
    """
    cells, parts, values = cells_of(columns), list[str](), list[Any]()
    for each in [where] if isinstance(where, str) else where or ():
        found = _CONDITION.fullmatch(each)
        if not found:
            raise SettingsError(f"`where` {each!r} is no condition: give column=value, or one with !=, <, <=, > or >=")
        name, sign, value = found["name"], found["sign"], found["value"]
        if name not in cells:
            known = guess(name, tuple(cells)) if cells else "give --keep when you make it"
            raise SettingsError(f"`where` {each!r}: the index has no column {name!r}; {known}")
        cell, kind = cells[name], columns[name]
        if sign in ("=", "!="):
            try:
                parted = next(csv.reader([value], skipinitialspace=True), []) or [""]
            except csv.Error as error:
                raise SettingsError(f"`where` {each[:60]!r}: {error}") from None
            wanted = [_value(part, kind, name) for part in parted]
            marks = ", ".join("?" * len(wanted))
            empty = f"{cell} IS NULL" if "" in wanted or sign == "!=" else "0"
            parts.append(f"({empty} OR {cell} {'NOT ' * (sign == '!=')}IN ({marks}))")
            values += wanted
        else:
            wanted = [_value(value, kind, name)]
            compared = f"substr({cell}, 1, {len(value)})" if kind is str else cell
            parts.append(f"{compared} {sign} ?")
            values += wanted
    return " AND ".join(parts), values


def _value(text: str, kind: type, name: str) -> Any:
    """A value of a condition as its column holds it."""
    if kind is str or not text:
        return text
    try:
        return _TRUTH[text.lower()] if kind is bool else float(text)
    except (KeyError, ValueError):
        raise SettingsError(f"`where` {text!r} is no value of {name}, a column of {kind.__name__}") from None


def in_groups(values: Iterable[Any], size: int = 500) -> Iterator[tuple[list[Any], str]]:
    """Values in groups, each with as many question marks: SQLite limits the parameters of a statement."""
    left = list(values)
    for start in range(0, len(left), size):
        group = left[start : start + size]
        yield group, ", ".join("?" * len(group))
