"""Making an index, and adding to one: whole or not at all, in memory that holds the vectors in 16 bits once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.batch import as_text
from selfsent.data.corpus.duplicates import KeySet, hash_keys
from selfsent.errors import DataError, OutputError, SettingsError
from selfsent.files import atomic_directory, read_json, write_json
from selfsent.integrity import checksums
from selfsent.lexical import WordCounts
from selfsent.search.cells import Cells, wanted
from selfsent.search.index import ABOUT, FILES, REPEATS, ROWS, VECTORS, VERSION, WORDS, Index, is_index
from selfsent.search.index_sources import Part, Source, schema_of
from selfsent.search.vectors import unit
from selfsent.version import __version__

WANTED = 0.95
"""The share of the ten nearest neighbours that a search finds."""
GROWN = 4
"""Times as many vectors as its centres were made for, from which on an index is arranged anew."""
_STAGED = "staged.f16"
_TOGETHER = 1 << 14


@dataclass(frozen=True)
class Added:
    """What became of the texts of a source.

    Args:
        new: vectors added.
        known: texts that the index had already.
    """

    new: int
    known: int


def check_index_output(output: Path, add: bool, overwrite: bool) -> Index | None:
    """The index to add to, if any; refuses a directory that cannot be used as asked.

    Raises:
        SettingsError: both are asked for.
        OutputError: there is an index and neither was asked for, or something else.
        DataError: there is none to add to.
    """
    if add and overwrite:
        raise SettingsError("--add and --overwrite contradict each other: give one")
    if add:
        return Index(output)
    if is_index(output) and not overwrite:
        raise OutputError(
            f"{output} already holds an index: give --add to add to it, --overwrite to replace it, or another --output"
        )
    if output.exists() and not is_index(output) and not (output.is_dir() and not any(output.iterdir())):
        raise OutputError(f"{output} exists and is not an index of selfsent: choose another --output")
    return None


def write_index(
    source: Source,
    output: Path,
    model: str,
    fingerprint: str,
    add_to: Index | None = None,
    least_recall: float = WANTED,
    advance: Callable[[int], None] = lambda count: None,
) -> Added:
    """Write an index, in place of one that is there.

    A text that the index has already only counts once more. Row numbers go on where those of the index end. Killed, it
    leaves the old index as it was.

    Args:
        source: the vectors, texts and columns.
        output: the directory.
        model: the name of the encoder, by which later searches load it.
        fingerprint: of the encoder.
        add_to: the index in `output`, to keep what it holds.
        least_recall: the share of the ten nearest neighbours that searches shall find, 0 to 1.
        advance: called with the number of rows of the input done since the last call; there are about `source.rows`.

    Raises:
        SettingsError: the columns are not those of the index.
        DataError: the index is of another model, or there is nothing to put in.
        OutputError: it cannot be written, or another process wrote it meanwhile.
    """
    _check_still(add_to, output)
    if add_to is not None:
        add_to.check_files()
        add_to.check_model(fingerprint, model)
        source = _fitting(source, add_to.columns)
        if add_to.columns != source.columns:
            was, now = _named(add_to.columns), _named(source.columns)
            raise SettingsError(
                f"{output} has the columns {was}, and not {now}: give the options that it was made with"
            )
    with atomic_directory(output) as temporary:
        filling = _Filling(temporary, source, add_to)
        known = filling.fill(advance)
        if not filling.count:
            raise DataError("there is no vector to put into an index: every text is empty")
        cells, trained = filling.arranged()
        recall = cells.tune(least_recall)
        if recall < least_recall:
            raise DataError(
                f"the index finds {recall:.1%} of the nearest neighbours, and {least_recall:.1%} are wanted"
            )
        cells.write(temporary / VECTORS)
        np.save(temporary / REPEATS, filling.repeats[: filling.count])
        if has_texts := "text" in source.columns:
            held = np.flatnonzero(filling.words.frequencies)
            np.save(temporary / WORDS, np.stack([held.astype(np.int32), filling.words.frequencies[held]]))
        about = {
            "kind": "selfsent index",
            "version": VERSION,
            "selfsent": __version__,
            "model": model,
            "fingerprint": fingerprint,
            "columns": {name: kind.__name__ for name, kind in source.columns.items()},
            "rows": filling.start + source.rows,
            "vectors": filling.count,
            "trained": trained,
            "cells": cells.count,
            "probed": cells.probed,
            "recall": recall,
            "checksums": checksums(temporary, (*FILES, WORDS) if has_texts else FILES),
        }
        write_json(temporary / ABOUT, about)
        _check_still(add_to, output)
    return Added(filling.count - filling.old, known)


def _fitting(source: Source, columns: Mapping[str, type]) -> Source:
    """A source whose values become text in columns that are text in the index: one of x1, x2 may go on with 5, 6."""
    numbers = [name for name, kind in source.columns.items() if kind is not columns.get(name, kind) is str]

    def fitted() -> Iterator[Part]:
        for part in source.parts:
            cells = {name: list(map(as_text, part.cells[name])) for name in numbers}
            yield replace(part, cells=part.cells | cells)

    return replace(source, columns={**source.columns, **dict.fromkeys(numbers, str)}, parts=fitted())


def _named(columns: dict[str, type]) -> str:
    return ", ".join(f"{name} ({kind.__name__})" for name, kind in columns.items())


def _check_still(index: Index | None, output: Path) -> None:
    """Refuse to put an index in the place of another one than that which it adds to."""
    if index is not None and read_json(output / ABOUT) != index.about:
        raise OutputError(f"{output} was changed by another process meanwhile: add again")


class _Filling:
    """Texts and columns on their way into a new directory; their vectors wait in a file until all are there."""

    def __init__(self, directory: Path, source: Source, add_to: Index | None) -> None:
        self._directory, self._source, self._index = directory, source, add_to
        self.old = self.count = 0 if add_to is None else len(add_to)
        self.start = 0 if add_to is None else add_to.rows
        self.repeats: NDArray[np.int64] = np.zeros(self.old + source.count, np.int64)
        self._known = KeySet(numbered=True)
        self.words = WordCounts()
        self._schema = schema_of(source.columns)

    def fill(self, advance: Callable[[int], None]) -> int:
        """Write the texts and stage the vectors; how many texts were known."""
        import pyarrow as pa

        known, done = 0, 0
        with (
            (self._directory / ROWS).open("wb") as file,
            pa.ipc.new_file(file, self._schema) as table,
            (self._directory / _STAGED).open("wb") as staged,
        ):
            self._take_over(table)
            for part in self._source.parts:
                numbers, new = self._numbered(part)
                np.add.at(self.repeats, numbers, part.counts)
                cells = {
                    name: [v for v, is_new in zip(part.cells[name], new.tolist(), strict=True) if is_new]
                    for name in self._source.columns
                }
                cells["row"] = [self.start + row for row in cells["row"]]
                self.words.add(cells.get("text", []))
                table.write_batch(pa.record_batch(cells, schema=self._schema))
                staged.write(unit(part.vectors[new]).astype(np.float16).data)
                known += int((numbers < self.old).sum())
                if part.cells["row"]:
                    advance(max(part.cells["row"]) + 1 - done)
                    done = max(part.cells["row"]) + 1
        return known

    def _take_over(self, table: Any) -> None:
        """Copy what the old index has."""
        if self._index is None:
            return
        import pyarrow as pa

        self.repeats[: self.old] = np.load(self._index.path / REPEATS)
        with pa.OSFile(str(self._index.path / ROWS)) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                table.write_batch(batch.select(self._schema.names))
                if "text" in self._source.columns and len(batch):
                    texts = batch.column(self._schema.get_field_index("text")).to_pylist()
                    self._known.number(hash_keys(texts, len(batch)))
                    self.words.add(texts)

    def _numbered(self, part: Part) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The number in the index of each text of a part, and which are new."""
        size = len(part.vectors)
        if "text" not in self._source.columns:
            numbers, new = self.count + np.arange(size), np.ones(size, bool)
        else:
            numbers, _ = self._known.number(hash_keys(part.cells["text"], size))
            new = numbers > np.maximum.accumulate(np.concatenate([[self.count - 1], numbers]))[:-1]
        self.count += int(new.sum())
        return numbers, new

    def arranged(self) -> tuple[Cells, int]:
        """All vectors in cells, and how many these were made for; what was staged is removed."""
        index, path = self._index, self._directory / _STAGED
        trained = 0 if index is None else int(index.about["trained"])
        if index is None or self.count > GROWN * trained:
            trained = self.count
            cells = Cells.around(self._sample(), self.count)
            for rows, vectors in () if index is None else index.cells.parts():
                cells.add(vectors, rows)
        else:
            cells = Cells.read(index.path / VECTORS, mapped=False)
        done = self.old
        for vectors in self._staged():
            cells.add(vectors, np.arange(done, done + len(vectors)))
            done += len(vectors)
        path.unlink()
        return cells, trained

    def _staged(self) -> Iterator[NDArray[np.float32]]:
        size = self._source.size
        with (self._directory / _STAGED).open("rb") as file:
            while len(block := np.fromfile(file, np.float16, _TOGETHER * size)):
                yield block.reshape(-1, size).astype(np.float32)

    def _sample(self) -> NDArray[np.float32]:
        """Random ones of all vectors, old and new."""
        rows = np.sort(np.random.default_rng(0).permutation(self.count)[: wanted(self.count)])
        old, new = rows[rows < self.old], rows[rows >= self.old] - self.old
        stored = (
            np.memmap(self._directory / _STAGED, np.float16, "r").reshape(-1, self._source.size) if len(new) else ()
        )
        parts = [self._index.cells.take(old)] if self._index is not None else []
        parts += [np.asarray(stored[new], np.float32)] if len(new) else []
        return np.concatenate(parts)
