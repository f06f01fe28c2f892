"""Atomic writing and extension of an index; memory holds the vectors once, in 16 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.batch import as_text
from selfsent.data.corpus.duplicates import KeySet, hash_keys
from selfsent.data.corpus.parquet import kind_of
from selfsent.data.vector_files import TOGETHER, VectorsFile
from selfsent.errors import DataError, OutputError, SettingsError
from selfsent.files import atomic_directory, read_json, write_json
from selfsent.integrity import checksums
from selfsent.lexical import WordCounts
from selfsent.models.encoder import Encoder
from selfsent.search.index import FILES, MANIFEST, REPEATS, ROWS, VECTORS, VERSION, WORDS, Index, is_index
from selfsent.search.ivf import IVF, training_rows
from selfsent.search.tables import check_carried
from selfsent.search.vectors import (
    ARROW_TYPES,
    CHECKED,
    check_finite,
    check_size,
    check_vectors,
    corpus_vectors,
    sentences,
    unit,
)
from selfsent.version import __version__

POSITIONS = ("row", "sentence")
"""Columns with the position of a text in the input."""
MIN_RECALL = 0.95
"""Default recall of the ten nearest neighbours."""
GROWTH = 4
"""Growth factor, relative to its training vectors, at which an index is retrained."""
_STAGED, _STAGED_TOGETHER = "staged.f16", 1 << 14


@dataclass(frozen=True)
class Block:
    """Some rows of a source.

    Args:
        vectors: (n, d).
        cells: column -> (n,) values.
        counts: (n,) number of input rows with each text.
    """

    vectors: NDArray[np.float32]
    cells: dict[str, list[Any]]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Source:
    """The content of a new or growing index.

    Args:
        columns: types of the blocks' columns, including `row`, and `text` last.
        size: dimension of the vectors.
        count: maximum number of vectors.
        rows: number of rows in the input.
        blocks: in input order.
    """

    columns: dict[str, type]
    size: int
    count: int
    rows: int
    blocks: Iterator[Block]


@dataclass(frozen=True)
class Added:
    """Counts of new vectors, and of texts already in the index."""

    new: int
    known: int


def from_corpus(model: Encoder, corpus: Corpus, file: VectorsFile | None = None) -> Source:
    """The distinct texts of a corpus, with vectors computed or read from a file of `encode_to_file`."""
    inputs = corpus.input_rows

    def blocks() -> Iterator[Block]:
        texts, done = sentences(corpus), 0
        for vectors in corpus_vectors(model, corpus, file, "document"):
            rows = np.arange(done, done + len(vectors))
            cells = inputs.describe(np.asarray(inputs.first[rows])) | {"text": list(islice(texts, len(rows)))}
            yield Block(vectors, cells, inputs.repeats[rows])
            done += len(rows)

    return Source({**inputs.columns, "text": str}, model.embedding_size, len(corpus), inputs.rows, blocks())


def from_files(model: Encoder, path: Path) -> Source:
    """The vectors, texts and columns of a `.parquet` file, or of all those in a folder, ordered by name.

    Boolean, numeric and text columns are kept. Rows with a zero vector had no text, and are dropped. Some texts of each
    block are encoded again, to verify that the vectors are the model's.

    Args:
        model: the encoder that made the vectors.
        path: a file with columns `embedding` and `text`, or a folder of such files.

    Raises:
        DataError: a file is missing or damaged, or holds vectors of another model.
        SettingsError: a column has the name of a result column.
    """
    paths = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    files = [file for file in map(VectorsFile, paths) if file.rows]
    if not files or any(file.suffix != ".parquet" for file in paths):
        what = "has no texts: name their corpus, too" if files else "holds no vectors in .parquet files"
        raise DataError(f"{path} {what}")
    columns = _columns(files[0])
    for file in files:
        if _columns(file) != columns:
            raise DataError(f"{file.path} has other columns than {files[0].path}: index them apart")
        check_size(model, file)
    check_carried([name for name in columns if name not in (*POSITIONS, "text")], f"a column of {path}")
    starts, rows = _first_rows(files, columns)
    return Source(
        {"row": int, **{name: kind for name, kind in columns.items() if name != "row"}},
        model.embedding_size,
        sum(file.rows for file in files),
        rows,
        (block for file, start in zip(files, starts, strict=True) for block in _blocks(model, file, columns, start)),
    )


def _columns(file: VectorsFile) -> dict[str, type]:
    """The columns of a file kept in the index, `text` last."""
    import pyarrow.parquet as pq

    found = {field.name: kind for field in pq.read_schema(file.path) if (kind := kind_of(field.type))}
    return {**{name: kind for name, kind in found.items() if name != "text"}, "text": str}


def _first_rows(files: Sequence[VectorsFile], columns: Mapping[str, type]) -> tuple[list[int], int]:
    """The number of input rows before each file, and the total.

    Consecutive files with the same value in column `file` are shards of one input, with continuous row numbers.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    starts, start, end, before = list[int](), 0, 0, None
    for file in files:
        rows, origin = file.rows, None
        if columns.get("row") is int:
            table = pq.read_table(file.path, columns=[name for name in ("row", "file") if name in columns])
            rows = int(pc.max(table["row"]).as_py()) + 1
            origins = pc.unique(table["file"]).to_pylist() if "file" in columns else []
            origin = origins[0] if len(origins) == 1 else None
        start = start if origin is not None and origin == before else end
        starts.append(start)
        before, end = origin, max(end, start + rows)
    return starts, end


def _blocks(model: Encoder, file: VectorsFile, columns: Mapping[str, type], start: int) -> Iterator[Block]:
    import pyarrow.parquet as pq

    draw, done = np.random.default_rng(0), 0
    with pq.ParquetFile(file.path) as opened:
        batches = opened.iter_batches(TOGETHER, columns=list(columns))
        for (vectors, texts), batch in zip(file.parts(), batches, strict=True):
            check_finite(file, vectors, done)
            filled = np.flatnonzero(vectors.any(1))
            if texts is not None and len(filled):
                chosen = draw.permutation(filled)[:CHECKED]
                sample = [texts[row] for row in chosen]
                check_vectors(model, file, vectors[chosen], sample, done + chosen, "document")
            cells = batch.to_pydict()
            rows = cells["row"] if columns.get("row") is int else range(done, done + len(vectors))
            cells["row"] = [start + int(row) for row in rows]
            for name, kind in columns.items():
                cells[name] = list(map(as_text, cells[name])) if kind is str else cells[name]
            cells = {name: [values[row] for row in filled.tolist()] for name, values in cells.items()}
            yield Block(vectors[filled], cells, np.ones(len(filled), np.int64))
            done += len(vectors)


def check_index_output(output: Path, add: bool, overwrite: bool) -> Index | None:
    """The index to add to, if any; rejects an unusable directory.

    Raises:
        SettingsError: both `add` and `overwrite`.
        OutputError: an index without either, or other content.
        DataError: no index to add to.
    """
    if add and overwrite:
        raise SettingsError("`add` and `overwrite` contradict each other: give one")
    if add:
        return Index(output)
    if is_index(output) and not overwrite:
        raise OutputError(
            f"{output} already holds an index: give `add` to add to it, `overwrite` to replace it, or another `output`"
        )
    if output.exists() and not is_index(output) and not (output.is_dir() and not any(output.iterdir())):
        raise OutputError(f"{output} exists and is not an index of selfsent: choose another `output`")
    return None


def write_index(
    source: Source,
    output: Path,
    model: str,
    fingerprint: str,
    add_to: Index | None = None,
    min_recall: float = MIN_RECALL,
    advance: Callable[[int], None] = lambda count: None,
) -> Added:
    """Write an index, replacing an existing one.

    A text already in the index only increases its count. Row numbers continue those of the index. If killed, the old
    index is unchanged.

    Args:
        source: the vectors, texts and columns.
        output: the directory.
        model: name of the encoder, for loading it in searches.
        fingerprint: of the encoder.
        add_to: the index in `output`, to keep what it holds.
        min_recall: of the ten nearest neighbours in searches, 0 to 1.
        advance: called with the number of input rows done since the last call, about `source.rows` in total.

    Raises:
        SettingsError: columns other than those of the index.
        DataError: an index of another model, or nothing to add.
        OutputError: it cannot be written, or another process has changed it.
    """
    _check_unchanged(add_to, output)
    if add_to is not None:
        add_to.check_files()
        add_to.check_model(fingerprint, model)
        source = _fitted(source, add_to.columns)
        if add_to.columns != source.columns:
            was, now = (
                ", ".join(f"{name} ({kind.__name__})" for name, kind in columns.items())
                for columns in (add_to.columns, source.columns)
            )
            raise SettingsError(
                f"{output} has the columns {was}, and not {now}: give the options that it was made with"
            )
    with atomic_directory(output) as temporary:
        writer = _Writer(temporary, source, add_to)
        known = writer.fill(advance)
        if not writer.count:
            raise DataError("there is no vector to put into an index: every text is empty")
        ivf, trained = writer.arrange()
        recall = ivf.tune(min_recall)
        if recall < min_recall:
            raise DataError(f"the index finds {recall:.1%} of the nearest neighbours, and {min_recall:.1%} are wanted")
        ivf.write(temporary / VECTORS)
        np.save(temporary / REPEATS, writer.repeats[: writer.count])
        terms = np.flatnonzero(writer.words.frequencies)
        np.save(temporary / WORDS, np.stack([terms.astype(np.int32), writer.words.frequencies[terms]]))
        manifest = {
            "kind": "selfsent index",
            "version": VERSION,
            "selfsent": __version__,
            "model": model,
            "fingerprint": fingerprint,
            "columns": {name: kind.__name__ for name, kind in source.columns.items()},
            "rows": writer.start + source.rows,
            "vectors": writer.count,
            "trained": trained,
            "cells": ivf.nlist,
            "probed": ivf.nprobe,
            "recall": recall,
            "checksums": checksums(temporary, (*FILES, WORDS)),
        }
        write_json(temporary / MANIFEST, manifest)
        _check_unchanged(add_to, output)
    return Added(writer.count - writer.old, known)


def _fitted(source: Source, columns: Mapping[str, type]) -> Source:
    """A source with values cast to text in the index's text columns: x1, x2 may be followed by 5, 6."""
    numbers = [name for name, kind in source.columns.items() if kind is not columns.get(name, kind) is str]

    def blocks() -> Iterator[Block]:
        for block in source.blocks:
            yield replace(block, cells=block.cells | {name: list(map(as_text, block.cells[name])) for name in numbers})

    return replace(source, columns={**source.columns, **dict.fromkeys(numbers, str)}, blocks=blocks())


def _check_unchanged(index: Index | None, output: Path) -> None:
    """Reject replacing an index other than the one to add to."""
    if index is not None and read_json(output / MANIFEST) != index.manifest:
        raise OutputError(f"{output} was changed by another process meanwhile: add again")


class _Writer:
    """Writes texts and columns into a new directory; vectors are staged in a file until complete."""

    def __init__(self, directory: Path, source: Source, add_to: Index | None) -> None:
        self._directory, self._source, self._index = directory, source, add_to
        self.old, self.start = (0, 0) if add_to is None else (len(add_to), add_to.rows)
        self.count = self.old
        self.repeats: NDArray[np.int64] = np.zeros(self.old + source.count, np.int64)
        self.words = WordCounts()

    def fill(self, advance: Callable[[int], None]) -> int:
        """Write the texts and stage the vectors; returns the number of known texts."""
        import pyarrow as pa

        schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in self._source.columns.items()])
        keys, known, done = KeySet(numbered=True), 0, 0
        with (
            (self._directory / ROWS).open("wb") as file,
            pa.ipc.new_file(file, schema) as table,
            (self._directory / _STAGED).open("wb") as staged,
        ):
            if self._index is not None:
                self.repeats[: self.old] = self._index.repeats
                with pa.OSFile(str(self._index.path / ROWS)) as opened:
                    reader = pa.ipc.open_file(opened)
                    for batch in map(reader.get_batch, range(reader.num_record_batches)):
                        table.write_batch(batch.select(schema.names))
                        texts = batch.column("text").to_pylist()
                        keys.number(hash_keys(texts, len(texts)))
                        self.words.add(texts)
            for block in self._source.blocks:
                numbers, _ = keys.number(hash_keys(block.cells["text"], len(block.vectors)))
                new = numbers > np.maximum.accumulate(np.concatenate([[self.count - 1], numbers]))[:-1]
                self.count += int(new.sum())
                np.add.at(self.repeats, numbers, block.counts)
                rows = block.cells["row"]
                cells = {
                    name: [value for value, is_new in zip(block.cells[name], new.tolist(), strict=True) if is_new]
                    for name in self._source.columns
                }
                cells["row"] = [self.start + row for row in cells["row"]]
                self.words.add(cells["text"])
                table.write_batch(pa.record_batch(cells, schema=schema))
                staged.write(unit(block.vectors[new]).astype(np.float16).data)
                known += int((numbers < self.old).sum())
                if rows:
                    advance(max(rows) + 1 - done)
                    done = max(rows) + 1
        return known

    def arrange(self) -> tuple[IVF, int]:
        """All vectors as an IVF, and the number it was trained for; removes the staged file."""
        index, path = self._index, self._directory / _STAGED
        size, new = self._source.size, self.count - self.old
        staged = np.memmap(path, np.float16, "r", shape=(new, size)) if new else np.empty((0, size), np.float16)
        trained = 0 if index is None else int(index.manifest["trained"])
        if index is None or self.count > GROWTH * trained:
            trained = self.count
            rows = np.sort(np.random.default_rng(0).permutation(self.count)[: training_rows(self.count)])
            sample = np.asarray(staged[rows[rows >= self.old] - self.old], np.float32)
            if index is not None:
                sample = np.concatenate([index.ivf.take(rows[rows < self.old]), sample])
            ivf = IVF.trained(sample, self.count)
            for numbers, vectors in () if index is None else index.ivf.lists():
                ivf.add(vectors, numbers)
        else:
            ivf = IVF.read(index.path / VECTORS, mapped=False)
        del staged
        with path.open("rb") as file:  # not mapped: mapped pages stay resident
            for start in range(0, new, _STAGED_TOGETHER):
                vectors = np.fromfile(file, np.float16, _STAGED_TOGETHER * size).reshape(-1, size).astype(np.float32)
                ivf.add(vectors, self.old + np.arange(start, start + len(vectors)))
        path.unlink()
        return ivf, trained
