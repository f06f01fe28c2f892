"""The vectors of a corpus in a file. What is done when a run is killed is kept beside it, and the next run goes on."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from selfsent.data.corpus import Corpus
from selfsent.data.vector_files import CONTENT
from selfsent.display import counted
from selfsent.errors import OutputError, SettingsError
from selfsent.files import output_errors, write_json
from selfsent.integrity import warn_damaged
from selfsent.locks import lock_directory
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import CHARACTERS, CHUNK, Side, encode_stream, prompt_of, tokens_at_once
from selfsent.models.fingerprint import hash_weights
from selfsent.search.encoder import opened
from selfsent.search.rows import sentences, write_rows

FORMATS = tuple(CONTENT)


@dataclass(frozen=True)
class Encoded:
    """How many vectors a file holds, of how many numbers.

    Args:
        rows: one vector each.
        size: numbers of a vector.
        kept: how many of the rows an earlier run had done.
        zeros: rows without text, whose vectors are zeros.
    """

    rows: int
    size: int
    kept: int
    zeros: int


def check_output(output: Path) -> None:
    """Refuse what cannot become a file of vectors.

    Raises:
        SettingsError: its name ends otherwise than in one of `FORMATS`.
        OutputError: it is a directory.
    """
    if output.is_dir():
        raise OutputError(f"{output} is a directory: name a file")
    if output.suffix not in FORMATS:
        raise SettingsError(f"--output {output} must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of length 1; one of zeros stays as it is."""
    ones: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return ones


def encode_to_file(
    model: Encoder | str | os.PathLike[str],
    corpus: Corpus,
    output: str | Path,
    advance: Callable[[int], None] = lambda count: None,
    side: Side | None = None,
) -> Encoded:
    """Write a vector for each row of the input, in its order; memory hardly grows with the corpus.

    What was repeated is computed once. An empty text has a vector of zeros. Where texts were split, there is a vector
    for each sentence. A corpus that was read without `carry` knows no rows of the input, only its own.

    Killed or interrupted, it leaves the vectors made so far in a hidden directory beside `output`. The same call
    continues from there; the file is the same, bit for bit, as if nothing had happened.

    Args:
        model: the encoder, or the name of one.
        corpus: the sentences.
        output: a `.npy` file of (n, d) float32; a `.npz` file with that as `embeddings`, and `row` and `sentence` where
            texts were split; or a `.parquet` file with the columns of `InputRows.describe`, `text` and `embedding`.
        advance: called with the number of rows done since the last call.
        side: of a search, for models that want a prompt in front of queries or documents.

    Raises:
        SettingsError: the name ends otherwise.
        OutputError: the file cannot be written.
        KeyboardInterrupt: with a message that says how far it came.
    """
    model, output = opened(model), Path(output)
    check_output(output)
    inputs = corpus.input_rows
    with output_errors(output):
        part = _Part(output, corpus, model, side)
        kept, tell = inputs.done(part.done) if part.done else 0, inputs.progress_callback(advance)
        if part.done:
            tell(part.done)
        try:
            for vectors in encode_stream(model, sentences(corpus, part.done), side):
                part.append(vectors)
                tell(len(vectors))
            part.finish(corpus)
        except KeyboardInterrupt:
            if not part.done:
                part.remove()
                raise
            raise KeyboardInterrupt(
                f"interrupted: {inputs.done(part.done):,} of {counted(len(inputs), inputs.unit)} are done, the same"
                " command goes on from there"
            ) from None
    return Encoded(len(inputs), part.size, kept, inputs.dropped)


class _Part:
    """A file of vectors in the making: `vectors.npy` of the distinct sentences, and how many rows of it are on disk.

    Args:
        output: the file in the end; the directory with the part is hidden beside it.
        corpus: the sentences.
        model: the encoder. Other sentences, another encoder or precision go into another directory.
        side: of a search; likewise.
    """

    def __init__(self, output: Path, corpus: Corpus, model: Encoder, side: Side | None) -> None:
        self.output, self.rows, self.size = output, len(corpus), model.embedding_size
        self.directory = output.with_name(f".{output.name}.{_identity(corpus, model, side)}.part")
        self._vectors, self._state = self.directory / "vectors.npy", self.directory / "done.json"
        self._held = lock_directory(
            self.directory, f"another selfsent is writing {output}: wait for it, or name another file"
        )
        self.done = 0
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, _header(self.rows, self.size))
        self._start = header.tell()
        self._sum = zlib.crc32(header.getvalue())
        """Of the header and the vectors that are done."""
        if self._state.exists():
            with suppress(OSError, ValueError, KeyError, TypeError):
                self._take_up(json.loads(self._state.read_text(encoding="utf-8")))
            if not self.done:
                warn_damaged(f"what an earlier run left of {output}")
        if not self.done:
            self._vectors.write_bytes(header.getvalue())

    def _take_up(self, state: dict[str, int]) -> None:
        """Go on behind what an earlier run wrote, if it is there as it was written."""
        left = self._start + state["rows"] * self.size * 4
        found = 0
        with self._vectors.open("rb") as file:
            while left and (part := file.read(min(left, 1 << 20))):
                found, left = zlib.crc32(part, found), left - len(part)
        if not left and found == state["checksum"]:
            self.done, self._sum = state["rows"], found

    def append(self, vectors: NDArray[np.float32]) -> None:
        """Write the vectors of the next sentences."""
        with self._vectors.open("r+b") as file:
            file.seek(self._start + self.done * self.size * 4)
            data = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self.done, self._sum = self.done + len(vectors), zlib.crc32(data, self._sum)
        write_json(self._state, {"rows": self.done, "checksum": self._sum})

    def finish(self, corpus: Corpus) -> None:
        """Put the whole file in its place, and remove this part and others of the same file."""
        write_rows(self._vectors, corpus, self.output)
        self.remove()

    def remove(self) -> None:
        """Remove this part and others of the same file."""
        for part in self.output.parent.glob(f".{glob.escape(self.output.name)}.*.part"):
            shutil.rmtree(part, ignore_errors=True)


def _header(rows: int, size: int) -> dict[str, Any]:
    return {"descr": "<f4", "fortran_order": False, "shape": (rows, size)}


def _identity(corpus: Corpus, model: Encoder, side: Side | None) -> str:
    """A short name for everything that the vectors depend on."""
    found = hashlib.sha256()
    for about in (
        corpus.fingerprint,
        corpus.text_columns[0],
        len(corpus),
        torch.__version__,
        torch.get_num_threads(),
    ):
        found.update(f"{about}|".encode())
    how = CHUNK, CHARACTERS, tokens_at_once(model), model, model.device.type, model.tokenizer.model_max_length
    found.update("|".join(map(str, (*how, prompt_of(model, side)))).encode())
    found.update(str(getattr(model.transformer, "config", type(model.transformer).__name__)).encode())
    tokenizer = Tokenizer.from_str(model.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_truncation()  # which only the last call made
    tokenizer.no_padding()
    found.update(tokenizer.to_str().encode())
    hash_weights(found, model)
    return found.hexdigest()[:12]
