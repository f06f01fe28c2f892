"""Word vectors from a file: text as GloVe and word2vec write it.

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
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from selfsent.display import counted
from selfsent.errors import DataError, first_line

LONGEST = 1 << 20
"""Bytes of a line, or of a word; a word with a thousand numbers has some ten thousand."""
_WANTED = (
    "a word and its numbers on each line, as in GloVe's files, fastText's .vec and what gensim's save_word2vec_format"
    " writes with binary=False"
)
_HEADING = re.compile(rb"(\d{1,12})\s+(\d{1,6})\s*")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LIKE_A_NUMBER = re.compile(rb".*\s[+-]?(\.?\d|nan\b|inf)\S*", re.IGNORECASE | re.DOTALL)

Blocks = Iterator[tuple[list[str], NDArray[np.float32]]]


def word_blocks(path: Path, together: int = 1024) -> Blocks:
    """Words and their vectors, (words, d), some at a time.

    Args:
        path: text, plain or gzip; the content says which.
        together: words read at a time.

    Raises:
        DataError: the file cannot be read, or is damaged: a line that is no word with as many numbers as the others
            have, or another number of words than the first line says.
    """
    with _opened(path) as file:
        heading = _HEADING.fullmatch(file.readline(LONGEST))
        if not heading:
            file.seek(0)
        size, seen = int(heading[2]) if heading else 0, 0
        lines = _lines(path, file, 2 if heading else 1)
        while block := list(islice(lines, together)):
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
    for at, line in enumerate(iter(partial(file.readline, LONGEST), b""), number):
        if len(line) == LONGEST:
            raise DataError(f"{path}, line {at} is longer than {LONGEST:,} bytes; expected {_WANTED}")
        if line.strip():
            yield at, line.rstrip()


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
    of_text = size > 1 and b"\0" not in lines[0][1]
    wanted = f"a word and {size} numbers, found {_numbers(lines[0][1])}" if of_text else _WANTED
    raise DataError(f"{path}, line {lines[0][0]}: expected {wanted}")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """A file, unpacked if need be; errors of reading it are told in one line."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with cast(IO[bytes], gzip.open(path)) if packed else path.open("rb") as unpacked:
            yield unpacked
    except (OSError, EOFError, zlib.error, ValueError, MemoryError) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or first_line(error)}") from error
