"""What goes into an index: vectors with their texts and columns, from a corpus or from files of vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.batch import as_text
from selfsent.data.corpus.parquet import kind_of
from selfsent.data.vector_files import TOGETHER, VectorsFile
from selfsent.errors import DataError
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.search.rows import KINDS, sentences
from selfsent.search.sources import COMPARED, compare, corpus_vectors, hint_of_prompt
from selfsent.search.tables import check_carried

PLACES = ("row", "sentence")
"""Columns that say where in the input a text stands."""


@dataclass(frozen=True)
class Part:
    """Some vectors in the order of the input.

    Args:
        vectors: (n, d).
        cells: column -> (n,) values: `row`, and what else there is, `text` last.
        counts: (n,) how many rows of the input have each text.
    """

    vectors: NDArray[np.float32]
    cells: dict[str, list[Any]]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Source:
    """All of them.

    Args:
        columns: those of the parts, with the type of each.
        size: numbers of a vector.
        count: vectors at most.
        rows: of the input.
        parts: in order.
    """

    columns: dict[str, type]
    size: int
    count: int
    rows: int
    parts: Iterator[Part]


def from_corpus(model: Encoder, corpus: Corpus, file: VectorsFile | None = None) -> Source:
    """The distinct texts of a corpus; their vectors are computed, or read from a file as `encode_to_file` writes it."""
    inputs = corpus.input_rows

    def parts() -> Iterator[Part]:
        texts, done = sentences(corpus), 0
        for vectors in corpus_vectors(model, corpus, file, "document"):
            rows = np.arange(done, done + len(vectors))
            cells = inputs.describe(np.asarray(inputs.first[rows])) | {"text": list(islice(texts, len(rows)))}
            yield Part(vectors, cells, inputs.repeats[rows])
            done += len(rows)

    return Source({**inputs.columns, "text": str}, model.embedding_size, len(corpus), inputs.rows, parts())


def from_files(model: Encoder, path: Path) -> Source:
    """What a file of vectors holds, or all `.parquet` files of a folder, in the order of their names.

    A `.parquet` file gives its texts, and all of its other columns that hold truth values, numbers or text. Rows whose
    vector is all zeros had no text, and are left out. Some texts of each part are encoded again.

    Args:
        model: the encoder that made the vectors.
        path: a file that `VectorsFile` opens, or a folder of `.parquet` files.

    Raises:
        DataError: there is no such file, or it is damaged, or holds vectors of another model.
        SettingsError: a column is called like one of the results.
    """
    paths = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not paths:
        raise DataError(f"{path} holds no .parquet files")
    files = [file for file in map(VectorsFile, paths) if file.rows]
    if not files:
        raise DataError(f"{path} holds no vectors")
    columns, *others = map(_columns, files)
    for file, theirs in zip(files, [columns, *others], strict=True):
        if theirs != columns:
            raise DataError(f"{file.path} has other columns than {files[0].path}: index them apart")
        if file.size != model.embedding_size:
            raise DataError(
                f"{file.path} holds vectors of {file.size} numbers; this model's have {model.embedding_size}"
            )
    check_carried([name for name in columns if name not in (*PLACES, "text")], f"a column of {path}")
    starts, rows = _starts(files)
    return Source(
        {"row": int, **{name: kind for name, kind in columns.items() if name != "row"}},
        model.embedding_size,
        sum(file.rows for file in files),
        rows,
        (part for file, start in zip(files, starts, strict=True) for part in _parts(model, file, columns, start)),
    )


def _columns(file: VectorsFile) -> dict[str, type]:
    """The columns of a `.parquet` file that an index keeps, `text` last; of other files those that say the place."""
    if file.path.suffix != ".parquet":
        return dict.fromkeys(file.places, int)
    import pyarrow.parquet as pq

    found = {field.name: kind for field in pq.read_schema(file.path) if (kind := kind_of(field.type))}
    text = found.pop("text", None)
    return found if text is None else {**found, "text": text}


def _starts(files: Sequence[VectorsFile]) -> tuple[list[int], int]:
    """How many rows of the input stand before the file that each of these was made of, and how many there are in all.

    Files with one and the same value in all of their column `file` are parts of one, whose rows are counted through.
    """
    starts, start, behind, before = list[int](), 0, 0, None
    for file in files:
        rows, made_of = _extent(file)
        if made_of is None or made_of != before:
            start = behind
        starts.append(start)
        before, behind = made_of, max(behind, start + rows)
    return starts, behind


def _extent(file: VectorsFile) -> tuple[int, str | None]:
    """The rows that the input of a file had at least, and the name of this input, where the file tells it."""
    if file.path.suffix != ".parquet":
        return int(file.places["row"].max()) + 1 if "row" in file.places else int(file.rows), None
    columns = _columns(file)
    if columns.get("row") is not int:
        return int(file.rows), None
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    held = pq.read_table(file.path, columns=["row", "file"] if columns.get("file") is str else ["row"])
    names = pc.unique(held["file"]).to_pylist() if "file" in held.column_names else []
    return int(pc.max(held["row"]).as_py()) + 1, names[0] if len(names) == 1 else None


def _parts(model: Encoder, file: VectorsFile, columns: Mapping[str, type], start: int) -> Iterator[Part]:
    draw, done = np.random.default_rng(0), 0
    for (vectors, texts), cells in zip(file.parts(), _cells(file, columns), strict=False):
        if not (finite := np.isfinite(vectors).all(1)).all():
            raise DataError(f"{file.path} holds numbers that are not finite in row {done + int(np.argmin(finite))}")
        numbers = cells.get("row") or list(range(done, done + len(vectors)))
        filled = np.flatnonzero(vectors.any(1))
        if texts is not None and len(filled):
            chosen = draw.permutation(filled)[:COMPARED]
            compare(
                file,
                vectors[chosen],
                encode(model, [texts[row] for row in chosen], side="document"),
                done + chosen,
                hint_of_prompt(model),
            )
        done += len(vectors)
        kept = {"row": [start + int(number) for number in numbers], **{k: v for k, v in cells.items() if k != "row"}}
        cells = {name: [values[row] for row in filled.tolist()] for name, values in kept.items()}
        yield Part(vectors[filled], cells, np.ones(len(filled), np.int64))


def _cells(file: VectorsFile, columns: Mapping[str, type]) -> Iterator[dict[str, list[Any]]]:
    """The columns of each part of a file, as `VectorsFile.parts` cuts it."""
    if not columns:
        yield from ({} for _ in range(0, file.rows, TOGETHER))
        return
    if file.places:
        for start in range(0, file.rows, TOGETHER):
            yield {name: file.places[name][start : start + TOGETHER].tolist() for name in columns}
        return
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.path) as opened:
        for batch in opened.iter_batches(TOGETHER, columns=list(columns)):
            cells = batch.to_pydict()
            yield {
                name: [as_text(value) for value in cells[name]] if kind is str else cells[name]
                for name, kind in columns.items()
            }


def schema_of(columns: dict[str, type]) -> Any:
    """The schema of Arrow for columns."""
    import pyarrow as pa

    return pa.schema([(name, KINDS[kind]) for name, kind in columns.items()])
