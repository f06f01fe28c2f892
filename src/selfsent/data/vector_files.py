"""Files of vectors with their texts, which stand in for an encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import CorpusError, DataError, SettingsError
from selfsent.files import atomic_file

Vectors = NDArray[np.float32]
SUFFIX = ".parquet"
"""Suffix of files of vectors with their texts."""
UNKNOWN = "custom"
CONTENT = {".npy": "an array of floats (n, d)", SUFFIX: "the columns text and embedding, lists of floats of one length"}
"""Required content of a file of vectors, by suffix."""


def unit(vectors: Vectors) -> Vectors:
    """Vectors (n, d) scaled to length 1; a vector of zeros is unchanged, and NaN becomes 0."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    ones = np.asarray(vectors / np.where(norms > 0, norms, 1), np.float32)
    return ones if np.isfinite(norms).all() else np.nan_to_num(ones)


def inner(left: Any, right: Any) -> Vectors:
    """The inner product of every row of one with every row of the other, (q, n); both arrays, or both sparse."""
    product = left @ right.T
    return product if isinstance(product, np.ndarray) else np.asarray(product.toarray())


class VectorsFile:
    """A file of vectors, opened: `.npy`, or `.parquet` with `embedding` and `text`; or a folder of such `.parquet`.

    Args:
        path: the file or folder. The files of a folder are read in the order in which a corpus reads them.
        chunk_size: rows read at a time.

    Raises:
        SettingsError: it has another suffix.
        DataError: it is missing or has other content.
    """

    def __init__(self, path: Path, chunk_size: int = 4096) -> None:
        self.path, self._chunk_size = path, chunk_size
        self._suffix = SUFFIX if path.is_dir() else path.suffix
        if self._suffix not in CONTENT:
            raise SettingsError(f"{path} must end in {' or '.join(CONTENT)}")
        self._parquet = [path]
        if path.is_dir():
            from selfsent.data.corpus.sources import find_files

            try:
                found = [Path(str(each)) for each in find_files(str(path))]
            except CorpusError:  # no text in any format
                found = []
            self._parquet = [each for each in found if each.suffix == SUFFIX]
            if not self._parquet:
                raise DataError(f"{path} holds no {SUFFIX} file")
        elif not path.is_file():
            raise DataError(f"{path} is no file" if path.exists() else f"{path} does not exist")
        self.about: dict[str, str] = {}
        """Facts of the model, from `write_vectors`."""
        self._vectors: NDArray[Any] | None = None
        """Memory-mapped `.npy`; None for `.parquet`."""
        with self._read_errors():
            if self._suffix == SUFFIX:
                self._open_parquet()
                return
            with path.open("rb") as opened:
                if opened.read(6) != b"\x93NUMPY":
                    raise ValueError("it is no .npy file")
            self._vectors = np.load(path, mmap_mode="r", allow_pickle=False)
            if self._vectors.ndim != 2 or self._vectors.dtype.kind != "f":
                raise ValueError(f"it has {self._vectors.dtype} of shape {self._vectors.shape}")
            self.rows, self.size = self._vectors.shape

    def parts(self) -> Iterator[tuple[Vectors, list[str] | None]]:
        """Vectors, (up to `chunk_size`, d) at a time, with their texts where the file has them.

        Raises:
            DataError: the file is damaged further down.
        """
        if self._vectors is not None:
            for start in range(0, self.rows, self._chunk_size):
                yield np.ascontiguousarray(self._vectors[start : start + self._chunk_size], dtype=np.float32), None
            return
        yield from self._parts_of_parquet()

    @contextmanager
    def _read_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            reason = str(error.args[0] if isinstance(error, KeyError) else error).splitlines() or [type(error).__name__]
            raise DataError(f"{self.path} must hold {CONTENT[self._suffix]}: {reason[0]}") from error

    def _open_parquet(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.rows = self.size = 0
        for path in self._parquet:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                schema = file.schema_arrow
                kind, of_text = schema.field("embedding").type, schema.field("text").type
                lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
                if not lists or not pa.types.is_floating(kind.value_type):
                    raise ValueError(f"embedding is {kind}")
                if not (pa.types.is_string(of_text) or pa.types.is_large_string(of_text)):
                    raise ValueError(f"text is {of_text}")
                first = next(file.iter_batches(1, columns=["embedding"]), None)
                self.rows += file.metadata.num_rows
                self.size = self.size or (len(first["embedding"][0] or ()) if first else 0)
                self.about |= {name.decode(): value.decode() for name, value in (schema.metadata or {}).items()}

    def _parts_of_parquet(self) -> Iterator[tuple[Vectors, list[str]]]:
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        for path in self._parquet:
            with self._read_errors(), pq.ParquetFile(path, page_checksum_verification=True) as file:
                for batch in file.iter_batches(self._chunk_size, columns=["text", "embedding"]):
                    lists, texts = batch["embedding"], batch["text"]
                    uneven = pc.any(pc.not_equal(pc.list_value_length(lists), self.size)).as_py()
                    if lists.null_count or texts.null_count or uneven:
                        raise ValueError("some are missing, or of another length")
                    flat = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
                    yield flat.reshape(len(batch), self.size), texts.to_pylist()


class StoredVectors:
    """Encodes the texts of a `.parquet` file with `text` and `embedding`.

    The file also has the pooling of the model, for signatures (else `custom`), its training data, its methods, and the
    record of what it has read.

    Args:
        path: the file.

    Raises:
        DataError: it does not exist, or does not hold a vector for each text.
    """

    def __init__(self, path: Path) -> None:
        file = VectorsFile(path)
        self.path, self.pooling = path, file.about.get("pooling", UNKNOWN)
        lines = {name: file.about.get(name, "").splitlines() for name in ("trained_on", "trained_by")}
        self.trained_on, self.trained_by = lines.values()
        self.texts_read = file.about.get("texts_read", "")
        self.vectors: Vectors = np.empty((file.rows, file.size), np.float32)
        self.rows: dict[str, int] = {}
        done = 0
        for vectors, texts in file.parts():
            self.vectors[done : done + len(vectors)] = vectors
            self.rows |= {text: done + row for row, text in enumerate(texts or ())}
            done += len(vectors)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, (n, d).

        Raises:
            DataError: some are not in the file.
        """
        lacking = [text for text in texts if text not in self.rows]
        if lacking:
            raise DataError(f"{self.path} lacks {len(lacking)} of {len(texts)} texts, first: {lacking[0]!r}")
        vectors: Vectors = self.vectors[[self.rows[text] for text in texts]]
        return vectors


def write_vectors(path: Path, texts: Sequence[str], vectors: Vectors, **about: str) -> None:
    """Write vectors with their texts, so that `StoredVectors` reads them back.

    Args:
        path: a `.parquet` file.
        texts: (n,) distinct texts.
        vectors: (n, d).
        **about: the model: `pooling`; `trained_on`, the known corpora, and `trained_by`, the methods, one a line;
            `texts_read`, the record of what it has read.

    Raises:
        SettingsError: the file has another suffix.
        OutputError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_format(path)
    with atomic_file(path) as temporary:
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        table = pa.table({"text": pa.array(texts, pa.string()), "embedding": column})
        pq.write_table(table.replace_schema_metadata(about), temporary, write_page_checksum=True)


def check_format(path: Path) -> None:
    """Reject a file name without the suffix of vectors with texts.

    Raises:
        SettingsError: it does not end in `.parquet`.
    """
    if path.suffix != SUFFIX:
        raise SettingsError(f"{path} must end in {SUFFIX}")
