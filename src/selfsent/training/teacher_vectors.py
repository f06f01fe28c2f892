"""Vectors of a corpus by a frozen teacher, cached in the corpus' directory."""

from __future__ import annotations

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.errors import SettingsError
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode, prompt_of
from selfsent.models.fingerprint import files_fingerprint
from selfsent.models.precision import quicken
from selfsent.progress import Counter
from selfsent.resumable import ArrayCache, Compute, key_of
from selfsent.settings import Precision

_FORMAT = 3
_CHUNK = {"cpu": 1 << 10, "cuda": 1 << 14}
"""Sentences encoded and written together, by kind of device; an interruption loses at most as many."""
_LOOKED_AT = 1000
"""Vectors, at least, by which a teacher is judged that tells no text from another."""
_ALIKE = 1e-6
"""Mean square distance of vectors of length 1 from their mean below which they are one vector, rounded to 16 bits."""


def cached_vectors(
    corpus: Corpus,
    column: str,
    rows: np.ndarray,
    encoder: Encoder,
    name: str,
    max_length: int,
    precision: Precision,
    device: str = "cpu",
    advance: Counter = lambda count: None,
    chunk_size: int | None = None,
) -> np.ndarray:
    """The vectors of a column's sentences, as `encode` makes them; vectors that no run needed before are made now.

    An interrupted run goes on with the same table, and processes share the work: each takes the next chunk of rows
    that is free.

    Args:
        corpus: the corpus.
        column: the text column.
        rows: (chosen,) the rows that are needed, in any order.
        encoder: the teacher. It is changed, and can no longer be trained.
        name: the base that it was loaded from.
        max_length: tokens read of a sentence, special tokens included.
        precision: `bfloat16` or `float32`.
        device: for the computation; the teacher ends on the CPU.
        advance: called with the number of rows done since the last call; first with the rows of earlier runs.
        chunk_size: sentences encoded and written together; None for the one of the device.

    Returns:
        (corpus rows, d) float16, memory-mapped; other rows are undefined.

    Raises:
        OutputError: the disk is full, or the directory cannot be written.
        SettingsError: all texts get the same vector, or none; or a vector is not finite in 16 bits, as beyond 65,504.
    """
    length = min(max_length, int(encoder.tokenizer.model_max_length))
    about = [_FORMAT, column, length, precision, files_fingerprint(name)]
    if prompt := prompt_of(encoder):
        about.append(prompt)

    def prepare() -> tuple[Compute, int]:
        encoder.tokenizer.model_max_length = length
        quicken(encoder.to(device).requires_grad_(False).eval(), fast=precision == "bfloat16", int8=False)
        return compute, chunk_size or _CHUNK.get(encoder.device.type, _CHUNK["cpu"])

    def compute(rows: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            vectors = encode(encoder, corpus.texts(rows, column)).astype(np.float16)
        if not np.isfinite(vectors).all():
            raise SettingsError(f"{name} makes vectors that are not finite in 16 bits: follow another")
        return vectors

    directory = corpus.directory / f"vectors-{key_of(about)}"
    vectors = ArrayCache(directory, len(corpus), encoder.embedding_size, np.float16).fill(rows, prepare, advance)
    encoder.to("cpu")  # the memory of a GPU is the student's
    _reject_alike(vectors[np.sort(rows)[:: max(1, len(rows) // _LOOKED_AT)]], name)
    return vectors


def _reject_alike(vectors: np.ndarray, name: str) -> None:
    """Refuse (n, d) vectors that all point one way, or are zero, as of texts in a script that a teacher does not know.

    Raises:
        SettingsError: they do.
    """
    lengths = np.linalg.norm(vectors.astype(np.float32), axis=1, keepdims=True)
    unit = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    if len(unit) > 1 and np.square(unit - unit.mean(axis=0)).sum(axis=1).mean() < _ALIKE:
        raise SettingsError(
            f"{name} gives all of these texts the same vector, from which nothing is learned: follow another"
        )
