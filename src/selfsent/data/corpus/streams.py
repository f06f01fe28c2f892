"""From a file to lines of text: decompression, UTF-8 and line ends, in bounded memory, faults with line numbers."""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from selfsent.data.corpus.failure import fail
from selfsent.errors import SettingsError

if TYPE_CHECKING:
    from selfsent.data.corpus.remote import RemoteFile

COMPRESSION = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
LONGEST_RECORD = 1 << 24
"""Characters of the longest line, cell or JSON object that is read; a longer one is refused."""
SMALL = 1 << 26
"""Bytes that any compressed file may decompress to."""
LARGEST_RATIO = 200
"""Largest compression ratio accepted; text compresses to a twentieth at best, logs to a hundredth."""
UNPACKED = "SELFSENT_MOST_UNPACKED"
"""Environment variable with another limit on the decompressed bytes of a file."""

_FIRST_CHUNK, _CHUNK, _NUL_CHECKED = 1 << 16, 1 << 20, 1 << 13
_MAGIC = {
    b"PK\x03\x04": "a zip archive or an Office document",
    b"PK\x05\x06": "a zip archive",
    b"\x1f\x8b": "gzip-compressed: its name must end in .gz",
    b"\x28\xb5\x2f\xfd": "zstd-compressed: its name must end in .zst",
    b"PAR1": "a parquet file: its name must end in .parquet",
    b"BZh": "bzip2-compressed: its name must end in .bz2",
    b"%PDF-": "a PDF document",
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "UTF-16 text: convert it to UTF-8"),
}


@contextmanager
def open_file(path: Path | RemoteFile) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressed if its name ends in .gz, .zst or .bz2.

    Raises:
        CorpusError: the file cannot be opened.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        fail(str(path), f"cannot be opened: {error.strerror}")
    with file:
        kind = COMPRESSION.get(path.suffix.lower())
        if kind is None:
            yield file
            return
        import pyarrow as pa

        with pa.PythonFile(file, mode="r") as raw, pa.CompressedInputStream(raw, kind) as stream:
            yield cast(IO[bytes], _Unpacked(stream, file, str(path)))


class _Unpacked:
    """A decompressed stream with a size limit, against decompression bombs.

    Args:
        stream: of pyarrow.
        packed: the compressed file.
        name: of the file, for errors.
    """

    def __init__(self, stream: Any, packed: IO[bytes], name: str) -> None:
        self._stream, self._packed, self._name, self._done = stream, packed, name, 0
        limit = os.environ.get(UNPACKED, "")
        if limit and not limit.isdecimal():
            raise SettingsError(f"{UNPACKED} is {limit!r}; it must be a number of bytes")
        self._limit = int(limit or 0)

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes.

        Raises:
            CorpusError: the limit is exceeded.
        """
        found = bytes(self._stream.read(size))
        self._done += len(found)
        read = self._packed.tell()
        if self._done > (self._limit or max(SMALL, LARGEST_RATIO * read)):
            advice = f"if that is right, set {UNPACKED} to the number of bytes that may come out"
            fail(self._name, f"its first {read:,} bytes unpack to {self._done:,} and more: {advice}")
        return found

    def seekable(self) -> bool:
        """False: it can only be read from the start."""
        return False


def chunks(file: IO[bytes], name: str) -> Iterator[bytes]:
    """The bytes of a stream in chunks; the first is small, so that a bad file fails at once.

    Raises:
        CorpusError: the stream breaks off or cannot be decompressed.
    """
    size = _FIRST_CHUNK
    while True:
        try:
            chunk = file.read(size)
        except OSError as error:
            fail(name, f"cannot be read: {error.strerror or error}; is the file broken or cut short?")
        if not chunk:
            return
        yield chunk
        size = _CHUNK


def line_lists(file: IO[bytes], name: str, longest: int, refuse: bool) -> Iterator[tuple[int, list[str]]]:
    r"""Lines without their ends (\n, \r\n or \r), a list for each chunk read, with the number of the first.

    Args:
        file: bytes of UTF-8 text, with or without a byte order mark.
        name: of the file, for errors.
        longest: characters of the longest line.
        refuse: a longer line is an error; otherwise it is cut to one character more.

    Raises:
        CorpusError: the file is binary, not UTF-8, or holds a line that is too long.
    """
    # Typeshed knows only text for an inner decoder of None; with an inner decoder bytes go in.
    decoder: Any = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    number, tail = 1, ""
    first = True
    for chunk in chain(chunks(file, name), [b""]):
        if first:
            _refuse_binary(chunk, name)
        first = False
        try:
            lines = (tail + decoder.decode(chunk, final=not chunk)).split("\n")
        except UnicodeDecodeError as error:
            line = number + len(re.findall(rb"\r\n?|\n", error.object[: error.start]))
            byte = error.object[error.start]
            fail(name, f"not UTF-8 (byte 0x{byte:02X}): convert it, for example with iconv -f cp1252 -t utf-8", line)
        tail = lines.pop()
        if len(tail) > longest:
            if refuse:
                problem = f"longer than {longest:,} characters: is a line end or a quote missing?"
                fail(name, problem, number + len(lines))
            tail = tail[: longest + 1]
        if lines:
            yield number, lines
            number += len(lines)
    if tail:
        yield number, [tail]


def _refuse_binary(start: bytes, name: str) -> None:
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            fail(name, f"not text but {kind}")
    nul = start[:_NUL_CHECKED].find(b"\0")
    if nul >= 0:
        fail(name, "not text: it holds NUL bytes (a binary file, or UTF-16)", start.count(b"\n", 0, nul) + 1)
