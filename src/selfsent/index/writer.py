"""Builds and changes an index. An interrupted write leaves the index unchanged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import VectorsFile, unit
from selfsent.errors import DataError, OutputError, SettingsError
from selfsent.files import atomic_directory
from selfsent.index.compaction import compact_if_due, upgraded
from selfsent.index.conditions import in_groups, sql_columns_of
from selfsent.index.files import IndexFiles, is_index, make_lookups
from selfsent.index.limits import LIMITS, IndexLimits
from selfsent.index.query_map import QueryMap
from selfsent.index.rows import RowWriter
from selfsent.index.segment import new_segment, writing_segment
from selfsent.lexical import Analyzer
from selfsent.models.fingerprint import share_space
from selfsent.progress import SILENT, Progress
from selfsent.search.exact import corpus_language
from selfsent.search.ivf import Bits
from selfsent.search.vectors import corpus_vectors

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.models.encoding import Model

MIN_RECALL = 0.95
"""Default recall of the ten nearest neighbours."""


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
    limits: IndexLimits = LIMITS,
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
        limits: of the index; here the maximum number of vectors outside the IVF lists.

    Raises:
        SettingsError: no such language or column, or faiss is missing.
        DataError: the file holds other vectors, or the recall cannot be reached.
        OutputError: it cannot be written.
    """
    columns = {**corpus.input_rows.columns, "text": str}
    if id_column is not None and id_column not in sql_columns_of(columns):
        raise SettingsError(f"`id_column` {id_column} is not among the metadata columns of the corpus")
    analyzer = Analyzer(language or corpus_language(corpus))
    language = analyzer.language
    about: dict[str, Any] = {"model": model, "fingerprint": fingerprint, "query_model": query_model}
    about |= {"space": encoder.space, "lexical_weight": encoder.lexical_weight, "size": encoder.embedding_size}
    about |= {"id_column": id_column, "text_column": list(corpus.read_columns), "clean": list(corpus.cleaners)}
    about |= {"passages": corpus.reading["passages"]} if "passages" in corpus.reading else {}
    about |= {"columns": {name: kind.__name__ for name, kind in columns.items()}, "language": language}
    about |= {"analyzer": analyzer.fingerprint}
    about |= {"precision": precision, "wanted_recall": min_recall}
    with (
        atomic_directory(output) as temporary,
        _staged(encoder, corpus, file, progress, temporary) as staged,
        new_segment(temporary, about) as (db, add_ivf),
    ):
        writer = RowWriter(db, columns, id_column, language)
        indexed = len(corpus) > limits.max_unindexed
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
    files = upgraded(files)
    with _staged(encoder, corpus, file, progress, files.path) as staged, writing_segment(files) as (files, db):
        writer = RowWriter(db, files.columns, files.id_column, files.manifest["language"])
        new = writer.add(corpus, lambda rows: staged[rows])
        replaced = writer.replace()
    compact_if_due(files)
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
    with writing_segment(upgraded(files)) as (files, db):
        writer = RowWriter(db, files.columns, files.id_column, None)
        for group, marks in in_groups(wanted):
            writer.remove(f"SELECT number, doc_id FROM inputs WHERE {writer.id_sql_column} IN ({marks})", group)
        removed = writer.removed
    compact_if_due(files)
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
    with writing_segment(upgraded(files)) as (files, db):
        if query_map is None:
            QueryMap.remove(db)
        else:
            query_map.write(db)


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
