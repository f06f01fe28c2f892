"""Means of word vectors from the user's file: plain, without stop words, or weighted by rarity (SIF)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from selfsent.data.vector_files import Vectors
from selfsent.data.word_vectors import word_blocks
from selfsent.errors import DataError
from selfsent.evaluation.cache import cached_directory

SMOOTH = 1e-3
"""The `a` of Arora et al.'s a / (a + p(word))."""
Mean = Literal["mean", "sif", "nostop"]
PREFIXES: dict[str, Mean] = {"glove": "mean", "word2vec": "mean", "fasttext": "mean", "sif": "sif", "nostop": "nostop"}
"""Prefixes of files, and how vectors are averaged. The file format is detected from the content."""
_VERSION = 2
"""Version of the cached table: bump when parsing changes."""
_TABLE = ("vectors.f32", "words.parquet")
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def words_file(model: str) -> tuple[Path, Mean] | None:
    """The file of `glove:FILE` and similar, and how its vectors are averaged; None for any other name."""
    prefix, _, file = model.partition(":")
    return (Path(file).expanduser(), PREFIXES[prefix]) if prefix in PREFIXES and file else None


def words_of(text: str) -> list[str]:
    """The words of a text, unchanged: runs of letters and digits, with inner apostrophes."""
    return _WORD.findall(text)


class WordVectors:
    """Means of word vectors as sentence vectors: n texts -> (n, d).

    The file, in a format of `word_blocks`, is read once into a cached table, from which only needed rows are read. A
    word is looked up unchanged, then in lower case; unknown words are skipped. A text without known words has a zero
    vector.

    Args:
        path: the file.
        mean: `mean`; `nostop`, without scikit-learn's English stop words; or `sif` (Arora, Liang and Ma, 2017): words
            are weighted by a / (a + p), with p their relative frequency in the texts encoded together, and the first
            singular direction is removed.

    Example:
        >>> vectors = WordVectors(Path("glove.6B.300d.txt"))  # doctest: +SKIP
        >>> vectors(["a sentence", "another one"]).shape  # doctest: +SKIP
        (2, 300)
    """

    def __init__(self, path: Path, mean: Mean = "mean") -> None:
        self.path, self.mean = path, mean

    def check(self) -> None:
        """Check quickly that the file can be read.

        Raises:
            DataError: it cannot be read, or its first lines are no word vectors.
        """
        next(word_blocks(self.path))

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, (n, d), float32.

        Raises:
            DataError: the file cannot be read, or is damaged.
            OutputError: the cached table cannot be written.
        """
        from scipy.sparse import csr_matrix

        found = [self._counted(words_of(text)) for text in texts]
        names = {word: number for number, word in enumerate(dict.fromkeys(word for words in found for word in words))}
        table, has = self._vectors(list(names))
        columns = np.array([names[word] for words in found for word in words], np.int64)
        ends = np.concatenate([[0], np.cumsum([len(words) for words in found])])
        known = has[columns]
        share = np.bincount(columns, minlength=len(names)) / max(1, len(columns))
        weights = (SMOOTH / (SMOOTH + share))[columns] if self.mean == "sif" else np.ones(len(columns))
        summed = csr_matrix((weights * known, columns, ends), shape=(len(texts), len(names))) @ table
        counts = csr_matrix((known.astype(np.float64), columns, ends), shape=(len(texts), len(names))).sum(axis=1)
        means = np.asarray(summed / np.maximum(1, counts), np.float64)
        return (_without_first_direction(means) if self.mean == "sif" else means).astype(np.float32)

    def _counted(self, words: list[str]) -> list[str]:
        """The words in the mean."""
        if self.mean != "nostop":
            return words
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return [word for word in words if word.lower() not in ENGLISH_STOP_WORDS]

    def _vectors(self, words: list[str]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The vector of each word, (words, d), and whether it has one."""
        rows = self._rows(words)
        table, has = np.where(rows[:, None] >= 0, self._table[1][np.maximum(rows, 0)], np.float32(0)), rows >= 0
        return table, has

    def _rows(self, words: list[str]) -> NDArray[np.int64]:
        """The row of each word, or -1."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows, lower = (
            pc.index_in(pa.array(names, pa.string()), value_set=self._table[0]).fill_null(-1).to_numpy()
            for names in (words, [word.lower() for word in words])
        )
        return np.asarray(np.where(rows >= 0, rows, lower), np.int64)

    @cached_property
    def _table(self) -> tuple[Any, NDArray[np.float32]]:
        """The words, and their memory-mapped vectors."""
        import pyarrow.parquet as pq

        words = pq.read_table(self._directory / "words.parquet")["word"].combine_chunks()
        return words, np.memmap(self._directory / "vectors.f32", np.float32, "r").reshape(len(words), -1)

    @cached_property
    def _directory(self) -> Path:
        try:
            known = self.path.resolve().stat()
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror}") from error
        identity = f"{_VERSION}|{self.path.resolve()}|{known.st_size}|{known.st_mtime_ns}"
        return cached_directory("word-vectors", identity, _TABLE, self._write)

    def _write(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        words = list[str]()
        with (folder / "vectors.f32").open("wb") as file:
            for block, vectors in word_blocks(self.path):
                words += block
                file.write(vectors.tobytes())
        pq.write_table(pa.table({"word": pa.array(words, pa.string())}), folder / "words.parquet")


def _without_first_direction(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors (n, d) minus their projection on their first right singular vector."""
    first = np.linalg.eigh(vectors.T @ vectors)[1][:, -1]
    return np.asarray(vectors - np.outer(vectors @ first, first))
