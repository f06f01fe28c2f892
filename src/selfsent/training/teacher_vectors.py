"""What a frozen encoder makes of the sentences of a corpus: made once, kept beside the corpus, and gone on with."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from selfsent.data.corpus import Corpus
from selfsent.errors import TrainingError
from selfsent.files import output_errors, write_json
from selfsent.integrity import warn_damaged
from selfsent.locks import lock_range
from selfsent.models.bases import resolve, weights_digest
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.models.precision import quicken
from selfsent.settings import Precision

_FORMAT = 2
_PART = {"cpu": 1 << 10, "cuda": 1 << 14}
"""Sentences encoded and written together, by kind of device: what an interruption may lose."""
_LOOKED_AT = 1 << 15
"""Vectors whose checksums are computed together."""


def kept_vectors(
    corpus: Corpus,
    column: str,
    rows: np.ndarray,
    encoder: Encoder,
    name: str,
    max_length: int,
    precision: Precision,
    device: str = "cpu",
    told: Callable[[int], None] = lambda count: None,
) -> np.ndarray:
    """The vectors of a column's sentences as `encode` makes them; those that no run needed before are made now.

    They lie in the corpus' own directory, under a name made of all that they depend on. An interrupted encoding is gone
    on with, and processes share the work: each takes the next part of the rows that no other one has.

    Args:
        corpus: the corpus.
        column: the text column.
        rows: (chosen,) the rows that are needed, in any order.
        encoder: the encoder. It is changed, and can only be run from now on.
        name: the base that it was loaded from.
        max_length: tokens read of a sentence, special tokens included.
        precision: what it computes in, `bfloat16` or `float32`.
        device: where it computes; it is left on the CPU.
        told: is told how many are done since it was last told; first, how many were there already.

    Returns:
        (corpus rows, d) float16, memory-mapped; what stands in other rows means nothing.

    Raises:
        OutputError: the disk is full, or the directory cannot be written.
        TrainingError: a vector is not finite, or has numbers beyond 65,504.
    """
    length = min(max_length, int(encoder.tokenizer.model_max_length))
    key = _key(encoder, name, [column, length, precision])
    table = _Table(corpus.directory / f"vectors-{key}", len(corpus), encoder.embedding_size)
    # In order, and cut in the same places by every process and after every interruption: how numbers are rounded
    # depends a little on which sentences are computed together.
    rows = np.unique(rows)
    known = int(table.done[rows].sum())
    told(known)
    if known == len(rows):
        return table.vectors
    about = {"encoder": name, "column": column, "max_length": length, "precision": precision}
    write_json(table.directory / "vectors.json", about)
    encoder.tokenizer.model_max_length = length
    quicken(encoder.to(device).requires_grad_(False).eval(), fast=precision == "bfloat16", int8=False)
    size = _PART.get(encoder.device.type, _PART["cpu"])
    # What another process has begun is left to it; in the end its parts are waited for, and made if it died.
    for patient in (False, True):
        for part in np.split(rows, range(size, len(rows), size)):
            if table.done[part].all():
                continue
            with lock_range(table.directory / "lock", int(part[0]), int(part[-1]) + 1, patient) as mine:
                left = part[~table.done[part]]
                if mine and len(left):
                    table.fill(left, _short(encode(encoder, corpus.texts(left, column)), name))
            done = int(table.done[rows].sum())
            told(done - known)
            known = done
    encoder.to("cpu")  # the memory of a GPU is the student's
    return table.vectors


def _key(encoder: Encoder, name: str, more: list[Any]) -> str:
    """What tells apart vectors by the encoder that is loaded from a base, and by more."""
    tokenizer = Tokenizer.from_str(encoder.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    directory = resolve(name)
    modules = [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(directory.rglob("*.json"))]
    depends = [_FORMAT, *more, weights_digest(directory), modules, tokenizer.to_str()]
    return hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:16]


def _short(vectors: np.ndarray, name: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        short = vectors.astype(np.float16)
    if not np.isfinite(short).all():
        raise TrainingError(f"{name} makes vectors that are not finite, or have numbers beyond 65,504: follow another")
    return short


def _sums(vectors: np.ndarray) -> np.ndarray:
    """A checksum of each vector (n, d) in float16, (n,), that every change of a number changes."""
    numbers = np.ascontiguousarray(vectors).view(np.uint16).astype(np.uint32)
    return np.asarray((numbers * np.arange(3, 2 * numbers.shape[1] + 3, 2, dtype=np.uint32)).sum(1, dtype=np.uint32))


class _Table:
    """The vectors of a corpus' rows, and which of them are done.

    Unlike other files these grow in place. A row is done once its vector is on the disk, and is not written again.

    Args:
        directory: where it lies; made where it does not.
        rows: of the corpus.
        size: of a vector.
    """

    def __init__(self, directory: Path, rows: int, size: int) -> None:
        self.directory = directory
        self._bytes = 2 * size
        lengths = {"vectors.bin": rows * self._bytes, "sums.bin": 4 * rows, "done.bin": rows}
        with output_errors(directory):
            directory.mkdir(exist_ok=True)
            if not self._has(lengths):
                with lock_range(directory / "lock", rows, rows + 1, patient=True):
                    if not self._has(lengths):  # nor has another process made them meanwhile
                        for name in lengths:
                            (directory / name).unlink(missing_ok=True)
                        for name, length in lengths.items():
                            with (directory / name).open("wb") as file:
                                file.truncate(length)  # of no place on the disk before it is filled
            self.vectors = np.memmap(directory / "vectors.bin", np.float16, "r", shape=(rows, size))
            self.done = np.memmap(directory / "done.bin", np.bool_, "r", shape=(rows,))
            self._forget_damaged()

    def _has(self, lengths: dict[str, int]) -> bool:
        paths = {name: self.directory / name for name in lengths}
        return all(path.is_file() and path.stat().st_size == lengths[name] for name, path in paths.items())

    def fill(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Write (chosen, d) float16 vectors of rows, rising, and that they are done.

        Raises:
            OutputError: the disk is full.
        """
        self._write("vectors.bin", rows, vectors, self._bytes)
        self._write("sums.bin", rows, _sums(vectors), 4)
        self._write("done.bin", rows, np.ones(len(rows), np.bool_), 1)

    def _forget_damaged(self) -> None:
        """Rows whose vectors are not as they were written are to be made again."""
        if not len(self.done):
            return
        sums = np.memmap(self.directory / "sums.bin", np.uint32, "r", shape=self.done.shape)
        for start in range(0, len(sums), _LOOKED_AT):
            part = slice(start, start + _LOOKED_AT)
            done = np.asarray(self.done[part]).view(np.uint8) == 1
            wrong = done & (_sums(self.vectors[part]) != sums[part]) | (np.asarray(self.done[part]).view(np.uint8) > 1)
            if len(rows := start + np.flatnonzero(wrong)):
                warn_damaged(self.directory)
                self._write("done.bin", rows, np.zeros(len(rows), np.bool_), 1)

    def _write(self, name: str, rows: np.ndarray, values: np.ndarray, size: int) -> None:
        gaps = np.flatnonzero(np.diff(rows) > 1) + 1
        # Not through the map: there, a full disk would end the process without a word.
        with output_errors(self.directory / name), (self.directory / name).open("r+b") as file:
            for run, part in zip(np.split(rows, gaps), np.split(values, gaps), strict=True):
                file.seek(size * int(run[0]))
                file.write(part.tobytes())
            file.flush()
            os.fsync(file.fileno())
