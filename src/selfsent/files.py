"""Files that appear complete or not at all."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from selfsent.errors import OutputError

STALE = 24 * 60 * 60
"""Seconds after which a temporary file counts as abandoned."""
_HERE, _EXCHANGE = -100, 2
"""Linux' AT_FDCWD and RENAME_EXCHANGE, for renameat2."""
_LEFTOVER = re.compile(r"\.(.+)\.selfsent-[0-9a-f]{8}(\.old)?")
"""Names of temporary files, and of a directory while it is replaced."""


def cache_folder(given: str | Path | None = None) -> Path:
    """The cache folder: `given`, else `$SELFSENT_CACHE`, else `~/.cache/selfsent`."""
    return Path(given or os.environ.get("SELFSENT_CACHE") or "~/.cache/selfsent").expanduser()


def _temporary_for(path: Path) -> Path:
    return path.with_name(f".{path.name}.selfsent-{uuid.uuid4().hex[:8]}")


def is_half_written(path: Path) -> bool:
    """Whether a path is a leftover of `atomic_file` or `atomic_directory` in a killed process."""
    return _LEFTOVER.fullmatch(path.name) is not None


def sweep_half_written(folder: Path, name: str | None = None, age: float = 0) -> None:
    """Remove leftovers of killed processes in a folder; a directory that was being replaced is restored.

    Args:
        folder: it need not exist.
        name: of the file or directory that was being written; all by default.
        age: seconds since the last change.
    """
    for leftover in sorted(folder.glob(".*")):
        found = _LEFTOVER.fullmatch(leftover.name)
        if not found or name not in (None, found[1]):
            continue
        try:
            if found[2] and not (folder / found[1]).exists():
                leftover.rename(folder / found[1])
            elif time.time() - leftover.stat().st_mtime >= age:
                remove(leftover)
        except FileNotFoundError:  # another process was first
            continue


def remove(path: Path) -> None:
    """Remove a file or a directory, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def new_folder(folder: Path) -> Path:
    """A temporary directory in `folder`, with the umask's permissions; directories left there a day ago are removed."""
    sweep_half_written(folder, age=STALE)
    path = _temporary_for(folder / "new")
    path.mkdir()
    return path


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn system errors while writing `path` into an `OutputError`."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise OutputError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from error


def check_file(path: Path) -> None:
    """Reject a path that is no ordinary file: a directory, a device, a pipe.

    Raises:
        OutputError: the path is one of these.
    """
    if path.is_dir():
        raise OutputError(f"{path} is a directory: name a file")
    if path.exists() and not path.is_file():  # it would be replaced, which root may do even to /dev/null
        raise OutputError(f"{path} is not an ordinary file: name another, or - if the command writes there")


def check_new_file(path: Path, overwrite: bool) -> None:
    """Reject a path that is no ordinary file, or a file that is there already.

    Raises:
        OutputError: the path is one of these.
    """
    check_file(path)
    if path.exists() and not overwrite:
        raise OutputError(f"{path} exists already: give `overwrite`, or another `output`")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary name to write to; the file replaces `path`, synced to disk, if the block succeeds.

    Raises:
        OutputError: it cannot be written.
    """
    check_file(path)
    with _atomic(path.resolve() if path.is_symlink() else path, directory=False) as temporary:
        yield temporary


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """A temporary directory to fill; it replaces `path`, synced to disk, if the block succeeds.

    Raises:
        OutputError: it cannot be written.
    """
    with _atomic(path.absolute(), directory=True) as temporary:  # `.` has no name to make another of
        yield temporary


@contextmanager
def _atomic(path: Path, directory: bool) -> Iterator[Path]:
    temporary = _temporary_for(path)
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep_half_written(path.parent, path.name, STALE)
        temporary.mkdir() if directory else temporary.touch()
        mode = stat.S_IMODE(temporary.stat().st_mode) & 0o666
        try:
            yield temporary
            for each in (*temporary.rglob("*"), temporary):
                # Some libraries, such as safetensors, write with narrower permissions than the umask's.
                if each.is_file() and stat.S_IMODE(each.stat().st_mode) != mode:
                    each.chmod(mode)
                _sync(each)
            _replace(temporary, path)
            _sync(path.parent)
        finally:
            remove(temporary)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(new: Path, path: Path) -> None:
    """Move a file or directory to `path`; on Linux in one step, so that `path` is never missing."""
    if not new.is_dir() or not path.exists():
        try:
            new.replace(path)
            return
        except OSError:
            if not (new.is_dir() and path.exists()):  # otherwise another process was first
                raise
    if not exchange(new, path):
        temporary = _temporary_for(path)
        old = temporary.with_name(f"{temporary.name}.old")  # `sweep_half_written` restores it after a crash
        path.rename(old)
        new.rename(path)
        new = old
    remove(new)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False if the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return int(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)) == 0


def write_text(path: Path, text: str) -> None:
    """Write a text file, complete or not at all; lone surrogates are escaped."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, complete or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one if there is no such file, or something else in it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
