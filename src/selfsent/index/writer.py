"""Builds, extends and compacts an index. An interrupted write leaves the index unchanged."""

from __future__ import annotations

import shutil
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
from selfsent.index.calibration import FILE as CALIBRATION
from selfsent.index.files import (
    MANIFEST,
    VERSION,
    IndexFiles,
    in_groups,
    is_index,
    make_lookups,
    new_database,
    of_newest_segment,
    segment_version,
    sql_columns_of,
)
from selfsent.index.query_map import QueryMap
from selfsent.index.rows import TOGETHER, PostingsWriter, RowWriter
from selfsent.index.snapshot import Snapshot
from selfsent.integrity import signed
from selfsent.lexical import Analyzer
from selfsent.models.fingerprint import share_space
from selfsent.progress import SILENT, Progress
from selfsent.search.exact import corpus_language
from selfsent.search.ivf import IVF, Bits, training_rows
from selfsent.search.vectors import corpus_vectors
from selfsent.version import __version__

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.models.encoding import Model

MIN_RECALL = 0.95
"""Default recall of the ten nearest neighbours."""
GROWTH = 4
"""Retrain the IVF lists after this growth, relative to the number of vectors that they were trained for."""
MAX_UNINDEXED, UNINDEXED_SHARE = 8192, 16
"""Maximum number of vectors outside the IVF lists: the larger of the number and (texts / share)."""
MAX_TOMBSTONES_SHARE = 4
"""Compact an index when more than one in this number of its texts is deleted."""
MAX_BLOCKS = 256
"""Compact an index with more blocks of postings than this, beyond those of its size."""


Take = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Document ids (n,) -> their vectors (n, d)."""


class Added(NamedTuple):
    """Counts of an addition: new texts, texts known before, and older rows replaced by their ids."""

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
        choices = "add to it with selfsent index add, give `overwrite` to replace it, or another `output`"
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
    progress: Progress = SILENT,
    file: VectorsFile | None = None,
    id_column: str | None = None,
    language: str | None = None,
    query_model: str | None = None,
    precision: Bits = "float16",
) -> Added:
    """Write an index of a corpus, replacing an existing one.

    Args:
        encoder: of the vectors.
        corpus: the texts, with metadata columns.
        output: the directory.
        model: name of the encoder, for loading it in searches.
        fingerprint: of the encoder.
        min_recall: of the ten nearest neighbours in searches, 0 to 1.
        progress: receives the number of texts done.
        file: vectors of the corpus from `encode_to_file`; computed if None.
        id_column: the metadata column that identifies rows: the last row with an id counts.
        language: of the stemmer, one of `LANGUAGES`; by default the language of most texts.
        query_model: name of the encoder of queries, if another one of the same space.
        precision: of indexed vectors, 16 bits or 8.

    Raises:
        SettingsError: no such language or column, or faiss is missing.
        DataError: the file holds other vectors, or the recall cannot be reached.
        OutputError: it cannot be written.
    """
    columns = {**corpus.input_rows.columns, "text": str}
    if id_column is not None and id_column not in sql_columns_of(columns):
        raise SettingsError(f"`id_column` {id_column} is not among the metadata columns of the corpus")
    language = Analyzer(language or corpus_language(corpus)).language
    about: dict[str, Any] = {"model": model, "fingerprint": fingerprint, "query_model": query_model}
    about |= {"space": encoder.space, "lexical_weight": encoder.lexical_weight, "size": encoder.embedding_size}
    about |= {"id_column": id_column, "text_column": list(corpus.read_columns), "clean": list(corpus.cleaners)}
    about |= {"passages": corpus.reading["passages"]} if "passages" in corpus.reading else {}
    about |= {"columns": {name: kind.__name__ for name, kind in columns.items()}, "language": language}
    about |= {"precision": precision, "wanted_recall": min_recall}
    with (
        atomic_directory(output) as temporary,
        _staged(encoder, corpus, file, progress, temporary) as staged,
        _new_segment(temporary, about) as (db, add_ivf),
    ):
        writer = RowWriter(db, columns, id_column, language)
        indexed = len(corpus) > MAX_UNINDEXED
        writer.add(corpus, lambda rows: None if indexed else staged[rows])
        if indexed:
            add_ivf(None, lambda numbers: np.asarray(staged[numbers], np.float32), len(corpus))
        make_lookups(db, writer.id_sql_column)
        replaced = writer.replace()
    return Added(len(corpus), 0, replaced)


def add(
    files: IndexFiles,
    encoder: Model,
    corpus: Corpus,
    progress: Progress = SILENT,
    file: VectorsFile | None = None,
) -> Added:
    """Add rows to an index; with ids, a row replaces older ones with its id. Arguments as for `write_index`.

    Row numbers continue those of the index. A known text is not stored twice.

    Raises:
        SettingsError: other columns or cleaners than the index has.
        DataError: the index is damaged, or the file holds other vectors.
        OutputError: it cannot be written.
    """
    check_alike(files, corpus)
    files = _upgraded(files)
    with _staged(encoder, corpus, file, progress, files.path) as staged, _writing(files) as (files, db):
        writer = RowWriter(db, files.columns, files.id_column, files.manifest["language"])
        new = writer.add(corpus, lambda rows: staged[rows])
        replaced = writer.replace()
    _compact_if_due(files)
    return Added(new, len(corpus) - new, replaced)


def delete(files: IndexFiles, ids: Iterable[Any]) -> int:
    """Delete the rows with these ids; returns their number.

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
            continue  # an id of no row
    with _writing(_upgraded(files)) as (files, db):
        writer = RowWriter(db, files.columns, files.id_column, None)
        for group, marks in in_groups(wanted):
            writer.remove(f"SELECT number, doc_id FROM inputs WHERE {writer.id_sql_column} IN ({marks})", group)
        removed = writer.removed
    _compact_if_due(files)
    return removed


def set_query_map(files: IndexFiles, query_map: QueryMap | None) -> None:
    """Record the map of another encoder's queries, in place of an earlier one; None takes it out.

    Raises:
        DataError: it leads to vectors of another encoder than the index holds, or the index is damaged.
        OutputError: it cannot be written.
    """
    if query_map is not None:
        about, old = query_map.about, (str(files.manifest["fingerprint"]), str(files.manifest.get("space", "")))
        if not (about.space and about.fingerprint):
            problem = f"the map is between vectors of {about.old} and {about.model}, which no model here makes"
            raise DataError(f"{problem}: apply it yourself, by QueryMap.load(path)(queries)")
        if not share_space((about.space, ""), old) or query_map.size < files.size:
            what = f"the map leads to {query_map.size} numbers of {about.old}"
            problem = f"{what}, and {files.path} holds {files.size} of {files.manifest['model']}"
            raise DataError(f"{problem}: learn one with selfsent adapt --from {files.manifest['model']}")
        query_map = query_map.cut(files.size)
    with _writing(_upgraded(files)) as (files, db):
        if query_map is None:
            QueryMap.remove(db)
        else:
            query_map.write(db)


def compact(files: IndexFiles) -> None:
    """Write the next segment version: without deleted texts, with all vectors in IVF lists and one block of postings.

    It replaces the old version in one step; open readers of the old one are unaffected.

    Raises:
        DataError: the index is damaged.
        OutputError: it cannot be written.
    """
    with _writing(files, changing=False) as (files, db), atomic_directory(files.path) as temporary:
        snapshot = Snapshot(files, db)
        new = np.cumsum(snapshot.alive) - 1
        old = np.flatnonzero(snapshot.alive)
        with _new_segment(temporary, files.manifest) as (other, add_ivf):
            other.execute("UPDATE state SET version = ?, rows = ?", (snapshot.version + 1, snapshot.rows))
            if snapshot.query_map is not None:
                snapshot.query_map.write(other)
            texts = db.execute("SELECT doc_id, key, text FROM texts ORDER BY doc_id")
            kept_texts = ((int(new[doc_id]), *rest) for doc_id, *rest in texts)
            other.executemany("INSERT INTO texts VALUES(?, ?, ?)", kept_texts)
            more = ", ?" * len(files.sql_columns)
            inputs = ((number, int(new[doc_id]), *rest) for number, doc_id, *rest in db.execute("SELECT * FROM inputs"))
            other.executemany(f"INSERT INTO inputs VALUES(?, ?{more})", inputs)
            if files.version == VERSION:
                other.executemany("INSERT INTO postings VALUES(?, 0, ?, ?)", _joined(db, snapshot.alive, new))
                lengths = b"".join(each for (each,) in db.execute("SELECT lengths FROM blocks ORDER BY start"))
                kept = np.frombuffer(lengths, np.int32)[old]
            else:
                kept = _analyzed(other, files.manifest["language"])
            indexed = len(old) > MAX_UNINDEXED
            for start in range(0, len(old), TOGETHER):
                part = slice(start, start + TOGETHER)
                block = None if indexed else snapshot.take(old[part]).astype(np.float16).tobytes()
                other.execute("INSERT INTO blocks VALUES(?, ?, ?)", (start, kept[part].tobytes(), block))
            if indexed:
                add_ivf(files, lambda numbers: snapshot.take(old[numbers]), len(old))
            make_lookups(other, files.id_sql_column)
        if (files.path / CALIBRATION).exists():  # it knows itself when it is out of date
            shutil.copyfile(files.path / CALIBRATION, temporary / CALIBRATION)


def check_alike(files: IndexFiles, corpus: Corpus) -> None:
    """Reject a corpus whose columns or cleaners are not those of an index.

    Raises:
        SettingsError: they differ.
    """
    columns = {**corpus.input_rows.columns, "text": str}
    # A column of texts such as x1 may go on with numbers, and one of floats with integers.
    wider = {(str, kind) for kind in (int, float, bool)} | {(float, int)}
    columns |= {name: was for name, was in files.columns.items() if (was, columns.get(name)) in wider}
    if files.columns != columns:
        named = (", ".join(f"{n} ({kind.__name__})" for n, kind in each.items()) for each in (files.columns, columns))
        told = "{} has the columns {}, and not {}: give the options that it was made with".format(files.path, *named)
        raise SettingsError(told)
    passages = files.manifest.get("passages"), corpus.reading.get("passages")
    if passages[0] != passages[1]:
        were, are = (f"passages={each}" if each else "no passages" for each in passages)
        raise SettingsError(f"{files.path} was made with {were}, and not with {are}: give the same")
    for name, read in (("text_column", corpus.read_columns), ("clean", corpus.cleaners)):
        if (made := tuple(files.manifest[name])) != tuple(read):
            given = " and ".join(f"{name}={each}" for each in made) or f"no {name}="
            with_ = " and ".join(f"{name}={each}" for each in read) or f"no {name}="
            raise SettingsError(f"{files.path} was made with {given}, and not with {with_}: give the same")


@contextmanager
def _staged(
    encoder: Model, corpus: Corpus, file: VectorsFile | None, progress: Progress, folder: Path
) -> Iterator[NDArray[np.float16]]:
    """The vectors (n, d) of a corpus in an anonymous temporary file, which no interruption leaves behind."""
    advance = progress.counting("reading vectors" if file else "encoding", len(corpus))
    with tempfile.TemporaryFile(dir=folder) as stream:
        for vectors in corpus_vectors(encoder, corpus, file, "document"):
            stream.write(unit(vectors).astype(np.float16).data)
            advance(len(vectors))
        stream.flush()
        yield np.memmap(stream, np.float16, "r", shape=(len(corpus), encoder.embedding_size))


@contextmanager
def _writing(files: IndexFiles, changing: bool = True) -> Iterator[tuple[IndexFiles, sqlite3.Connection]]:
    """A transaction on the newest segment version, which another writer may have written first.

    Args:
        files: of the index.
        changing: whether to commit, and write checksums.
    """
    with files.errors():
        files, db = of_newest_segment(files.path, _locked, files)
        with closing(db):
            files.check(db, whole=not changing)  # a compaction reads everything
            sweep_half_written(files.path.parent, files.path.name, STALE)  # leftovers may hold deleted texts
            yield files, db
            if changing:
                db.execute("UPDATE state SET version = version + 1")
                db.execute("COMMIT")
                files.write_checksums(db)


def _locked(files: IndexFiles) -> sqlite3.Connection:
    """A connection that locks a segment version for writing.

    Raises:
        sqlite3.Error: a newer version replaced it during the wait for the lock.
    """
    db = files.connect(writing=True)
    db.execute("BEGIN IMMEDIATE")
    if segment_version(files.path) != files.segment_version:
        db.close()
        raise sqlite3.OperationalError(f"{files.path} was compacted meanwhile")
    return db


@contextmanager
def _new_segment(folder: Path, about: dict[str, Any]) -> Iterator[tuple[sqlite3.Connection, Callable[..., None]]]:
    """A new database in a folder, and a function that adds the IVF; the manifest is written at the end."""
    name = uuid.uuid4().hex[:12]
    rows, vectors = f"rows-{name}.sqlite", f"vectors-{name}.faiss"
    made: dict[str, Any] = {"indexed": 0, "trained": 0, "nlist": 1, "nprobe": 1, "recall": 1.0}

    def add_ivf(old: IndexFiles | None, take: Take, texts: int) -> None:
        ivf, more = build_ivf(take, texts, about["wanted_recall"], about.get("precision", "float16"), old)
        ivf.write(folder / vectors)
        made.update(more)

    columns = about["columns"]
    with closing(new_database(folder / rows, columns)) as db:
        db.execute("BEGIN")
        yield db, add_ivf
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode=WAL")
    head = {"kind": "selfsent index", "version": VERSION, "selfsent": __version__}
    names = [rows, vectors][: 2 if made["indexed"] else 1]
    write_json(folder / MANIFEST, signed({**about, **head, **made, "files": names}))
    files = IndexFiles(folder)
    with closing(files.connect(writing=True)) as db:
        files.write_checksums(db)


def build_ivf(
    take: Take, texts: int, min_recall: float, precision: Bits, old: IndexFiles | None
) -> tuple[IVF, dict[str, Any]]:
    """An IVF of all texts, and its entries of the manifest.

    Args:
        take: from document ids (n,) to vectors (n, d).
        texts: number of texts.
        min_recall: of the ten nearest neighbours.
        precision: of the vectors.
        old: files with lists that are used again unless the index has outgrown them; None to train new ones.

    Raises:
        DataError: the recall cannot be reached.
    """
    trained = 0 if old is None else int(old.manifest["trained"])
    if old is not None and texts <= GROWTH * trained:
        ivf = IVF.read(old.path / old.manifest["files"][1], mapped=False).emptied()
    else:
        trained = texts
        drawn = np.random.default_rng(0).permutation(texts)[: training_rows(texts)]
        ivf = IVF.trained(take(np.sort(drawn)), texts, precision=precision)
    for start in range(0, texts, TOGETHER):
        doc_ids = np.arange(start, min(texts, start + TOGETHER))
        ivf.add(take(doc_ids), doc_ids)
    recall = ivf.tune(min_recall)
    if recall < min_recall:
        raise DataError(f"the index finds {recall:.1%} of the nearest neighbours, and the target is {min_recall:.1%}")
    return ivf, {"indexed": texts, "trained": trained, "nlist": ivf.nlist, "nprobe": ivf.nprobe, "recall": recall}


def _compact_if_due(files: IndexFiles) -> None:
    """Compact an index with too many tombstones, unindexed vectors, or blocks of postings."""
    with files.errors(), closing(files.connect()) as db:
        [tombstones] = db.execute("SELECT COUNT(*) FROM tombstones").fetchone()
        [blocks, texts] = db.execute("SELECT COUNT(*), COALESCE(SUM(LENGTH(lengths)), 0) / 4 FROM blocks").fetchone()
    unindexed = texts - int(files.manifest["indexed"])
    if (
        tombstones * MAX_TOMBSTONES_SHARE > texts
        or unindexed > max(MAX_UNINDEXED, texts // UNINDEXED_SHARE)
        or blocks > MAX_BLOCKS + texts // TOGETHER
    ):
        compact(files)


def _upgraded(files: IndexFiles) -> IndexFiles:
    """The files in the present format: an index of an older one is compacted, which rewrites it."""
    if files.version == VERSION:
        return files
    compact(files)
    return IndexFiles(files.path)


def _analyzed(db: sqlite3.Connection, language: str | None) -> NDArray[np.int32]:
    """Write the postings of all texts of a database; returns the number of terms in each text, (n,).

    Version 2 has postings of another definition of a word.
    """
    analyzer, postings, lengths = Analyzer(language), PostingsWriter(db), list[int]()
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
