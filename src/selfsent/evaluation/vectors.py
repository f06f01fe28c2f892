"""Vectors with their texts, kept in a file: an encoder that need not be run again."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError, SettingsError
from selfsent.files import whole_file

Vectors = NDArray[np.float32]
FORMATS = (".parquet", ".npz")
UNKNOWN = "custom"


class StoredVectors:
    """Encodes the texts of a file: `.parquet` with `text` and `embedding`, or `.npz` with `texts` and `embeddings`.

    Beside them are kept the model's pooling, for signatures (`custom` where it is not), and what it was trained on.

    Args:
        path: the file.

    Raises:
        DataError: it does not exist, or does not hold a vector for each text.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise DataError(f"{path} does not exist")
        read = _read_npz if path.suffix == ".npz" else _read_parquet
        texts, self.vectors, self.pooling, self.trained_on = read(path)
        if self.vectors.ndim != 2 or len(texts) != len(self.vectors):
            raise DataError(f"{path} holds {len(texts)} texts and embeddings {self.vectors.shape}: they do not fit")
        self.rows = {text: row for row, text in enumerate(texts)}

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
    path: Path, texts: Sequence[str], vectors: Vectors, pooling: str = UNKNOWN, trained_on: Sequence[str] = ()
) -> None:
    """Write vectors with their texts, so that `StoredVectors` reads them back.

    Args:
        path: `.parquet`, or `.npz`, in which the longest text decides how much room each takes.
        texts: (n,) distinct texts.
        vectors: (n, d).
        pooling: of the model.
        trained_on: the corpora it was trained on, as far as they are known.

    Raises:
        SettingsError: the name ends otherwise.
        OutputError: the file cannot be written.
    """
    check_format(path)
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = {"pooling": pooling, "trained_on": "\n".join(trained_on)}
    with whole_file(path) as temporary:
        if path.suffix == ".npz":
            arrays: dict[str, Any] = {name: np.array(text) for name, text in about.items()}
            with temporary.open("wb") as file:
                np.savez_compressed(file, texts=np.array(texts, np.str_), embeddings=vectors, **arrays)
        else:
            column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
            table = pa.table({"text": pa.array(texts, pa.string()), "embedding": column})
            pq.write_table(table.replace_schema_metadata(about), temporary)


def check_format(path: Path) -> None:
    """Refuse a file name that says no known format.

    Raises:
        SettingsError: it ends in neither `.parquet` nor `.npz`.
    """
    if path.suffix not in FORMATS:
        raise SettingsError(f"{path} must end in {' or '.join(FORMATS)}")


def _read_npz(path: Path) -> tuple[list[str], Vectors, str, list[str]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            pooling = str(file["pooling"]) if "pooling" in file else UNKNOWN
            trained_on = str(file["trained_on"]).splitlines() if "trained_on" in file else []
            texts = [str(text) for text in file["texts"]]
            return texts, np.asarray(file["embeddings"], np.float32), pooling, trained_on
    except (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        raise DataError(
            f"{path} must hold the arrays texts (n,) and embeddings (n, d), as evaluate --vectors writes them: {reason}"
        ) from error


def _read_parquet(path: Path) -> tuple[list[str], Vectors, str, list[str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=["text", "embedding"])
        flat = table["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        about = table.schema.metadata or {}
        pooling = about.get(b"pooling", UNKNOWN.encode()).decode()
        vectors = flat.astype(np.float32, copy=False).reshape(len(table), -1)
        return table["text"].to_pylist(), vectors, pooling, about.get(b"trained_on", b"").decode().splitlines()
    except (OSError, pa.ArrowException, KeyError, ValueError, AttributeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} must hold the columns text and embedding, lists of one length: {reason}") from error
