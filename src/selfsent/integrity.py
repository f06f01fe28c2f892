"""Whether files are as they were written: disks and copies lose bytes without a word."""

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

SEAL = "selfsent_checksum"
"""The entry among the metadata of a safetensors file that holds the checksum of all the rest of it."""
_TOKENIZER = "tokenizer.json"
"""What lies beside weights and means nothing without them, nor they without it: its checksum stands in theirs."""
_TOGETHER = 1 << 20
_LONGEST_HEADER = 100_000_000
"""Bytes, as safetensors has it."""
_WHOLE: set[tuple[str, int, int, int]] = set()
"""Files that were found whole in this process: path, size, time of change, checksum or the tokenizer's time."""


def checksum(path: Path) -> int:
    """The CRC-32 of a file."""
    with path.open("rb") as file:
        return _rest(file)


def _rest(file: IO[bytes], start: int = 0) -> int:
    while part := file.read(_TOGETHER):
        start = zlib.crc32(part, start)
    return start


def checksums(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """The checksums of files of a folder, by their names; those that are not there are left out."""
    return {name: checksum(folder / name) for name in names if (folder / name).is_file()}


def damaged(folder: Path, sums: Mapping[str, int]) -> str | None:
    """The first file of a folder that is not as its checksum says; None where all are. Each is read once a process."""
    for name, expected in sums.items():
        path = folder / name
        try:
            about = path.stat()
            known = str(path), about.st_size, about.st_mtime_ns, expected
            if known not in _WHOLE and checksum(path) != expected:
                return name
        except OSError:
            return name
        _WHOLE.add(known)
    return None


def signed(about: Mapping[str, Any]) -> dict[str, Any]:
    """What a JSON file is to hold, with a checksum of it."""
    return {**about, "checksum": _signature(about)}


def is_signed(about: Mapping[str, Any]) -> bool:
    """Whether what `signed` gave is unchanged; older versions gave no checksum, and that passes."""
    return "checksum" not in about or about["checksum"] == _signature(about)


def _signature(about: Mapping[str, Any]) -> int:
    told = {name: value for name, value in about.items() if name != "checksum"}
    return zlib.crc32(json.dumps(told, sort_keys=True).encode())


def warn_damaged(what: object) -> None:
    """Say that something which is kept was damaged, and is made again."""
    warnings.warn(f"{what} is damaged, and is made again", Damaged, stacklevel=2)


def seal(folder: Path) -> None:
    """Put a checksum into each safetensors file of a folder, and one of the tokenizer beside it.

    Whoever writes the file anew leaves them out.
    """
    for path in sorted(folder.rglob("*.safetensors")):
        beside = path.with_name(f"{path.name}.sealed")
        with path.open("rb") as file, beside.open("wb") as sealed:
            header = _header(file)
            about = header.get("__metadata__", {})
            about.pop(SEAL, None)
            if (beside_it := path.with_name(_TOKENIZER)).is_file():
                about[_TOKENIZER] = f"{checksum(beside_it):08x}"
                header["__metadata__"] = about
            start = file.tell()
            about[SEAL] = f"{_rest(file, _digest(header)):08x}"
            text = json.dumps({**header, "__metadata__": about}, separators=(",", ":")).encode()
            text += b" " * (-len(text) % 8)  # tensors begin at a multiple of eight
            sealed.write(struct.pack("<Q", len(text)) + text)
            file.seek(start)
            shutil.copyfileobj(file, sealed, _TOGETHER)
        beside.replace(path)


def broken_seal(folder: Path) -> Path | None:
    """The first safetensors file of a folder that is not as `seal` left it; those without checksum pass."""
    for path in sorted(folder.rglob("*.safetensors")):
        try:
            about, beside = path.stat(), path.with_name(_TOKENIZER)
            known = str(path), about.st_size, about.st_mtime_ns, beside.stat().st_mtime_ns if beside.is_file() else -1
            if known in _WHOLE:
                continue
            with path.open("rb") as file:
                header = _header(file)
                expected = header.get("__metadata__", {}).pop(SEAL, None)
                if expected is not None and f"{_rest(file, _digest(header)):08x}" != expected:
                    return path
            tokenizer = header.get("__metadata__", {}).get(_TOKENIZER) if expected is not None else None
            if tokenizer is not None and not (beside.is_file() and f"{checksum(beside):08x}" == tokenizer):
                return beside
        except (OSError, ValueError, AttributeError, RecursionError, struct.error):
            return path
        _WHOLE.add(known)
    return None


def _header(file: IO[bytes]) -> dict[str, Any]:
    (size,) = struct.unpack("<Q", file.read(8))
    if size > _LONGEST_HEADER:
        raise ValueError("no safetensors file")
    header = json.loads(file.read(size))
    if not isinstance(header, dict):
        raise ValueError("no safetensors file")
    return header


def _digest(header: dict[str, Any]) -> int:
    """A checksum of what the header says, however it is written, an empty `__metadata__` like none."""
    told = {name: value for name, value in header.items() if value}
    return zlib.crc32(json.dumps(told, sort_keys=True).encode())
