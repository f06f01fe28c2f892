"""Files of vectors with their texts, which stand in for an encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError, SettingsError
from selfsent.files import atomic_file

Vectors = NDArray[np.float32]
FORMATS = (".parquet", ".npz")
UNKNOWN = "custom"
CONTENT = {
    ".npy": "an array of floats (n, d)",
    ".npz": "an array embeddings of floats (n, d)",
    ".parquet": "the columns text and embedding, lists of floats of one length",
}
"""Required content of a file of vectors, by suffix."""
TOGETHER = 4096
"""Rows read at a time."""


def unit(vectors: Vectors) -> Vectors:
    """Vectors (n, d) scaled to length one; a vector of zeros stays as it is."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.nan_to_num(vectors / np.where(norms > 0, norms, 1)), np.float32)


def inner(left: Any, right: Any) -> Vectors:
    """The inner product of every row of one with every row of the other, (q, n); both arrays, or both sparse."""
    product = left @ right.T
    return product if isinstance(product, np.ndarray) else np.asarray(product.toarray())


class VectorsFile:
    """A file of vectors, opened: `.npy`, `.npz` with `embeddings`, or `.parquet` with `embedding` and `text`.

    Args:
        path: the file.

    Raises:
        SettingsError: it has another suffix.
        DataError: it is missing or has other content.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.suffix not in CONTENT:
            raise SettingsError(f"{path} must end in {', '.join([*CONTENT][:-1])} or {[*CONTENT][-1]}")
        if not path.is_file():
            raise DataError(f"{path} is no file" if path.exists() else f"{path} does not exist")
        self.pooling, self.trained_on, self.trained_by = UNKNOWN, list[str](), list[str]()
        self._texts: list[str] | None = None
        self._vectors: NDArray[Any] | None = None
        """Memory-mapped for `.npy`; None for `.parquet`."""
        with self._read_errors():
            (self._open_parquet if path.suffix == ".parquet" else self._open_arrays)()

    def parts(self) -> Iterator[tuple[Vectors, list[str] | None]]:
        """Vectors, (up to TOGETHER, d) at a time, with their texts where the file has them.

        Raises:
            DataError: the file is damaged further down.
        """
        parts = self._parts_of_parquet() if self._vectors is None else self._parts_of_arrays(self._vectors)
        while True:
            with self._read_errors():
                part = next(parts, None)
            if part is None:
                return
            yield part

    @contextmanager
    def _read_errors(self) -> Iterator[None]:
        try:
            yield
        except DataError:
            raise
        except Exception as error:
            reason = str(error.args[0] if isinstance(error, KeyError) else error).splitlines() or [type(error).__name__]
            raise DataError(f"{self.path} must hold {CONTENT[self.path.suffix]}: {reason[0]}") from error

    def _open_arrays(self) -> None:
        with self.path.open("rb") as opened:
            if not opened.read(8).startswith(b"\x93NUMPY" if self.path.suffix == ".npy" else b"PK"):
                raise ValueError(f"it is no {self.path.suffix} file")
        if self.path.suffix == ".npy":
            vectors = np.load(self.path, mmap_mode="r", allow_pickle=False)
        else:
            with np.load(self.path, allow_pickle=False) as file:
                vectors = file["embeddings"]
                self._texts = [str(text) for text in file["texts"]] if "texts" in file else None
                self.pooling = str(file["pooling"]) if "pooling" in file else UNKNOWN
                self.trained_on, self.trained_by = (
                    str(file[name]).splitlines() if name in file else [] for name in ("trained_on", "trained_by")
                )
        if vectors.ndim != 2 or vectors.dtype.kind != "f":
            raise ValueError(f"it has {vectors.dtype} of shape {vectors.shape}")
        if self._texts is not None and len(self._texts) != len(vectors):
            raise DataError(
                f"{self.path} holds {len(self._texts)} texts and embeddings {vectors.shape}: they do not fit"
            )
        self.rows, self.size = vectors.shape
        self._vectors = vectors

    def _parts_of_arrays(self, vectors: NDArray[Any]) -> Iterator[tuple[Vectors, list[str] | None]]:
        for start in range(0, self.rows, TOGETHER):
            part = slice(start, start + TOGETHER)
            texts = None if self._texts is None else self._texts[part]
            yield np.ascontiguousarray(vectors[part], dtype=np.float32), texts

    def _open_parquet(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            kind, of_text = schema.field("embedding").type, schema.field("text").type
            lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
            if not lists or not pa.types.is_floating(kind.value_type):
                raise ValueError(f"embedding is {kind}")
            if not (pa.types.is_string(of_text) or pa.types.is_large_string(of_text)):
                raise ValueError(f"text is {of_text}")
            first = next(file.iter_batches(1, columns=["embedding"]), None)
            self.rows, self.size = file.metadata.num_rows, len(first["embedding"][0] or ()) if first else 0
            about = schema.metadata or {}
        self.pooling = about.get(b"pooling", UNKNOWN.encode()).decode()
        self.trained_on, self.trained_by = (
            about.get(name, b"").decode().splitlines() for name in (b"trained_on", b"trained_by")
        )

    def _parts_of_parquet(self) -> Iterator[tuple[Vectors, list[str] | None]]:
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(TOGETHER, columns=["text", "embedding"]):
                lists, texts = batch["embedding"], batch["text"]
                uneven = pc.any(pc.not_equal(pc.list_value_length(lists), self.size)).as_py()
                if lists.null_count or texts.null_count or uneven:
                    raise ValueError("some are missing, or of another length")
                flat = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
                yield flat.reshape(len(batch), self.size), texts.to_pylist()


class StoredVectors:
    """Encodes the texts of a file: `.parquet` with `text` and `embedding`, or `.npz` with `texts` and `embeddings`.

    The file also has the pooling of the model, for signatures (else `custom`), its training data and its methods.

    Args:
        path: the file.

    Raises:
        DataError: it does not exist, or does not hold a vector for each text.
    """

    def __init__(self, path: Path) -> None:
        file = VectorsFile(path)
        self.path, self.pooling = path, file.pooling
        self.trained_on, self.trained_by = file.trained_on, file.trained_by
        self.vectors: Vectors = np.empty((file.rows, file.size), np.float32)
        self.rows: dict[str, int] = {}
        done = 0
        for vectors, texts in file.parts():
            if texts is None:
                raise DataError(f"{path} must hold {CONTENT[path.suffix]}, and for this also the array texts (n,)")
            self.vectors[done : done + len(vectors)] = vectors
            self.rows |= {text: done + row for row, text in enumerate(texts)}
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


def write_vectors(
    path: Path,
    texts: Sequence[str],
    vectors: Vectors,
    pooling: str = UNKNOWN,
    trained_on: Sequence[str] = (),
    trained_by: Sequence[str] = (),
) -> None:
    """Write vectors with their texts, so that `StoredVectors` reads them back.

    Args:
        path: `.parquet`, or `.npz`, in which the longest text decides how much room each takes.
        texts: (n,) distinct texts.
        vectors: (n, d).
        pooling: of the model.
        trained_on: the corpora it was trained on, as far as they are known.
        trained_by: likewise the methods.

    Raises:
        SettingsError: the file has another suffix.
        OutputError: the file cannot be written.
    """
    check_format(path)
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = {"pooling": pooling, "trained_on": "\n".join(trained_on), "trained_by": "\n".join(trained_by)}
    with atomic_file(path) as temporary:
        if path.suffix == ".npz":
            arrays: dict[str, Any] = {name: np.array(text) for name, text in about.items()}
            with temporary.open("wb") as file:
                np.savez_compressed(file, texts=np.array(texts, np.str_), embeddings=vectors, **arrays)
        else:
            column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
            table = pa.table({"text": pa.array(texts, pa.string()), "embedding": column})
            pq.write_table(table.replace_schema_metadata(about), temporary, write_page_checksum=True)


def check_format(path: Path) -> None:
    """Reject a file name without a known suffix.

    Raises:
        SettingsError: it ends in neither `.parquet` nor `.npz`.
    """
    if path.suffix not in FORMATS:
        raise SettingsError(f"{path} must end in {' or '.join(FORMATS)}")
