"""Means of word vectors from a file the user has, plain or weighed by how rare a word is (SIF)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.word_vectors import word_blocks
from selfsent.errors import DataError
from selfsent.evaluation.vectors import Vectors
from selfsent.files import cache_folder, read_json, whole_directory
from selfsent.integrity import checksums, damaged, tell_damaged

SMOOTH = 1e-3
"""The `a` of Arora et al.'s a / (a + p(word))."""
_PREFIXES = ("glove:", "sif:")
_SUMS = "sums.json"
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def words_file(model: str) -> tuple[Path, bool] | None:
    """The file of `glove:FILE` or `sif:FILE`, and whether its words are weighed; None for any other name."""
    prefix = next((each for each in _PREFIXES if model.startswith(each) and len(model) > len(each)), None)
    return (Path(model.removeprefix(prefix)).expanduser(), prefix == "sif:") if prefix else None


class WordVectors:
    """Sentence vectors that are means of word vectors: a function of n texts that returns (n, d).

    The file is GloVe's text or word2vec's (fastText's `.vec` is the same), plain or gzip. It is read once into a table
    in the cache, of which only the rows that are needed are looked at afterwards. A word is looked up as it stands,
    then in lower case; words the file lacks are left out, and a text with none of its words has a vector of zeros.

    Args:
        path: the file.
        weighted: SIF (Arora, Liang and Ma, 2017): a word weighs a / (a + p), p being its share of all words of the
            texts that are encoded together, and the first direction of their vectors is taken off.

    Example:
        >>> vectors = WordVectors(Path("glove.6B.300d.txt"), weighted=False)  # doctest: +SKIP
        >>> vectors(["a sentence", "another one"]).shape  # doctest: +SKIP
        (2, 300)
    """

    def __init__(self, path: Path, weighted: bool) -> None:
        self.path, self.weighted = path, weighted

    def check(self) -> None:
        """Find out quickly whether the file can be read.

        Raises:
            DataError: it cannot, or its first lines are no word vectors.
        """
        next(word_blocks(self.path))

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, (n, d), float32.

        Raises:
            DataError: the file cannot be read, or is damaged.
            OutputError: the table of it cannot be written.
        """
        from scipy.sparse import csr_matrix

        found = [_WORD.findall(text) for text in texts]
        names = {word: number for number, word in enumerate(dict.fromkeys(word for words in found for word in words))}
        rows = self._rows(list(names))
        table = np.where(rows[:, None] >= 0, self._table[1][np.maximum(rows, 0)], np.float32(0))
        columns = np.array([names[word] for words in found for word in words], np.int64)
        ends = np.concatenate([[0], np.cumsum([len(words) for words in found])])
        known = (rows >= 0)[columns]
        share = np.bincount(columns, minlength=len(names)) / max(1, len(columns))
        weights = (SMOOTH / (SMOOTH + share))[columns] if self.weighted else np.ones(len(columns))
        summed = csr_matrix((weights * known, columns, ends), shape=(len(texts), len(names))) @ table
        counts = csr_matrix((known.astype(np.float64), columns, ends), shape=(len(texts), len(names))).sum(axis=1)
        means = np.asarray(summed / np.maximum(1, counts), np.float64)
        return (_without_first_direction(means) if self.weighted else means).astype(np.float32)

    def _rows(self, words: list[str]) -> NDArray[np.int64]:
        """The row of each word, -1 where there is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows, lower = (
            pc.index_in(pa.array(names, pa.string()), value_set=self._table[0]).fill_null(-1).to_numpy()
            for names in (words, [word.lower() for word in words])
        )
        return np.asarray(np.where(rows >= 0, rows, lower), np.int64)

    @cached_property
    def _table(self) -> tuple[Any, NDArray[np.float32]]:
        """The words, and their vectors as they lie on disk."""
        import pyarrow.parquet as pq

        place = self._place()
        if not _is_whole(place):
            self._write(place)
        words = pq.read_table(place / "words.parquet")["word"].combine_chunks()
        return words, np.memmap(place / "vectors.f32", np.float32, "r").reshape(len(words), -1)

    def _place(self) -> Path:
        try:
            known = self.path.resolve().stat()
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror}") from error
        identity = f"{self.path.resolve()}|{known.st_size}|{known.st_mtime_ns}"
        digest = hashlib.blake2b(identity.encode(errors="surrogateescape"), digest_size=8).hexdigest()
        return cache_folder() / "word-vectors" / digest

    def _write(self, place: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        words = list[str]()
        with whole_directory(place) as folder:
            with (folder / "vectors.f32").open("wb") as file:
                for block, vectors in word_blocks(self.path):
                    words += block
                    file.write(vectors.tobytes())
            pq.write_table(pa.table({"word": pa.array(words, pa.string())}), folder / "words.parquet")
            (folder / _SUMS).write_text(json.dumps(checksums(folder, ("vectors.f32", "words.parquet"))))


def _is_whole(place: Path) -> bool:
    """Whether the cache has a file's words as they were written; those of older versions have no checksums."""
    if not place.is_dir():
        return False
    sums = read_json(place / _SUMS) if (place / _SUMS).exists() else {"vectors.f32": None, "words.parquet": None}
    if len(sums) == 2 and damaged(place, {name: found for name, found in sums.items() if found is not None}) is None:
        return True
    tell_damaged(place)
    return False


def _without_first_direction(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors (n, d) less their share of the first right singular vector of all of them."""
    first = np.linalg.eigh(vectors.T @ vectors)[1][:, -1]
    return np.asarray(vectors - np.outer(vectors @ first, first))
