"""What goes into an index: vectors with their texts and columns, from a corpus or from files of vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.errors import DataError
from selfsent.evaluation.vectors import TOGETHER, VectorsFile
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.search.rows import KINDS, sentences
from selfsent.search.sources import COMPARED, compare, corpus_vectors
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
    origins = corpus.origins

    def parts() -> Iterator[Part]:
        texts, done = sentences(corpus), 0
        for vectors in corpus_vectors(model, corpus, file):
            rows = np.arange(done, done + len(vectors))
            cells = origins.describe(np.asarray(origins.first[rows])) | {"text": list(islice(texts, len(rows)))}
            yield Part(vectors, cells, origins.repeats[rows])
            done += len(rows)

    return Source({**origins.columns, "text": str}, model.embedding_size, len(corpus), origins.rows, parts())


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
    files = [VectorsFile(each) for each in paths]
    columns, *others = [_columns(file.path) for file in files]
    for file, theirs in zip(files, [columns, *others], strict=True):
        if theirs != columns:
            raise DataError(f"{file.path} has other columns than {files[0].path}: index them apart")
        if file.size != model.embedding_size:
            raise DataError(
                f"{file.path} holds vectors of {file.size} numbers; this model's have {model.embedding_size}"
            )
    check_carried([name for name in columns if name not in (*PLACES, "text")], f"a column of {path}")
    rows = [_rows(file) for file in files]
    return Source(
        {"row": int, **{name: kind for name, kind in columns.items() if name != "row"}},
        model.embedding_size,
        sum(file.rows for file in files),
        sum(rows),
        (
            part
            for file, start in zip(files, np.cumsum([0, *rows]).tolist(), strict=False)
            for part in _parts(model, file, list(columns), start)
        ),
    )


def _columns(path: Path) -> dict[str, type]:
    """The columns of a `.parquet` file that an index keeps, `text` last; none of other files."""
    if path.suffix != ".parquet":
        return {}
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[str, type] = {}
    for field in pq.read_schema(path):
        for kind, fits in (
            (bool, pa.types.is_boolean),
            (int, pa.types.is_integer),
            (float, pa.types.is_floating),
            (str, lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind)),
        ):
            if fits(field.type):
                found[field.name] = kind
    text = found.pop("text", None)
    return found if text is None else {**found, "text": text}


def _rows(file: VectorsFile) -> int:
    """How many rows the input of a file had."""
    if file.path.suffix != ".parquet" or "row" not in _columns(file.path):
        return int(file.rows)
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    last = pc.max(pq.read_table(file.path, columns=["row"])["row"]).as_py()
    return int(last) + 1


def _parts(model: Encoder, file: VectorsFile, columns: Sequence[str], start: int) -> Iterator[Part]:
    draw, done = np.random.default_rng(0), 0
    for (vectors, texts), cells in zip(file.parts(), _cells(file, columns), strict=False):
        if not (finite := np.isfinite(vectors).all(1)).all():
            raise DataError(f"{file.path} holds numbers that are not finite in row {done + int(np.argmin(finite))}")
        numbers = cells.get("row") or list(range(done, done + len(vectors)))
        filled = np.flatnonzero(vectors.any(1))
        if texts is not None and len(filled):
            chosen = draw.permutation(filled)[:COMPARED]
            compare(file, vectors[chosen], encode(model, [texts[row] for row in chosen]), done + chosen)
        done += len(vectors)
        kept = {"row": [start + int(number) for number in numbers], **{k: v for k, v in cells.items() if k != "row"}}
        cells = {name: [values[row] for row in filled.tolist()] for name, values in kept.items()}
        yield Part(vectors[filled], cells, np.ones(len(filled), np.int64))


def _cells(file: VectorsFile, columns: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
    """The columns of each part of a file, as `VectorsFile.parts` cuts it."""
    if not columns:
        yield from ({} for _ in range(0, file.rows, TOGETHER))
        return
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.path) as opened:
        for batch in opened.iter_batches(TOGETHER, columns=list(columns)):
            yield batch.to_pydict()


def schema_of(columns: dict[str, type]) -> Any:
    """The schema of Arrow for columns."""
    import pyarrow as pa

    return pa.schema([(name, KINDS[kind]) for name, kind in columns.items()])
