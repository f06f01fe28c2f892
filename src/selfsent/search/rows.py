"""From vectors of distinct texts to a row for each row of the input, in a file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.data.corpus.table import InputRows
from selfsent.files import atomic_file
from selfsent.models.encoding import CHUNK

Integers = NDArray[np.int64]
KINDS = {bool: "bool", int: "int64", float: "float64", str: "string"}
"""What Arrow calls the types of columns."""
_READ_TOGETHER = 256


def sentences(corpus: Corpus, start: int = 0) -> Iterator[str]:
    """The distinct sentences of a corpus from one on, few in memory at a time, however long they are."""
    return islice((text for batch in corpus.batches(size=_READ_TOGETHER) for text in batch), start, None)


class TextsInOrder:
    """The texts of all pieces of a corpus, read once from beginning to end; an empty one where a text is left out.

    Args:
        corpus: the sentences.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus, self._new = corpus, sentences(corpus)
        self._done = 0

    def take(self, count: int) -> list[str]:
        """The next so many."""
        inputs = self._corpus.input_rows
        pieces = np.arange(self._done, self._done + count)
        rows = np.asarray(inputs.corpus_rows[pieces])
        filled, new = rows >= 0, inputs.is_first(pieces)
        texts = np.full(count, "", dtype=object)
        texts[new] = np.fromiter(islice(self._new, int(new.sum())), object)
        texts[filled & ~new] = np.fromiter(self._corpus.texts(rows[filled & ~new]), object)
        self._done += count
        found: list[str] = texts.tolist()
        return found


def write_rows(vectors: Path, corpus: Corpus, output: Path) -> None:
    """Write a file with a vector for each row of the input, whole or not at all.

    Args:
        vectors: a `.npy` file with those of the distinct sentences.
        corpus: the sentences.
        output: as for `encode_to_file`.
    """
    if output.suffix == ".npy" and len(corpus.input_rows) == len(corpus):  # every row is there already, in its place
        vectors.replace(output)
        return
    with atomic_file(output) as temporary:
        {".npy": _write_npy, ".npz": _write_npz, ".parquet": _write_parquet}[output.suffix](vectors, corpus, temporary)


def _parts(vectors: Path, inputs: InputRows) -> Iterator[tuple[Integers, NDArray[np.float32]]]:
    """Pieces in order, some thousand at a time, with their vectors; zeros where a text is empty or left out."""
    for start in range(0, len(inputs), CHUNK):
        pieces = np.arange(start, min(start + CHUNK, len(inputs)))
        rows = np.asarray(inputs.corpus_rows[pieces])
        # Mapped anew each time: pages of a map stay with the process.
        stored = np.load(vectors, mmap_mode="r", allow_pickle=False)
        part = np.zeros((len(rows), stored.shape[1]), dtype=np.float32)
        part[rows >= 0] = stored[rows[rows >= 0]]
        yield pieces, part


def _write_npy(vectors: Path, corpus: Corpus, path: Path) -> None:
    with path.open("wb") as file:
        _write_vectors(vectors, corpus, file)


def _write_vectors(vectors: Path, corpus: Corpus, file: IO[bytes]) -> None:
    size = np.load(vectors, mmap_mode="r", allow_pickle=False).shape[1]
    _write_header(file, "<f4", (len(corpus.input_rows), size))
    for _, part in _parts(vectors, corpus.input_rows):
        file.write(part.astype("<f4").data)


def _write_header(file: IO[bytes], kind: str, shape: tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})


def _write_npz(vectors: Path, corpus: Corpus, path: Path) -> None:
    inputs = corpus.input_rows

    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        # Dated 1980, so that the same vectors make the same file.
        with archive.open(zipfile.ZipInfo("embeddings.npy"), "w", force_zip64=True) as file:
            _write_vectors(vectors, corpus, file)
        for name in ("row", "sentence") if inputs.split else ():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                _write_header(file, "<i8", (len(inputs),))
                for start in range(0, len(inputs), CHUNK):
                    pieces = np.arange(start, min(start + CHUNK, len(inputs)))
                    file.write(inputs.positions(pieces)[name].astype("<i8").data)


def _write_parquet(vectors: Path, corpus: Corpus, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    inputs, texts = corpus.input_rows, TextsInOrder(corpus)
    size = np.load(vectors, mmap_mode="r", allow_pickle=False).shape[1]
    kinds: dict[str, Any] = {name: KINDS[kind] for name, kind in (inputs.columns | {"text": str}).items()}
    schema = pa.schema([*kinds.items(), ("embedding", pa.list_(pa.float32(), size))])
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for pieces, part in _parts(vectors, inputs):
            column = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), size)
            cells = inputs.describe(pieces) | {"text": texts.take(len(pieces)), "embedding": column}
            writer.write_table(pa.table(cells, schema=schema))
