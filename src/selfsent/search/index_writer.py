"""Atomic writing and extension of an index; memory holds the vectors once, in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.batch import as_text
from selfsent.data.corpus.duplicates import KeySet, hash_keys
from selfsent.data.vector_files import VectorsFile
from selfsent.errors import DataError, OutputError, SettingsError
from selfsent.files import atomic_directory, read_json, write_json
from selfsent.integrity import checksums
from selfsent.lexical import WordCounts
from selfsent.models.encoder import Encoder
from selfsent.search.index import FILES, MANIFEST, REPEATS, ROWS, VECTORS, VERSION, WORDS, Index, is_index
from selfsent.search.ivf import IVF, training_rows
from selfsent.search.vectors import ARROW_TYPES, corpus_vectors, unit
from selfsent.version import __version__

MIN_RECALL = 0.95
"""Default recall of the ten nearest neighbours."""
GROWTH = 4
"""Growth factor, relative to its training vectors, at which an index is retrained."""
_STAGED, _STAGED_TOGETHER = "staged.f16", 1 << 14


class Added(NamedTuple):
    """Counts of new vectors, and of texts already in the index."""

    new: int
    known: int


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
    encoder: Encoder,
    corpus: Corpus,
    output: Path,
    model: str,
    fingerprint: str,
    add_to: Index | None = None,
    min_recall: float = MIN_RECALL,
    advance: Callable[[int], None] = lambda count: None,
    file: VectorsFile | None = None,
) -> Added:
    """Write an index of the distinct texts of a corpus, replacing an existing one.

    A text already in the index only increases its count. Row numbers continue those of the index. If killed, the old
    index is unchanged.

    Args:
        encoder: of the vectors.
        corpus: the texts, with carried columns.
        output: the directory.
        model: name of the encoder, for loading it in searches.
        fingerprint: of the encoder.
        add_to: the index in `output`, to keep what it holds.
        min_recall: of the ten nearest neighbours in searches, 0 to 1.
        advance: called with the number of texts done since the last call.
        file: vectors of the corpus from `encode_to_file`; computed if None.

    Raises:
        SettingsError: columns other than those of the index.
        DataError: an index of another model, or nothing to add.
        OutputError: it cannot be written, or another process has changed it.
    """
    _check_unchanged(add_to, output)
    columns = {**corpus.input_rows.columns, "text": str}
    if add_to is not None:
        add_to.check_files()
        add_to.check_model(fingerprint, model)
        # x1, x2 may be followed by 5, 6.
        columns |= {name: str for name in columns if add_to.columns.get(name) is str}
        if add_to.columns != columns:
            was, now = (
                ", ".join(f"{name} ({kind.__name__})" for name, kind in each.items())
                for each in (add_to.columns, columns)
            )
            raise SettingsError(
                f"{output} has the columns {was}, and not {now}: give the options that it was made with"
            )
    with atomic_directory(output) as temporary:
        writer = _Writer(temporary, columns, encoder.embedding_size, add_to, len(corpus))
        known = writer.fill(encoder, corpus, file, advance)
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
            "columns": {name: kind.__name__ for name, kind in columns.items()},
            "rows": writer.start + corpus.input_rows.rows,
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


def _check_unchanged(index: Index | None, output: Path) -> None:
    """Reject replacing an index other than the one to add to."""
    if index is not None and read_json(output / MANIFEST) != index.manifest:
        raise OutputError(f"{output} was changed by another process meanwhile: add again")


class _Writer:
    """Writes texts and columns into a new directory; vectors are staged in a file until complete."""

    def __init__(self, directory: Path, columns: dict[str, type], size: int, add_to: Index | None, texts: int) -> None:
        self._directory, self._columns, self._size, self._index = directory, columns, size, add_to
        self.old, self.start = (0, 0) if add_to is None else (len(add_to), add_to.rows)
        self.count = self.old
        self.repeats: NDArray[np.int64] = np.zeros(self.old + texts, np.int64)
        self.words = WordCounts()

    def fill(self, encoder: Encoder, corpus: Corpus, file: VectorsFile | None, advance: Callable[[int], None]) -> int:
        """Write the texts and stage the vectors; returns the number of known texts."""
        import pyarrow as pa

        schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in self._columns.items()])
        inputs = corpus.input_rows
        keys, known, done = KeySet(numbered=True), 0, 0
        with (
            (self._directory / ROWS).open("wb") as stream,
            pa.ipc.new_file(stream, schema) as table,
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
            for vectors in corpus_vectors(encoder, corpus, file, "document"):
                rows = np.arange(done, done + len(vectors))
                texts = corpus.texts(rows)
                numbers, _ = keys.number(hash_keys(texts, len(texts)))
                new = np.flatnonzero(numbers >= self.old)
                self.count += len(new)
                known += len(rows) - len(new)
                np.add.at(self.repeats, numbers, inputs.repeats[rows])
                cells: dict[str, list[Any]] = inputs.describe(np.asarray(inputs.first[rows[new]]))
                cells = {
                    name: list(map(as_text, cells[name])) if kind is str else cells[name]
                    for name, kind in self._columns.items()
                    if name != "text"
                }
                cells["row"] = [self.start + row for row in cells["row"]]
                cells["text"] = [texts[row] for row in new]
                self.words.add(cells["text"])
                table.write_batch(pa.record_batch(cells, schema=schema))
                staged.write(unit(vectors[new]).astype(np.float16).data)
                done += len(rows)
                advance(len(rows))
        return known

    def arrange(self) -> tuple[IVF, int]:
        """All vectors as an IVF, and the number it was trained for; removes the staged file."""
        index, path = self._index, self._directory / _STAGED
        size, new = self._size, self.count - self.old
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
