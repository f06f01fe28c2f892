"""Word vectors in binary files: word2vec's form, and fastText's `.bin` with its vectors of subwords, by gensim."""

from __future__ import annotations

import logging
import mmap
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError, SettingsError

FASTTEXT = struct.pack("<i", 793712314)
"""What fastText's binary files begin with."""
_HEADER = struct.Struct("<2i12id3iqq")
"""Behind it: version, 12 arguments and one more, entries, words, labels, tokens, pruned entries."""
_MATRIX = struct.Struct("<?qq")
"""Before the numbers of a matrix: whether it is quantised, rows, columns."""
_CALLED = "fastText's binary form"
_TOGETHER = 1024
_PART = 1 << 20
"""Bytes read at a time; no word is as long."""


@dataclass(frozen=True)
class SubwordVectors:
    """What a binary file of fastText's holds.

    Args:
        words: in its order.
        values: their vectors, (words, d).
        subwords: vectors of the buckets that pieces of words fall into, (buckets, d); none where the file has none.
        shortest: characters of a piece, with the marks of a word's begin and end.
        longest: likewise.
    """

    words: list[str]
    values: NDArray[np.float32]
    subwords: NDArray[np.float32]
    shortest: int
    longest: int


def need_gensim(what: str) -> None:
    """Find out whether gensim is there.

    Raises:
        SettingsError: it is not, which `what` needs.
    """
    try:
        import gensim  # noqa: F401
    except ImportError:
        raise SettingsError(f"{what} needs gensim: pip install 'selfsent[words]'") from None


@contextmanager
def quiet_gensim() -> Iterator[None]:
    """Without what gensim writes to its log, which reaches the terminal from warnings on."""
    logger = logging.getLogger("gensim")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def word2vec_blocks(path: Path, file: IO[bytes]) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
    """Words and vectors, (words, d), of word2vec's binary form: `count size`, then each word and its float32 numbers.

    gensim would hold all of them in memory, and unpack by a file's ending.

    Args:
        path: the file.
        file: it, open, and unpacked if it is packed.

    Raises:
        DataError: it holds fewer or more words than its first line says, or something else.
    """
    count, size = map(int, file.readline(_PART).split())
    cut = f"{path} is no word2vec file, or is cut short: {count:,} words of {size} numbers by its first line"
    if size < 2:
        raise DataError(cut)
    rest, start, words, rows = b"", 0, list[str](), list[NDArray[np.float32]]()
    for number in range(count):
        while (end := rest.find(b" ", start)) < 0 or len(rest) <= end + 4 * size:
            part = file.read(_PART)
            if not part or (end < 0 and len(rest) - start > _PART):
                raise DataError(f"{cut}, and {number:,} can be read")
            rest, start = rest[start:] + part, 0
        words.append(rest[start:end].lstrip(b"\n").decode("utf-8", "replace"))
        rows.append(np.frombuffer(rest, "<f4", size, end + 1))
        start = end + 1 + 4 * size
        if len(words) == _TOGETHER or number == count - 1:
            yield words, _finite(path, np.stack(rows))
            words, rows = [], []
    if not count or rest[start:].strip() or file.read(_PART).strip():
        raise DataError(f"{path} holds more than the {count:,} words of {size} numbers that its first line says")


def check_fasttext(path: Path) -> None:
    """Find out whether a binary file of fastText's is as long as it says: gensim would look for its end for ever.

    Raises:
        DataError: it is not, or it is packed, or a classifier.
        SettingsError: gensim is not installed.
    """
    need_gensim(f"{path}: {_CALLED}")
    with _faults(path), path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[: len(FASTTEXT)] != FASTTEXT:
            raise ValueError("it is packed: gunzip it first")
        _, _, size, *_, buckets, _, _, _, _, entries, words, labels, _, pruned = _HEADER.unpack_from(data)
        if labels > 0:
            raise ValueError("it is a classifier, and no word vectors")
        if pruned > 0:
            raise ValueError("it is quantised: give the file it was made of")
        end = _HEADER.size
        for _ in range(entries):
            end = data.find(b"\0", end) + 10  # behind a word its count and its kind
            if end < 10:
                raise EOFError("it is cut short")
        quantised, rows, columns = _MATRIX.unpack_from(data, end)
        if quantised or not 0 < words == entries or buckets < 0 or (rows, columns) != (words + buckets, size):
            raise ValueError("it is damaged")
        _, rows, columns = _MATRIX.unpack_from(data, end := end + _MATRIX.size + 4 * rows * columns)
        if len(data) < end + _MATRIX.size + 4 * rows * columns:
            raise EOFError("it is cut short")


def read_fasttext(path: Path) -> SubwordVectors:
    """All vectors of a binary file of fastText's (Bojanowski et al., 2017).

    Raises:
        DataError: as `check_fasttext`.
        SettingsError: gensim is not installed.
    """
    check_fasttext(path)
    with _faults(path), quiet_gensim():
        from gensim.models.fasttext import load_facebook_vectors

        found = load_facebook_vectors(str(path.resolve()))
    values = _finite(path, found.vectors)
    has = found.bucket > 0 and found.max_n > 0
    subwords = _finite(path, found.vectors_ngrams) if has else np.zeros((0, values.shape[1]), np.float32)
    return SubwordVectors(list(found.index_to_key), values, subwords, int(found.min_n), int(found.max_n))


def pieces(word: str, shortest: int, longest: int, buckets: int) -> list[int]:
    """The buckets that the pieces of a word fall into, by fastText's hash.

    Raises:
        SettingsError: gensim is not installed.
    """
    need_gensim("the vector of a piece of a word")
    from gensim.models.fasttext import ft_ngram_hashes

    return [int(bucket) for bucket in ft_ngram_hashes(word, shortest, longest, buckets)]


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        with warnings.catch_warnings(action="ignore"):  # numpy's, of counts that make no sense
            yield
    except struct.error as error:
        raise DataError(f"{path} cannot be read as {_CALLED}: it is cut short") from error
    except Exception as error:  # as many kinds as there are files that may be damaged
        reason = getattr(error, "strerror", None) or (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} cannot be read as {_CALLED}: {reason}") from error


def _finite(path: Path, vectors: Any) -> NDArray[np.float32]:
    values = np.ascontiguousarray(vectors, np.float32)
    if not np.isfinite(values).all():
        raise DataError(f"{path}: some of its numbers are not finite: it is damaged")
    return values
