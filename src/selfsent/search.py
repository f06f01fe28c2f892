"""Encode a corpus to a file, and find the sentences nearest to a query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from selfsent.corpus import Corpus
from selfsent.encoder import Encoder
from selfsent.encoding import CHUNK, encode, encode_stream
from selfsent.errors import SettingsError
from selfsent.files import whole_file

FORMATS = (".npy", ".parquet")


def encode_to_file(
    model: Encoder,
    corpus: Corpus,
    output: Path,
    fast: bool = False,
    advance: Callable[[int], None] = lambda count: None,
) -> tuple[int, int]:
    """Write the vectors of a corpus' sentences, in order; memory does not grow with the corpus.

    Args:
        model: the encoder.
        corpus: the sentences.
        output: a `.npy` file of (n, d) float32, or a `.parquet` file with the columns `text` and `embedding`.
        fast: compute in bfloat16.
        advance: called with the number of sentences done since the last call.

    Returns:
        (n, d).

    Raises:
        SettingsError: the name ends otherwise.
    """
    if output.suffix not in FORMATS:
        raise SettingsError(f"--output {output} must end in {' or '.join(FORMATS)}")
    write = _write_npy if output.suffix == ".npy" else _write_parquet
    with whole_file(output) as temporary:
        write(model, corpus, temporary, fast, advance)
    return len(corpus), model.embedding_size


def _write_npy(model: Encoder, corpus: Corpus, path: Path, fast: bool, advance: Callable[[int], None]) -> None:
    shape = (len(corpus), model.embedding_size)
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        texts = (text for batch in corpus.batches() for text in batch)
        for vectors in encode_stream(model, texts, fast):
            file.write(vectors.astype("<f4").tobytes())
            advance(len(vectors))


def _write_parquet(model: Encoder, corpus: Corpus, path: Path, fast: bool, advance: Callable[[int], None]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = model.embedding_size
    schema = pa.schema([("text", pa.string()), ("embedding", pa.list_(pa.float32(), size))])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for texts in corpus.batches(size=CHUNK):
            vectors = encode(model, texts, fast)
            column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), size)
            writer.write_table(pa.table({"text": texts, "embedding": column}, schema=schema))
            advance(len(texts))


def search(
    model: Encoder,
    corpus: Corpus,
    queries: list[str],
    top: int = 10,
    fast: bool = False,
    advance: Callable[[int], None] = lambda count: None,
) -> list[list[tuple[int, float]]]:
    """The rows of the sentences nearest to each query by cosine, best first, with the cosine; exact.

    Args:
        model: the encoder.
        corpus: the sentences to search.
        queries: what to look for.
        top: how many sentences a query.
        fast: compute in bfloat16.
        advance: called with the number of sentences done since the last call.
    """
    wanted = _unit(encode(model, queries, fast))
    best_rows = np.zeros((len(queries), 0), dtype=np.int64)
    best = np.zeros((len(queries), 0), dtype=np.float32)
    start = 0
    for texts in corpus.batches(size=CHUNK):
        cosines = wanted @ _unit(encode(model, texts, fast)).T
        rows = np.broadcast_to(np.arange(start, start + len(texts)), cosines.shape)
        best, best_rows = np.hstack([best, cosines]), np.hstack([best_rows, rows])
        order = np.argsort(-best, axis=1, kind="stable")[:, :top]
        best, best_rows = np.take_along_axis(best, order, 1), np.take_along_axis(best_rows, order, 1)
        start += len(texts)
        advance(len(texts))
    return [list(zip(r.tolist(), c.tolist(), strict=True)) for r, c in zip(best_rows, best, strict=True)]


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit
