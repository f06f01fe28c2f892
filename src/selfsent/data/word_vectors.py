"""Word vectors from a file the user has: text as GloVe and word2vec write it, word2vec's binary form, fastText's."""

from __future__ import annotations

import gzip
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Literal, cast

import numpy as np
from numpy.typing import NDArray

from selfsent.data.binary_vectors import FASTTEXT, check_fasttext, read_fasttext, word2vec_blocks
from selfsent.display import counted
from selfsent.errors import DataError

TOGETHER = 1024
"""Lines read at a time."""
LONGEST = 1 << 20
"""Bytes of a line; a word with a thousand numbers has some ten thousand."""
_LOOKED_AT = 100
"""Lines that say how many numbers a word has."""
_SHOWN = 30
"""Bytes that are shown of what is wrong."""
_WANTED = "a word and its numbers on each line, as GloVe and word2vec write them as text"
_HEADING = re.compile(rb"(\d{1,12})\s+(\d{1,6})\s*")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LIKE_A_NUMBER = re.compile(rb"[+-]?(\.?\d|nan\b|inf)", re.IGNORECASE)
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")

Form = Literal["text", "word2vec", "fasttext"]
Blocks = Iterator[tuple[list[str], NDArray[np.float32]]]


def word_blocks(path: Path) -> Blocks:
    """Words and their vectors, (words, d), some at a time.

    Args:
        path: the file: text, plain or gzip (fastText's `.vec` is written like word2vec's), word2vec's binary form,
            likewise, or fastText's `.bin`. What it is, its content says.

    Raises:
        DataError: the file cannot be read, or is not what it says: a line that is no word with as many numbers as the
            others have, or another number of words than the first line says.
        SettingsError: it is fastText's, and gensim is not installed.
    """
    form = form_of(path)
    with _saying(path):
        if form == "text":
            yield from _text_blocks(path)
        elif form == "fasttext":
            vectors = read_fasttext(path)
            yield vectors.words, vectors.values
        else:
            with _opened(path) as file:
                yield from word2vec_blocks(path, file)


def check_words(path: Path) -> None:
    """Find out quickly whether a file can be read, by its beginning and its size.

    Raises:
        DataError: it cannot, or its first lines are no word vectors.
        SettingsError: it is fastText's, and gensim is not installed.
    """
    if form_of(path) == "fasttext":
        check_fasttext(path)
    else:
        next(word_blocks(path))


def form_of(path: Path) -> Form:
    """What a file of word vectors is, by its first bytes.

    Raises:
        DataError: it cannot be read, or is a pickle.
    """
    with _saying(path), _opened(path) as file:
        heading = file.readline(LONGEST)
        if heading.startswith(FASTTEXT):
            return "fasttext"
        if _PICKLE.match(heading):
            raise DataError(
                f"{path} is a pickle, as gensim saves .kv and .model, and may run code, so it is not opened: save it in"
                " word2vec's form, by save_word2vec_format('vectors.bin', binary=True) of its KeyedVectors (.wv of a"
                " model)"
            )
        if not _HEADING.fullmatch(heading):
            return "text"
        start = file.readline(LONGEST)
    last = start.split()[-1:]
    return "text" if not start or (last and _NUMBER.fullmatch(last[0])) or _is_text(start) else "word2vec"


@contextmanager
def _saying(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return not _CONTROL.search(line)


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb")


def _text_blocks(path: Path) -> Blocks:
    size = seen = 0
    with _opened(path) as file:
        heading = _HEADING.fullmatch(file.readline(LONGEST))
        file.seek(0)
        numbered = _lines(path, file)
        while lines := list(islice(numbered, TOGETHER)):
            size = size or _size(path, lines, int(heading[2]) if heading else None)
            seen += len(lines)
            yield _parsed(path, lines, size)
    if heading and seen != int(heading[1]):
        raise DataError(
            f"{path} holds {counted(seen, 'word')}, and {int(heading[1]):,} by its first line: it is damaged or cut"
        )
    if not size:
        raise DataError(f"{path} holds no vectors; expected {_WANTED}")


def _lines(path: Path, file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that are not empty, without the heading `count size` of word2vec."""
    number = 0
    while line := file.readline(LONGEST):
        number += 1
        if len(line) == LONGEST:
            raise DataError(f"{path}, line {number} is longer than {LONGEST:,} bytes; expected {_WANTED}")
        if line.strip() and not (number == 1 and _HEADING.fullmatch(line)):
            yield number, line.rstrip()


def _size(path: Path, lines: Sequence[tuple[int, bytes]], told: int | None) -> int:
    """How many numbers most of the first lines have behind their word, which the heading must say, too."""
    first = lines[:_LOOKED_AT]
    sizes = [_numbers(line) for _, line in first]
    size = Counter(sizes).most_common(1)[0][0]
    if size < 2:
        raise DataError(f"{path}, line {first[sizes.index(size)][0]}: expected {_WANTED}")
    if told is not None and told != size:
        raise DataError(f"{path}, line {first[sizes.index(size)][0]}: {size} numbers, and {told} by the first line")
    return size


def _numbers(line: bytes) -> int:
    """How many numbers a line ends with; what it begins with is a word, even if that is a number."""
    parts = line.split()[1:]
    return next((count for count, part in enumerate(reversed(parts)) if not _NUMBER.fullmatch(part)), len(parts))


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
    right = len(values) == size * len(lines) and np.isfinite(values).all() and {*map(len, parts)} == {size + 1}
    if right and not any(_is_cut_wrong(part[0]) for part in parts):
        return [part[0].decode("utf-8", "replace") for part in parts], values.reshape(len(lines), size)
    if len(lines) > 1:
        for line in lines:  # to find the one that is wrong
            _parsed(path, [line], size)
    raise DataError(f"{path}, line {lines[0][0]}: expected a word and {size} numbers{_instead(lines[0][1], size)}")


def _is_cut_wrong(word: bytes) -> bool:
    """Whether a word with spaces ends with what looks like a number: the line has one too many."""
    parts = word.split()
    return len(parts) > 1 and _LIKE_A_NUMBER.match(parts[-1]) is not None


def _instead(line: bytes, size: int) -> str:
    """What stands in a line in place of a word and so many numbers, for the end of an error's line."""
    parts, found = line.rsplit(None, size)[1:], _numbers(line)
    if found > size or len(parts) < size:
        return f", found {found}"
    wrong = next((part for part in parts if not _NUMBER.fullmatch(part)), None)
    return f"; {wrong[:_SHOWN].decode('utf-8', 'replace')!r} is no number" if wrong else ""
