"""Vectors of a corpus: computed, read from a file, or written to a file aligned with the input rows."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.clean import clean
from selfsent.data.vector_files import VectorsFile, unit
from selfsent.display import counted
from selfsent.errors import DataError, OutputError, SettingsError
from selfsent.files import atomic_file, output_errors
from selfsent.locks import lock_directory
from selfsent.models import encoding
from selfsent.models.encoding import CHUNK, Side, encode, encode_stream, prompt_of, warn_on_truncation
from selfsent.models.fingerprint import fingerprint
from selfsent.models.opening import open_encoder
from selfsent.models.table import Table
from selfsent.progress import SILENT, Progress
from selfsent.renamed import callbacks_as_progress
from selfsent.resumable import ArrayCache, key_of

if TYPE_CHECKING:
    from selfsent.data.corpus import Corpus
    from selfsent.models.encoding import Model

FORMATS = (".npy", ".parquet")
ARROW_TYPES = {bool: "bool", int: "int64", float: "float64", str: "string"}
CHECKED = 16
"""Rows per block of a file that are encoded again, to verify model and corpus."""
MEAN_COSINE, LEAST_COSINE = 0.99, 0.9
"""Minimum mean and minimum of cosines between stored and computed vectors; 8-bit vectors differ a little."""


@dataclass(frozen=True)
class Encoded:
    """Counts for a file of vectors.

    Args:
        rows: number of vectors.
        size: dimension of the vectors.
        kept: distinct texts done by an earlier run.
        zeros: rows without text, with zero vectors.
        normalized: whether vectors have length 1, by a sample.
    """

    rows: int
    size: int
    kept: int
    zeros: int
    normalized: bool


def sentences(corpus: Corpus, start: int = 0) -> Iterator[str]:
    """The distinct sentences of a corpus from `start` on, few in memory at a time."""
    return islice((text for batch in corpus.batches(size=256) for text in batch), start, None)


def check_output(output: Path) -> None:
    """Reject a path unfit for a file of vectors.

    Raises:
        SettingsError: a suffix not in `FORMATS`.
        OutputError: it is a directory.
    """
    if output.is_dir():
        raise OutputError(f"{output} is a directory: name a file")
    if output.suffix not in FORMATS:
        raise SettingsError(f"`output` {output} must end in {' or '.join(FORMATS)}")


@callbacks_as_progress
def encode_to_file(
    model: Model | str | os.PathLike[str],
    corpus: Corpus,
    output: str | Path,
    progress: Progress = SILENT,
    side: Side | None = None,
    normalize: bool = False,
    chunk_size: int = CHUNK,
) -> Encoded:
    """Write a vector for each input row, in order; memory hardly grows with the corpus.

    Repeated texts are computed once, and empty ones have zero vectors. Split texts have a vector for each sentence.

    After an interruption, finished vectors stay in a hidden directory next to `output`. The same call resumes from
    them, and the file is bit-identical.

    Args:
        model: the encoder, or the name of one.
        corpus: the sentences.
        output: a `.npy` file of (n, d) float32, or a `.parquet` file with the columns of `InputRows.describe`, `text`
            and `embedding`.
        progress: receives the number of distinct texts done.
        side: of a search, for models with a prompt for queries or documents.
        normalize: scale each vector to length 1, even if the model does not.
        chunk_size: texts computed and stored together, which an interruption may lose.

    Raises:
        SettingsError: another suffix.
        OutputError: the file cannot be written.
        KeyboardInterrupt: with the progress as message.
    """
    model, output = open_encoder(model), Path(output)
    check_output(output)
    inputs = corpus.input_rows
    directory = output.with_name(f".{output.name}.{key_of(_identity(corpus, model, side, normalize, chunk_size))}.part")
    with output_errors(output):
        _lock = lock_directory(directory, f"another selfsent is writing {output}: wait for it, or name another file")
        name = f"the part of {output} from an earlier run"
        cache = ArrayCache(directory, len(corpus), model.embedding_size, np.float32, name)
        try:
            with warn_on_truncation(model):
                advance = progress.counting("encoding", len(corpus))
                blocks = partial(_blocks, model, corpus, side, normalize, chunk_size)
                kept = cache.fill_in_order(blocks, advance)
            lengths = np.linalg.norm(cache.vectors[:1000], axis=1)
            _write_rows(cache, corpus, output, chunk_size)
        except KeyboardInterrupt:
            if not (done := int(cache.done.sum())):
                _remove_parts(output)
                raise
            share = f"{done:,} of {counted(len(corpus), 'text')} are done"
            raise KeyboardInterrupt(f"interrupted: {share}, the same command goes on from there") from None
        _remove_parts(output)
    normalized = bool(np.allclose(lengths, 1, atol=1e-3))
    return Encoded(len(inputs), model.embedding_size, kept, inputs.dropped, normalized)


def _blocks(
    model: Model, corpus: Corpus, side: Side | None, normalize: bool, chunk_size: int, start: int
) -> Iterator[NDArray[np.float32]]:
    """The vectors of a corpus' distinct sentences from `start` on, some at a time."""
    for block in encode_stream(model, sentences(corpus, start), side, chunk_size):
        yield unit(block) if normalize else block


def _identity(corpus: Corpus, model: Model, side: Side | None, normalize: bool, chunk_size: int) -> tuple[object, ...]:
    """Everything the vectors depend on, as JSON."""
    data = corpus.fingerprint, corpus.text_columns[0], len(corpus), *(("normalized",) if normalize else ())
    return *data, fingerprint(model), prompt_of(model, side), chunk_size, encoding.CHARACTERS, _machine(model)


def _machine(model: Model) -> tuple[object, ...]:
    """Everything else that the last digits of a model's vectors depend on."""
    if isinstance(model, Table):
        return np.__version__, *((each.kind, each.size) for each in model.after)
    import torch

    from selfsent.models.packing import tokens_at_once

    computing = torch.__version__, torch.get_num_threads(), model.device.type, tokens_at_once(model)
    return *computing, str(model), str(getattr(model.transformer, "config", ""))


def _remove_parts(output: Path) -> None:
    """Remove unfinished vectors of a file, including those of other corpora or encoders."""
    for part in output.parent.glob(f".{glob.escape(output.name)}.*.part"):
        shutil.rmtree(part, ignore_errors=True)


def _write_rows(cache: ArrayCache, corpus: Corpus, output: Path, chunk_size: int) -> None:
    """Expand the vectors of the distinct sentences to one per input row."""
    inputs, size = corpus.input_rows, cache.vectors.shape[1]
    if output.suffix == ".npy" and len(inputs) == len(corpus):  # no repeated or empty rows
        cache.path("vectors").replace(output)
        return

    def blocks() -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]:
        for start in range(0, len(inputs), chunk_size):
            input_rows = np.arange(start, min(start + chunk_size, len(inputs)))
            rows = np.asarray(inputs.corpus_rows[input_rows])
            block = np.zeros((len(rows), size), dtype="<f4")
            # Remapped for each block: mapped pages stay resident.
            block[rows >= 0] = np.load(cache.path("vectors"), mmap_mode="r", allow_pickle=False)[rows[rows >= 0]]
            yield input_rows, rows, block

    with atomic_file(output) as temporary:
        if output.suffix == ".npy":
            with temporary.open("wb") as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": (len(inputs), size)}
                np.lib.format.write_array_header_1_0(file, header)
                for _, _, block in blocks():
                    file.write(block.data)
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        kinds = {name: ARROW_TYPES[kind] for name, kind in (inputs.columns | {"text": str}).items()}
        schema = pa.schema([*kinds.items(), ("embedding", pa.list_(pa.float32(), size))])
        with pq.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True) as writer:
            for input_rows, rows, block in blocks():
                column = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), size)
                cells = inputs.describe(input_rows) | {"text": _texts(corpus, rows), "embedding": column}
                writer.write_table(pa.table(cells, schema=schema))


def _texts(corpus: Corpus, rows: NDArray[np.int64]) -> list[str]:
    """The texts of rows of a corpus; empty for row -1."""
    texts = np.full(len(rows), "", dtype=object)
    texts[rows >= 0] = corpus.texts(rows[rows >= 0])
    return texts.tolist()


@callbacks_as_progress
def encode_corpus(
    model: Model | str | os.PathLike[str],
    corpus: Corpus,
    progress: Progress = SILENT,
    file: VectorsFile | None = None,
    on_disk: bool = False,
) -> NDArray[np.float32]:
    """The vectors of a corpus' distinct sentences, (n, d), each of length 1.

    Args:
        model: the encoder, or the name of one.
        corpus: the sentences.
        progress: receives the number of texts done.
        file: vectors from `encode_to_file`; computed if None.
        on_disk: keep them in a temporary file, which is mapped and ends with the array, and not in memory.

    Raises:
        DataError: the file is damaged, or holds other vectors.
        OutputError: there is no room for the temporary file.
    """
    model = open_encoder(model)
    shape = len(corpus), model.embedding_size
    advance = progress.counting("reading vectors" if file else "encoding", len(corpus))

    def blocks() -> Iterator[NDArray[np.float32]]:
        for block in corpus_vectors(model, corpus, file):
            yield unit(block)
            advance(len(block))

    if on_disk and len(corpus):
        return _mapped(blocks(), shape)
    vectors, done = np.empty(shape, np.float32), 0
    for block in blocks():
        vectors[done : done + len(block)] = block
        done += len(block)
    return vectors


def _mapped(blocks: Iterable[NDArray[np.float32]], shape: tuple[int, int]) -> NDArray[np.float32]:
    """The rows of blocks in a temporary file, mapped."""
    folder = Path(tempfile.gettempdir())
    with ExitStack() as opened:
        with output_errors(folder):
            file = opened.enter_context(tempfile.TemporaryFile(prefix="selfsent-"))
        for block in blocks:
            # A page of a mapped file that finds no room on the disk would end the process.
            with output_errors(folder):
                file.write(block.tobytes())
                file.flush()
        return np.memmap(file, np.float32, "r", shape=shape)


def corpus_vectors(
    model: Model, corpus: Corpus, file: VectorsFile | None = None, side: Side | None = None
) -> Iterator[NDArray[np.float32]]:
    """The vectors of a corpus' distinct sentences in order, some thousand at a time, computed or read from a file.

    All texts of the file are compared with the corpus, and a sample of its vectors with the model's.

    Args:
        model: the encoder.
        corpus: the sentences.
        file: from `encode_to_file`.
        side: of a search.

    Raises:
        DataError: the file is damaged, or holds other vectors.
    """
    if file is None:
        with warn_on_truncation(model):
            yield from encode_stream(model, sentences(corpus), side)
        return
    check_rows(file, corpus)
    if file.size != model.embedding_size:
        raise DataError(f"{file.path} holds vectors of {file.size} numbers; this model's have {model.embedding_size}")
    inputs, done, draw = corpus.input_rows, 0, np.random.default_rng(0)
    for vectors, stored in file.parts():
        input_rows = np.arange(done, done + len(vectors))
        rows = np.asarray(inputs.corpus_rows[input_rows])
        if stored is not None and stored != (expected := _texts(corpus, rows)):
            stored = clean(stored)[0]  # a table that an engine encoded has its texts as they were
            for row, (text, other) in enumerate(zip(expected, stored, strict=True), done):
                if text != other:
                    raise DataError(f"{file.path} holds vectors of another corpus: row {row} is {other[:60]!r}")
        if not (finite := np.isfinite(vectors).all(1)).all():
            raise DataError(f"{file.path} holds numbers that are not finite in row {done + int(np.argmin(finite))}")
        if len(filled := np.flatnonzero(rows >= 0)):
            chosen = np.append(draw.permutation(filled[:-1])[: CHECKED - 1], filled[-1])
            cosines = _cosines(vectors[chosen], encode(model, corpus.texts(rows[chosen]), side=side))
            if not (cosines.mean() >= MEAN_COSINE and cosines.min() >= LEAST_COSINE):
                worst = int(np.argmin(cosines))
                prompted = side is not None and prompt_of(model, "document") != prompt_of(model)
                hint = ": write it with selfsent encode --prompt document" if prompted else ""
                other = f"cosine {cosines[worst]:.2f} in row {input_rows[chosen][worst]}{hint}"
                raise DataError(f"{file.path} holds other vectors than this model has for these texts: {other}")
        yield vectors[inputs.is_first(input_rows)]
        done += len(vectors)


def check_rows(file: VectorsFile, corpus: Corpus) -> None:
    """Check the number of vectors in a file against a corpus.

    Raises:
        DataError: they differ.
    """
    if file.rows != (rows := len(corpus.input_rows)):
        kind = corpus.input_rows.unit
        found = f"{file.path} holds {counted(file.rows, 'vector')}; this corpus has {counted(rows, kind)}"
        again = f"encode it again, with the same options (each {kind} has a vector, also an empty or a repeated one)"
        raise DataError(f"{found}: {again}")


def _cosines(stored: NDArray[np.float32], computed: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosines of vectors (n, d) and others, row by row; 1 where both have no length, as texts without tokens do."""
    cosines = np.asarray((unit(stored) * unit(computed)).sum(1))
    cosines[~stored.any(1) & ~computed.any(1)] = 1
    return cosines
