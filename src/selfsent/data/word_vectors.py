"""Word vectors from a file: text as GloVe and word2vec write it, and word2vec's binary form.

gensim's own reader would hold all of a file in memory, and stops at the words with spaces in GloVe's largest file.
"""

from __future__ import annotations

import gzip
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from selfsent.display import counted
from selfsent.errors import DataError, first_line

TOGETHER = 1024
"""Words read at a time."""
LONGEST = 1 << 20
"""Bytes of a line, or of a word; a word with a thousand numbers has some ten thousand."""
_WANTED = (
    "a word and its numbers on each line, as GloVe and word2vec write them; word2vec's binary form is read, too, and"
    " gensim's save_word2vec_format and fastText's .vec have one of them"
)
_HEADING = re.compile(rb"(\d{1,12})\s+(\d{1,6})\s*")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LIKE_A_NUMBER = re.compile(rb".*\s[+-]?(\.?\d|nan\b|inf)\S*", re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")

Blocks = Iterator[tuple[list[str], NDArray[np.float32]]]


def word_blocks(path: Path) -> Blocks:
    """Words and their vectors, (words, d), some at a time.

    Args:
        path: text or word2vec's binary form, plain or gzip; the content says which.

    Raises:
        DataError: the file cannot be read, or is damaged: a line that is no word with as many numbers as the others
            have, or another number of words than the first line says.
    """
    with _read_errors(path), _opened(path) as file:
        heading, start = file.readline(LONGEST), file.readline(LONGEST)
        file.seek(0)
        text = _numbers(start) or not _CONTROL.search(start.decode("utf-8", "replace"))
        binary = _HEADING.fullmatch(heading) and not text
        yield from (_word2vec_blocks if binary else _text_blocks)(path, file)


def _text_blocks(path: Path, file: IO[bytes]) -> Blocks:
    heading = _HEADING.fullmatch(file.readline(LONGEST))
    if not heading:
        file.seek(0)
    size, seen = int(heading[2]) if heading else 0, 0
    lines = _lines(path, file, 2 if heading else 1)
    while block := list(islice(lines, TOGETHER)):
        # Some words are numbers, and some have spaces in them: most of the first lines are neither.
        size = size or Counter(_numbers(line) for _, line in block[:100]).most_common(1)[0][0]
        seen += len(block)
        yield _parsed(path, block, size)
    if heading and seen != int(heading[1]):
        found = f"{counted(seen, 'word')}, and {int(heading[1]):,} by its first line"
        raise DataError(f"{path} holds {found}: it is damaged or cut")
    if not seen:
        raise DataError(f"{path} holds no vectors; expected {_WANTED}")


def _lines(path: Path, file: IO[bytes], number: int) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that are not empty."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise DataError(f"{path}, line {number} is longer than {LONGEST:,} bytes; expected {_WANTED}")
        if line.strip():
            yield number, line.rstrip()
        number += 1


def _numbers(line: bytes) -> int:
    """Count of the numbers at the end of a line; the first item is always a word."""
    parts = line.split()[1:]
    return next((count for count, part in enumerate(reversed(parts)) if not _NUMBER.fullmatch(part)), len(parts))


def _parsed(path: Path, lines: list[tuple[int, bytes]], size: int) -> tuple[list[str], NDArray[np.float32]]:
    # From the right: some words of GloVe's largest file have spaces in them.
    parts = [line.rsplit(None, size) for _, line in lines]
    with warnings.catch_warnings(action="error"):
        try:
            values = np.fromstring(b" ".join(b" ".join(part[1:]) for part in parts), np.float32, sep=" ")
        except (ValueError, DeprecationWarning):
            values = np.zeros(0, np.float32)
    right = size > 1 and len(values) == size * len(lines) and np.isfinite(values).all()
    if right and all(len(part) == size + 1 and not _LIKE_A_NUMBER.fullmatch(part[0]) for part in parts):
        return [part[0].decode("utf-8", "replace") for part in parts], values.reshape(len(lines), size)
    if len(lines) > 1:
        for line in lines:  # to name the wrong one
            _parsed(path, [line], size)
    wanted = f"a word and {size} numbers, found {_numbers(lines[0][1])}" if size > 1 else _WANTED
    raise DataError(f"{path}, line {lines[0][0]}: expected {wanted}")


def _word2vec_blocks(path: Path, file: IO[bytes]) -> Blocks:
    """word2vec's binary form: `count size`, then each word, a space and its float32 numbers."""
    count, size = map(int, file.readline(LONGEST).split())
    rest, start, words, rows = b"", 0, list[str](), list[NDArray[np.float32]]()
    for number in range(count):
        while (end := rest.find(b" ", start)) < 0 or len(rest) <= end + 4 * size:
            part = file.read(LONGEST)
            if not part or (end < 0 and len(rest) - start > LONGEST):
                claim = f"{count:,} words of {size} numbers by its first line"
                raise DataError(f"{path} is no word2vec file, or is cut short: {claim}, and {number:,} can be read")
            rest, start = rest[start:] + part, 0
        words.append(rest[start:end].lstrip(b"\n").decode("utf-8", "replace"))
        rows.append(np.frombuffer(rest, "<f4", size, end + 1))
        start = end + 1 + 4 * size
        if len(words) == TOGETHER or number == count - 1:
            vectors = np.stack(rows)
            if not np.isfinite(vectors).all():
                raise DataError(f"{path}: some of its numbers are not finite: it is damaged")
            yield words, vectors
            words, rows = [], []
    if not count or rest[start:].strip() or file.read(LONGEST).strip():
        raise DataError(f"{path} holds more than the {count:,} words of {size} numbers that its first line says")


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb")


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading a damaged file into one line."""
    try:
        yield
    except (OSError, EOFError, zlib.error, ValueError, MemoryError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or first_line(error)}") from error
