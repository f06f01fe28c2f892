"""Means of word vectors from a file the user has, plain or weighed by how rare a word is (SIF)."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError
from selfsent.evaluation.vectors import Vectors
from selfsent.files import cache_folder, read_json, whole_directory
from selfsent.integrity import checksums, damaged, tell_damaged

SMOOTH = 1e-3
"""The `a` of Arora et al.'s a / (a + p(word))."""
TOGETHER = 1024
"""Lines read at a time."""
LONGEST = 1 << 20
"""Bytes of a line; a word with a thousand numbers has some ten thousand."""
_PREFIXES = ("glove:", "sif:")
_SUMS = "sums.json"
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_WANTED = "a word and its numbers on each line, as GloVe and word2vec write them as text"


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
        next(_blocks(self.path))

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
                for block, vectors in _blocks(self.path):
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


def _blocks(path: Path) -> Iterator[tuple[list[str], Vectors]]:
    """Words and their vectors, some at a time.

    Raises:
        DataError: the file cannot be read, or a line is no word with as many numbers as the others have.
    """
    size = 0
    try:
        with _opened(path) as file:
            numbered = _lines(path, file)
            while lines := list(islice(numbered, TOGETHER)):
                size = size or len(lines[0][1].split()) - 1
                if size < 2:
                    raise DataError(f"{path}, line {lines[0][0]}: expected {_WANTED}")
                yield _parsed(path, lines, size)
    except (OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not size:
        raise DataError(f"{path} holds no vectors; expected {_WANTED}")


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb")


def _lines(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that are not empty, without the heading `count size` of word2vec."""
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        if len(line) == LONGEST:
            raise DataError(f"{path}, line {number} is longer than {LONGEST:,} bytes; expected {_WANTED}")
        if line.strip() and not (number == 1 and re.fullmatch(rb"\d+\s+\d+", line.strip())):
            yield number, line.rstrip()


def _parsed(path: Path, lines: Sequence[tuple[int, bytes]], size: int) -> tuple[list[str], Vectors]:
    # From the right: some words of GloVe's largest file have spaces in them.
    parts = [line.rsplit(None, size) for _, line in lines]
    numbers = b" ".join(b" ".join(part[1:]) for part in parts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            values = np.fromstring(numbers, np.float32, sep=" ")
        except (ValueError, DeprecationWarning):
            values = np.zeros(0, np.float32)
    if len(values) == size * len(lines) and np.isfinite(values).all() and {*map(len, parts)} == {size + 1}:
        return [part[0].decode("utf-8", "replace") for part in parts], values.reshape(len(lines), size)
    if len(lines) > 1:
        for line in lines:  # to find the one that is wrong
            _parsed(path, [line], size)
    raise DataError(
        f"{path}, line {lines[0][0]}: expected a word and {size} numbers; a binary file must be saved as text first"
    )
