"""A segment version of an index: locked for writing, and rewritten with the IVF of its vectors."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError
from selfsent.files import STALE, sweep_half_written, write_json
from selfsent.index.files import MANIFEST, VERSION, IndexFiles, new_database, of_newest_segment, segment_version
from selfsent.index.rows import TOGETHER
from selfsent.integrity import signed
from selfsent.search.ivf import IVF, Bits, training_rows
from selfsent.version import __version__

Take = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Document ids (n,) -> their vectors (n, d)."""


@contextmanager
def writing_segment(files: IndexFiles, changing: bool = True) -> Iterator[tuple[IndexFiles, sqlite3.Connection]]:
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
def new_segment(folder: Path, about: dict[str, Any]) -> Iterator[tuple[sqlite3.Connection, Callable[..., None]]]:
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
    if old is not None and texts <= old.limits.growth * trained:
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
