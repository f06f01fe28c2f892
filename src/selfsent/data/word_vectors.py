"""Word vectors from a file the user has: GloVe's text or word2vec's, plain or gzip."""

from __future__ import annotations

import gzip
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError

TOGETHER = 1024
"""Lines read at a time."""
LONGEST = 1 << 20
"""Bytes of a line; a word with a thousand numbers has some ten thousand."""
_WANTED = "a word and its numbers on each line, as GloVe and word2vec write them as text"


def word_blocks(path: Path) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
    """Words and their vectors, (words, d), some at a time.

    Args:
        path: the file; fastText's `.vec` is written like word2vec's.

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
    except (OSError, EOFError, zlib.error) as error:
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


def _parsed(path: Path, lines: Sequence[tuple[int, bytes]], size: int) -> tuple[list[str], NDArray[np.float32]]:
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
