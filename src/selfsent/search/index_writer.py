"""Writes an index: made, added to, thinned and compacted. What is killed leaves the index as it was."""

from __future__ import annotations

import sqlite3
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import VectorsFile, unit
from selfsent.errors import DataError, OutputError, SettingsError
from selfsent.files import STALE, atomic_directory, sweep_half_written, write_json
from selfsent.integrity import signed
from selfsent.lexical import Analyzer
from selfsent.search import index_files
from selfsent.search.index_files import VERSION, IndexFiles, cells_of, in_groups, is_index, of_newest, stamp_of
from selfsent.search.index_rows import TOGETHER, RowWriter
from selfsent.search.index_state import State
from selfsent.search.ivf import IVF, Bits, training_rows
from selfsent.search.nearest import corpus_language
from selfsent.search.vectors import corpus_vectors
from selfsent.version import __version__

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.models.encoding import Model

MIN_RECALL = 0.95
"""Default recall of the ten nearest neighbours."""
GROWTH = 4
"""Growth factor, relative to its training vectors, at which lists are made anew."""
TAIL, SHARE = 8192, 16
"""Vectors that stay in the database: this number at least, or the index divided by the other."""
WASTE = 4
"""An index is compacted when this share of its texts is deleted: one in four."""
WRITES = 256
"""Blocks of words at which an index is compacted."""


class Added(NamedTuple):
    """What became of rows: new texts, texts that were there already, and older rows replaced by their ids."""

    new: int
    known: int
    replaced: int


def check_index_output(output: Path, add: bool, overwrite: bool) -> None:
    """Reject a directory that cannot be written to.

    Raises:
        SettingsError: both `add` and `overwrite`.
        OutputError: an index without either, or other content.
    """
    if add and overwrite:
        raise SettingsError("`add` and `overwrite` contradict each other: give one")
    if add:
        return
    if is_index(output) and not overwrite:
        choices = "give `add` to add to it, `overwrite` to replace it, or another `output`"
        raise OutputError(f"{output} already holds an index: {choices}")
    if output.exists() and not is_index(output) and not (output.is_dir() and not any(output.iterdir())):
        raise OutputError(f"{output} exists and is not an index of selfsent: choose another `output`")


def write_index(
    encoder: Model,
    corpus: Corpus,
    output: Path,
    model: str,
    fingerprint: str,
    min_recall: float = MIN_RECALL,
    advance: Callable[[int], None] = lambda count: None,
    file: VectorsFile | None = None,
    id_column: str | None = None,
    language: str | None = None,
    query_model: str | None = None,
    precision: Bits = "float16",
) -> Added:
    """Write an index of a corpus, replacing an existing one.

    Args:
        encoder: of the vectors.
        corpus: the texts, with carried columns.
        output: the directory.
        model: name of the encoder, for loading it in searches.
        fingerprint: of the encoder.
        min_recall: of the ten nearest neighbours in searches, 0 to 1.
        advance: called with the number of texts done since the last call.
        file: vectors of the corpus from `encode_to_file`; computed if None.
        id_column: the carried column that tells rows apart: the last row with an id counts.
        language: of the stemmer, one of `LANGUAGES`; by default that of most texts.
        query_model: name of the encoder of queries, if it is another one, of the same space.
        precision: of vectors in lists: 16 bits or 8.

    Raises:
        SettingsError: no such language or column, or faiss is missing.
        DataError: the file holds other vectors, or the recall cannot be reached.
        OutputError: it cannot be written.
    """
    columns = {**corpus.input_rows.columns, "text": str}
    if id_column is not None and id_column not in cells_of(columns):
        raise SettingsError(f"`id_column` {id_column} is not among the columns that the corpus carries")
    language = Analyzer(language or corpus_language(corpus)).language
    about: dict[str, Any] = {"model": model, "fingerprint": fingerprint, "query_model": query_model}
    about |= {"space": encoder.space, "word_weight": encoder.lexical_weight, "size": encoder.embedding_size}
    about |= {"id_column": id_column, "text_column": list(corpus.read_columns), "clean": list(corpus.cleaners)}
    about |= {"columns": {name: kind.__name__ for name, kind in columns.items()}, "language": language}
    about |= {"precision": precision, "wanted_recall": min_recall}
    with (
        atomic_directory(output) as temporary,
        _staged(encoder, corpus, file, advance, temporary) as staged,
        _generation(temporary, about) as (db, arrange),
    ):
        writer = RowWriter(db, columns, id_column, language)
        in_lists = len(corpus) > TAIL
        writer.add(corpus, lambda rows: None if in_lists else staged[rows])
        if in_lists:
            arrange(None, lambda numbers: np.asarray(staged[numbers], np.float32), len(corpus))
        index_files.make_lookups(db, writer.id_cell)
        replaced = writer.replace()
    return Added(len(corpus), 0, replaced)


def add(
    files: IndexFiles,
    encoder: Model,
    corpus: Corpus,
    advance: Callable[[int], None] = lambda count: None,
    file: VectorsFile | None = None,
) -> Added:
    """Add rows to an index; with ids, a row replaces older ones with its id. Arguments as for `write_index`.

    Row numbers continue those of the index. A text that is there already is not stored twice.

    Raises:
        SettingsError: other columns or cleaners than those of the index.
        DataError: the index is damaged, or the file holds other vectors.
        OutputError: it cannot be written.
    """
    check_alike(files, corpus)
    with _staged(encoder, corpus, file, advance, files.path) as staged, _writing(files) as (files, db):
        writer = RowWriter(db, files.columns, files.id_column, files.manifest["language"])
        new = writer.add(corpus, lambda rows: staged[rows])
        replaced = writer.replace()
    _compact_if_due(files)
    return Added(new, len(corpus) - new, replaced)


def delete(files: IndexFiles, ids: Iterable[Any]) -> int:
    """Delete the rows with these ids; returns how many there were.

    Raises:
        SettingsError: an index without ids.
        DataError: it is damaged.
        OutputError: it cannot be written.
    """
    if files.id_column is None:
        raise SettingsError(f"{files.path} has no ids: make it again with `id_column`")
    kind, wanted = files.columns[files.id_column], list[Any]()
    for each in ids:
        try:
            wanted.append(kind(each))
        except ValueError:
            continue  # no row has it
    with _writing(files) as (files, db):
        writer = RowWriter(db, files.columns, files.id_column, None)
        for group, marks in in_groups(wanted):
            writer.remove(f"SELECT number, slot FROM inputs WHERE {writer.id_cell} IN ({marks})", group)
        removed = writer.removed
    _compact_if_due(files)
    return removed


def compact(files: IndexFiles) -> None:
    """Write the index anew without what is deleted, with all vectors in lists and the words in one piece.

    It takes the place of the old one in one step; who still reads the old one is not disturbed.

    Raises:
        DataError: the index is damaged.
        OutputError: it cannot be written.
    """
    with _writing(files, changing=False) as (files, db), atomic_directory(files.path) as temporary:
        state = State(files, db)
        new = np.cumsum(state.alive) - 1
        old = np.flatnonzero(state.alive)
        with _generation(temporary, files.manifest) as (other, arrange):
            other.execute("UPDATE state SET version = ?, rows = ?", (state.version + 1, state.rows))
            texts = db.execute("SELECT slot, key, text FROM texts ORDER BY slot")
            other.executemany("INSERT INTO texts VALUES(?, ?, ?)", ((int(new[slot]), *rest) for slot, *rest in texts))
            cells = ", ?" * len(files.cells)
            inputs = ((number, int(new[slot]), *rest) for number, slot, *rest in db.execute("SELECT * FROM inputs"))
            other.executemany(f"INSERT INTO inputs VALUES(?, ?{cells})", inputs)
            other.executemany("INSERT INTO postings VALUES(?, 0, ?, ?)", _joined(db, state.alive, new))
            lengths = b"".join(each for (each,) in db.execute("SELECT lengths FROM blocks ORDER BY start"))
            kept = np.frombuffer(lengths, np.int32)[old]
            in_lists = len(old) > TAIL
            for start in range(0, len(old), TOGETHER):
                part = slice(start, start + TOGETHER)
                block = None if in_lists else state.take(old[part]).astype(np.float16).tobytes()
                other.execute("INSERT INTO blocks VALUES(?, ?, ?)", (start, kept[part].tobytes(), block))
            if in_lists:
                arrange(files, lambda numbers: state.take(old[numbers]), len(old))
            index_files.make_lookups(other, files.id_cell)


def check_alike(files: IndexFiles, corpus: Corpus) -> None:
    """Reject a corpus whose columns or cleaners are not those of an index.

    Raises:
        SettingsError: they differ.
    """
    columns = {**corpus.input_rows.columns, "text": str}
    # x1, x2 may be followed by 5, 6, and 1.5 by 2.
    wider = {(str, kind) for kind in (int, float, bool)} | {(float, int)}
    columns |= {name: was for name, was in files.columns.items() if (was, columns.get(name)) in wider}
    if files.columns != columns:
        named = (", ".join(f"{n} ({kind.__name__})" for n, kind in each.items()) for each in (files.columns, columns))
        told = "{} has the columns {}, and not {}: give the options that it was made with".format(files.path, *named)
        raise SettingsError(told)
    for name, read in (("text_column", corpus.read_columns), ("clean", corpus.cleaners)):
        if (made := tuple(files.manifest[name])) != tuple(read):
            given = " and ".join(f"{name}={each}" for each in made) or f"no {name}="
            with_ = " and ".join(f"{name}={each}" for each in read) or f"no {name}="
            raise SettingsError(f"{files.path} was made with {given}, and not with {with_}: give the same")


@contextmanager
def _staged(
    encoder: Model, corpus: Corpus, file: VectorsFile | None, advance: Callable[[int], None], folder: Path
) -> Iterator[NDArray[np.float16]]:
    """The vectors (n, d) of a corpus in a file without a name, which nothing that happens leaves behind."""
    with tempfile.TemporaryFile(dir=folder) as stream:
        for vectors in corpus_vectors(encoder, corpus, file, "document"):
            stream.write(unit(vectors).astype(np.float16).data)
            advance(len(vectors))
        stream.flush()
        yield np.memmap(stream, np.float16, "r", shape=(len(corpus), encoder.embedding_size))


@contextmanager
def _writing(files: IndexFiles, changing: bool = True) -> Iterator[tuple[IndexFiles, sqlite3.Connection]]:
    """A transaction on the newest generation, that of another writer if it came first.

    Args:
        files: of the index.
        changing: whether to commit, and write checksums.
    """
    with files.errors():
        files, db = of_newest(files.path, _locked, files)
        with closing(db):
            files.check(db)
            sweep_half_written(files.path.parent, files.path.name, STALE)  # it holds what may be deleted meanwhile
            yield files, db
            if changing:
                db.execute("UPDATE state SET version = version + 1")
                db.execute("COMMIT")
                files.seal(db)


def _locked(files: IndexFiles) -> sqlite3.Connection:
    """A connection that holds a generation.

    Raises:
        sqlite3.Error: another one came while this waited for its lock.
    """
    db = files.connect(writing=True)
    db.execute("PRAGMA temp_store=MEMORY")
    db.execute("BEGIN IMMEDIATE")
    if stamp_of(files.path) != files.stamp:
        db.close()
        raise sqlite3.OperationalError(f"{files.path} was compacted meanwhile")
    return db


@contextmanager
def _generation(folder: Path, about: dict[str, Any]) -> Iterator[tuple[sqlite3.Connection, Callable[..., None]]]:
    """A new database in a folder, and what puts vectors into lists beside it; at the end the manifest is written."""
    name = uuid.uuid4().hex[:12]
    rows, vectors = f"rows-{name}.sqlite", f"vectors-{name}.faiss"
    made: dict[str, Any] = {"arranged": 0, "trained": 0, "cells": 1, "probed": 1, "recall": 1.0}

    def arrange(old: IndexFiles | None, take: Callable[[NDArray[np.int64]], NDArray[np.float32]], texts: int) -> None:
        trained = 0 if old is None else int(old.manifest["trained"])
        if old is not None and texts <= GROWTH * trained:
            ivf = IVF.read(old.path / old.manifest["files"][1], mapped=False).emptied()
        else:
            trained = texts
            drawn = np.random.default_rng(0).permutation(texts)[: training_rows(texts)]
            ivf = IVF.trained(take(np.sort(drawn)), texts, precision=about.get("precision", "float16"))
        for start in range(0, texts, TOGETHER):
            numbers = np.arange(start, min(texts, start + TOGETHER))
            ivf.add(take(numbers), numbers)
        wanted, recall = about["wanted_recall"], ivf.tune(about["wanted_recall"])
        if recall < wanted:
            raise DataError(f"the index finds {recall:.1%} of the nearest neighbours, and {wanted:.1%} are wanted")
        ivf.write(folder / vectors)
        lists = {"cells": ivf.nlist, "probed": ivf.nprobe, "recall": recall}
        made.update({"arranged": texts, "trained": trained, **lists})

    columns = about["columns"]
    with closing(index_files.new_database(folder / rows, columns)) as db:
        db.execute("BEGIN")
        yield db, arrange
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode=WAL")
    head = {"kind": "selfsent index", "version": VERSION, "selfsent": __version__}
    names = [rows, vectors][: 2 if made["arranged"] else 1]
    write_json(folder / index_files.MANIFEST, signed({**about, **head, **made, "files": names}))
    files = IndexFiles(folder)
    with closing(files.connect(writing=True)) as db:
        files.seal(db)


def _compact_if_due(files: IndexFiles) -> None:
    """Compact an index with too many deleted texts, vectors outside lists, or blocks of words."""
    with files.errors(), closing(files.connect()) as db:
        [dead] = db.execute("SELECT COUNT(*) FROM dead").fetchone()
        [blocks, texts] = db.execute("SELECT COUNT(*), COALESCE(SUM(LENGTH(lengths)), 0) / 4 FROM blocks").fetchone()
    fresh = texts - int(files.manifest["arranged"])
    if dead * WASTE > texts or fresh > max(TAIL, texts // SHARE) or blocks > WRITES + texts // TOGETHER:
        compact(files)


def _joined(db: sqlite3.Connection, alive: NDArray[np.bool_], new: NDArray[np.int64]) -> Iterator[tuple[Any, ...]]:
    """Each term with its slots and counts in one piece, without deleted texts."""
    found = db.execute("SELECT term, slots, counts FROM postings ORDER BY term, start")
    for term, group in groupby(found, key=lambda each: each[0]):
        parts = [(slots, counts) for _, slots, counts in group]
        slots = np.frombuffer(b"".join(part for part, _ in parts), np.int32)
        kept = alive[slots]
        if kept.any():
            counts = np.frombuffer(b"".join(part for _, part in parts), np.uint16)
            yield term, new[slots[kept]].astype(np.int32).tobytes(), counts[kept].tobytes()
