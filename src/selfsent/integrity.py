"""Checksums of files: disks and copies lose bytes silently."""

from __future__ import annotations

import json
import shutil
import struct
import warnings
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from selfsent.errors import Damaged

CHECKSUM = "selfsent_checksum"
"""Metadata entry of a safetensors file for the checksum of the rest of the file."""
_TOKENIZER = "tokenizer.json"
"""Name of the tokenizer's file, whose checksum is in the metadata of the weights that belong to it."""
_CHUNK = 1 << 20
_LONGEST_HEADER = 100_000_000
"""Maximum header size in bytes, as in safetensors."""
_INTACT: set[tuple[str, int, int, int]] = set()
"""Files found intact by this process: path, size, time of change, checksum or the tokenizer's time."""


def checksum(path: Path) -> int:
    """The CRC-32 of a file."""
    with path.open("rb") as file:
        return _rest(file)


def _rest(file: IO[bytes], start: int = 0) -> int:
    while part := file.read(_CHUNK):
        start = zlib.crc32(part, start)
    return start


def checksums(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """The checksums of files of a folder, by name, without missing ones."""
    return {name: checksum(folder / name) for name in names if (folder / name).is_file()}


def damaged(folder: Path, sums: Mapping[str, int]) -> str | None:
    """The first file of a folder that differs from its checksum; None if none does. Each is read once a process."""
    for name, expected in sums.items():
        path = folder / name
        try:
            about = path.stat()
            known = str(path), about.st_size, about.st_mtime_ns, expected
            if known not in _INTACT and checksum(path) != expected:
                return name
        except OSError:
            return name
        _INTACT.add(known)
    return None


def signed(about: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with a checksum of itself; an older one is replaced."""
    rest = {name: value for name, value in about.items() if name != "checksum"}
    return {**rest, "checksum": _digest(rest)}


def is_signed(about: Mapping[str, Any]) -> bool:
    """Whether an object from `signed` is unchanged; one of an older version, without checksum, passes."""
    return "checksum" not in about or about["checksum"] == signed(about)["checksum"]


def _digest(about: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(about, sort_keys=True).encode())


def warn_damaged(what: object) -> None:
    """Warn that something in a cache is damaged and will be rebuilt."""
    warnings.warn(f"{what} is damaged, and is made again", Damaged, stacklevel=2)


def embed_checksum(folder: Path) -> None:
    """Embed a checksum of itself and of its tokenizer in each safetensors file of a folder.

    A program that rewrites the file drops them.
    """
    for path in sorted(folder.rglob("*.safetensors")):
        temporary, tokenizer = path.with_name(f"{path.name}.checked"), path.with_name(_TOKENIZER)
        with path.open("rb") as file, temporary.open("wb") as output:
            header = _header(file)
            about = header.setdefault("__metadata__", {})
            about.pop(CHECKSUM, None)
            if tokenizer.is_file():
                about[_TOKENIZER] = f"{checksum(tokenizer):08x}"
            start = file.tell()
            about[CHECKSUM] = _checksum_of(header, file)
            text = json.dumps(header, separators=(",", ":")).encode()
            text += b" " * (-len(text) % 8)  # tensors begin at a multiple of eight
            output.write(struct.pack("<Q", len(text)) + text)
            file.seek(start)
            shutil.copyfileobj(file, output, _CHUNK)
        temporary.replace(path)


def find_damaged(folder: Path) -> Path | None:
    """The first safetensors file of a folder, or its tokenizer, that differs from its embedded checksum; None if none.

    Files without a checksum pass.
    """
    for path in sorted(folder.rglob("*.safetensors")):
        tokenizer = path.with_name(_TOKENIZER)
        try:
            about, changed = path.stat(), tokenizer.stat().st_mtime_ns if tokenizer.is_file() else -1
            known = str(path), about.st_size, about.st_mtime_ns, changed
            if known in _INTACT:
                continue
            with path.open("rb") as file:
                header = _header(file)
                metadata = header.get("__metadata__", {})
                expected = metadata.pop(CHECKSUM, None)
                if expected is not None and _checksum_of(header, file) != expected:
                    return path
            paired = metadata.get(_TOKENIZER) if expected is not None else None
            if paired is not None and (changed < 0 or f"{checksum(tokenizer):08x}" != paired):
                return tokenizer
        except (OSError, ValueError, AttributeError, RecursionError, struct.error):
            return path
        _INTACT.add(known)
    return None


def _header(file: IO[bytes]) -> dict[str, Any]:
    (size,) = struct.unpack("<Q", file.read(8))
    header = json.loads(file.read(size)) if size <= _LONGEST_HEADER else None
    if not isinstance(header, dict):
        raise ValueError("no safetensors file")
    return header


def _checksum_of(header: dict[str, Any], file: IO[bytes]) -> str:
    """A checksum of the tensors and of the header, independent of its formatting and of empty metadata."""
    return f"{_rest(file, _digest({name: value for name, value in header.items() if value})):08x}"
