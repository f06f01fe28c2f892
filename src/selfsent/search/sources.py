"""Where the vectors of a corpus come from: the encoder, or a file that `selfsent encode` wrote with it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from selfsent.corpus import Corpus
from selfsent.encoder import Encoder
from selfsent.encoding import CHUNK, encode, encode_stream
from selfsent.errors import DataError, SettingsError
from selfsent.search.vectors import FORMATS, sentences, unit

COMPARED = 8
"""Vectors of each part that are computed, to see whether the file is this model's and this corpus'."""
SAME = 0.99
"""Cosine that they have at least; computed in 8 bits they have a little less than 1."""

Part = tuple[NDArray[np.float32], list[str] | None]
"""Vectors, (n, d), with their texts where the file has them."""


def check_file(file: Path) -> None:
    """Find out quickly whether a file may hold vectors.

    Raises:
        SettingsError: its name ends otherwise than in one of `FORMATS`.
        DataError: there is none.
    """
    if file.suffix not in FORMATS:
        raise SettingsError(f"--vectors {file} must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    if not file.is_file():
        raise DataError(f"{file} does not exist")


def corpus_vectors(model: Encoder, corpus: Corpus, file: Path | None = None) -> Iterator[NDArray[np.float32]]:
    """The vectors of a corpus' sentences in order, some thousand at a time: computed, or from a file.

    Args:
        model: the encoder.
        corpus: the sentences.
        file: a `.npy`, `.npz` or `.parquet` file as `encode_to_file` writes it.

    Raises:
        SettingsError: the name ends otherwise.
        DataError: the file cannot be read, or holds other vectors than the model has for these sentences.
    """
    if file is None:
        yield from encode_stream(model, sentences(corpus))
        return
    check_file(file)
    texts, done = sentences(corpus), 0
    try:
        for vectors, stored in _read(file, (len(corpus), model.embedding_size)):
            expected = list(islice(texts, len(vectors)))
            _compare(file, vectors, expected, stored, model, done)
            yield vectors
            done += len(vectors)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{file} does not hold vectors as selfsent encode writes them: {reason}") from error


def encode_corpus(
    model: Encoder,
    corpus: Corpus,
    advance: Callable[[int], None] = lambda count: None,
    file: Path | None = None,
) -> NDArray[np.float32]:
    """The vectors of a corpus' sentences in memory, (n, d), each of length 1.

    Args:
        model: the encoder.
        corpus: the sentences.
        advance: called with the number of sentences done since the last call.
        file: with their vectors, as `encode_to_file` writes it; without it they are computed.

    Raises:
        SettingsError: the file's name does not say what it is.
        DataError: the file cannot be read, or holds other vectors.
    """
    vectors = np.empty((len(corpus), model.embedding_size), dtype=np.float32)
    done = 0
    for part in corpus_vectors(model, corpus, file):
        vectors[done : done + len(part)] = unit(part)
        done += len(part)
        advance(len(part))
    return vectors


def _compare(
    file: Path, vectors: NDArray[np.float32], texts: list[str], stored: list[str] | None, model: Encoder, start: int
) -> None:
    if stored is not None and stored != texts:
        row = next(i for i, (text, other) in enumerate(zip(texts, stored, strict=True)) if text != other)
        raise DataError(f"{file} holds the vectors of another corpus: row {start + row} is {stored[row][:60]!r}")
    computed = encode(model, texts[:COMPARED])
    for row, (vector, other) in enumerate(zip(unit(vectors[:COMPARED]), unit(computed), strict=True)):
        cosine = float(vector @ other)
        # Both are zero where the tokenizer leaves nothing of a text.
        if not cosine >= SAME and (vector.any() or other.any()):
            found = f"cosine {cosine:.2f} in row {start + row}"
            raise DataError(f"{file} holds other vectors than this model has for this corpus: {found}")


def _read(file: Path, expected: tuple[int, int]) -> Iterator[Part]:
    if file.suffix == ".parquet":
        yield from _read_parquet(file, expected)
        return
    with ExitStack() as stack:
        source: IO[bytes] = stack.enter_context(file.open("rb"))
        if file.suffix == ".npz":
            source = stack.enter_context(stack.enter_context(zipfile.ZipFile(source)).open("embeddings.npy"))
        version = np.lib.format.read_magic(source)
        if version != (1, 0):
            raise ValueError(f"its header is of version {version}")
        shape, by_columns, kind = np.lib.format.read_array_header_1_0(source)
        if by_columns or kind != np.dtype("<f4"):
            raise ValueError(f"its numbers are {kind}, not float32 row by row")
        _check_shape(file, shape, expected)
        for start in range(0, shape[0], CHUNK):
            rows = min(CHUNK, shape[0] - start)
            yield np.frombuffer(source.read(rows * shape[1] * 4), dtype="<f4").reshape(rows, shape[1]), None


def _read_parquet(file: Path, expected: tuple[int, int]) -> Iterator[Part]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as table:
            done = 0
            for batch in table.iter_batches(CHUNK, columns=["text", "embedding"]):
                flat = batch["embedding"].flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
                vectors = flat.reshape(len(batch), -1)
                if not done:
                    _check_shape(file, (table.metadata.num_rows, vectors.shape[1]), expected)
                done += len(batch)
                yield vectors, batch["text"].to_pylist()
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def _check_shape(file: Path, shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    if shape != expected:
        held = " x ".join(f"{size:,}" for size in shape)
        raise DataError(
            f"{file} holds {held} numbers: this corpus has {expected[0]:,} distinct sentences, and the model makes"
            f" {expected[1]:,} numbers of each"
        )
