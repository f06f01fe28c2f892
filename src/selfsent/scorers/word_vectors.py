"""Means of word vectors from the user's file, with or without stop words."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from selfsent.data.vector_files import Vectors
from selfsent.data.word_vectors import word_blocks
from selfsent.errors import DataError
from selfsent.files import atomic_directory, cache_folder, read_json
from selfsent.integrity import checksums, damaged, warn_damaged

PREFIXES = ("glove", "word2vec", "fasttext", "nostop")
"""Prefixes of files; `nostop` leaves stop words out. The file format is detected from the content."""
_VERSION = 2
"""Version of the cached table: bump when parsing changes."""
_TABLE, _SUMS = ("vectors.f32", "words.parquet"), "sums.json"
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def words_file(model: str) -> tuple[str, Path] | None:
    """The prefix and the file of `glove:FILE` and similar; None for any other name."""
    prefix, _, file = model.partition(":")
    return (prefix, Path(file).expanduser()) if prefix in PREFIXES and file else None


class WordVectors:
    """Means of word vectors as sentence vectors: n texts -> (n, d).

    The file, in a format of `word_blocks`, is read once into a cached table, from which only needed rows are read. A
    word is looked up unchanged, then in lower case; unknown words are skipped. A text without known words has a zero
    vector.

    Args:
        path: the file.
        stop_words: whether words of scikit-learn's English list count.

    Examples:
        >>> vectors = WordVectors(Path("glove.6B.300d.txt"))  # doctest: +SKIP
        >>> vectors(["a sentence", "another one"]).shape  # doctest: +SKIP
        (2, 300)
    """

    def __init__(self, path: Path, stop_words: bool = True) -> None:
        self.path, self.stop_words = path, stop_words

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
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

        left_out = frozenset() if self.stop_words else ENGLISH_STOP_WORDS

        def words_of(text: str) -> list[str]:
            return [word for word in _WORD.findall(text) if word.lower() not in left_out]

        counter = CountVectorizer(analyzer=words_of)
        try:
            counts = counter.fit_transform(texts)
        except ValueError:  # no words
            return np.zeros((len(texts), self._table[1].shape[1]), np.float32)
        rows = self._rows(counter.get_feature_names_out().tolist())
        order = np.argsort(rows)[np.count_nonzero(rows < 0) :]  # of the file, without unknown words
        counts = counts[:, order]
        return np.asarray(counts @ self._table[1][rows[order]] / np.maximum(1, counts.sum(1)), np.float32)

    def _rows(self, words: list[str]) -> NDArray[np.int64]:
        """The row of each word, or -1."""
        import pyarrow.compute as pc

        rows, lower = (
            pc.index_in(pa.array(names, pa.string()), value_set=self._table[0]).fill_null(-1).to_numpy()
            for names in (words, [word.lower() for word in words])
        )
        return np.asarray(np.where(rows >= 0, rows, lower), np.int64)

    @cached_property
    def _table(self) -> tuple[Any, NDArray[np.float32]]:
        """The words, and their memory-mapped vectors, from the cache."""
        try:
            known = self.path.resolve().stat()
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror}") from error
        identity = f"{_VERSION}|{self.path.resolve()}|{known.st_size}|{known.st_mtime_ns}"
        digest = hashlib.blake2b(identity.encode(errors="surrogateescape"), digest_size=8).hexdigest()
        directory = cache_folder() / "word-vectors" / digest
        sums = read_json(directory / _SUMS)
        if not sums.keys() >= set(_TABLE) or damaged(directory, sums):
            if directory.is_dir():
                warn_damaged(directory)
            with atomic_directory(directory) as folder:
                self._write(folder)
        words = pq.read_table(directory / "words.parquet")["word"].combine_chunks()
        return words, np.memmap(directory / "vectors.f32", np.float32, "r").reshape(len(words), -1)

    def _write(self, folder: Path) -> None:
        words = list[str]()
        with (folder / "vectors.f32").open("wb") as file:
            for block, vectors in word_blocks(self.path):
                words += block
                file.write(vectors.tobytes())
        pq.write_table(pa.table({"word": pa.array(words, pa.string())}), folder / "words.parquet")
        (folder / _SUMS).write_text(json.dumps(checksums(folder, _TABLE)))
