"""Files that appear whole or not at all."""

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

_STALE = 24 * 60 * 60
"""Seconds after which no one works on a temporary folder any more."""
_HERE, _EXCHANGE = -100, 2
"""Linux' AT_FDCWD and RENAME_EXCHANGE, for renameat2."""


def cache_folder(given: str | Path | None = None) -> Path:
    """Where what was read is kept: the folder that is given, else `$SELFSENT_CACHE`, else `~/.cache/selfsent`."""
    return Path(given or os.environ.get("SELFSENT_CACHE") or "~/.cache/selfsent").expanduser()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.selfsent-{uuid.uuid4().hex[:8]}")


_LEFT = re.compile(r"\.(.+)\.selfsent-[0-9a-f]{8}(\.old)?")
"""What `atomic_file` and `atomic_directory` write to, and what a directory that they replace is called meanwhile."""


def is_half_written(path: Path) -> bool:
    """Whether this is what `atomic_file` or `atomic_directory` left behind when it was killed."""
    return _LEFT.fullmatch(path.name) is not None


def sweep_half_written(folder: Path, name: str | None = None, age: float = 0) -> None:
    """Remove what kills left half-written in a folder; a directory that was about to be replaced is put back.

    Args:
        folder: where; it need not exist.
        name: of the file or directory that was being written; all by default.
        age: seconds for which no one must have touched it.
    """
    for leftover in sorted(folder.glob(".*")):
        found = _LEFT.fullmatch(leftover.name)
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
    """Remove a file or a directory, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def new_folder(folder: Path, prefix: str) -> Path:
    """A new directory in `folder` that others may read as the umask says; those of `tempfile` are for its owner alone.

    Temporary ones that kills left there a day ago are removed.
    """
    sweep_stale(folder, f"{prefix}*")
    sweep_half_written(folder, age=_STALE)
    path = folder / f"{prefix}{uuid.uuid4().hex[:12]}"
    path.mkdir()
    return path


def _give_mode(path: Path, mode: int) -> None:
    """Let those read a file whom the umask lets: what writes beside and renames, as safetensors does, hides it."""
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


def sweep_stale(folder: Path, pattern: str) -> None:
    """Remove the temporary folders that kills left in `folder`: those that match and that no one touched for a day."""
    for leftover in folder.glob(pattern):
        try:
            stale = time.time() - leftover.stat().st_mtime > _STALE
        except FileNotFoundError:  # another process was first
            continue
        if stale:
            shutil.rmtree(leftover, ignore_errors=True)


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """What the system says of `path` becomes an `OutputError`."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        why = getattr(error, "strerror", None) or error
        raise OutputError(f"{path} cannot be written: {why}") from error


def check_file(path: Path) -> None:
    """Refuse a name that no file may have, since another thing is there: a directory, a device, a pipe.

    Raises:
        OutputError: it is one.
    """
    if path.is_dir():
        raise OutputError(f"{path} is a directory: name a file")
    if path.exists() and not path.is_file():  # it would be replaced, which root may do even to /dev/null
        raise OutputError(f"{path} is not an ordinary file: name another, or - if the command writes there")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; the file takes its place, safely on disk, when the block ends without an error.

    Raises:
        OutputError: it cannot be written.
    """
    check_file(path)
    path = path.resolve() if path.is_symlink() else path  # the file that a link means, and not the link
    temporary = _beside(path)
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep_half_written(path.parent, path.name, _STALE)
        temporary.touch()
        mode = stat.S_IMODE(temporary.stat().st_mode)
        try:
            yield temporary
            _give_mode(temporary, mode)
            _sync(temporary)
            temporary.replace(path)
            _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """A new directory beside `path` to fill; it takes the place of `path` when the block ends without an error.

    Raises:
        OutputError: it cannot be written.
    """
    path = path.absolute()  # `.` has no name to put another beside
    temporary = _beside(path)
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep_half_written(path.parent, path.name, _STALE)
        temporary.mkdir()
        mode = stat.S_IMODE(temporary.stat().st_mode)
        try:
            yield temporary
            for each in (*temporary.rglob("*"), temporary):
                if each.is_file():
                    _give_mode(each, mode & 0o666)
                _sync(each)
            _replace(temporary, path)
            _sync(path.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _replace(new: Path, path: Path) -> None:
    """Give a directory another's place; on Linux at once, so that the place is never empty."""
    if not path.exists():
        try:
            new.rename(path)
            return
        except OSError:
            if not path.exists():  # otherwise another process was first
                raise
    if _exchange(new, path):
        remove(new)
        return
    beside = _beside(path)
    old = beside.with_name(f"{beside.name}.old")  # which `sweep_half_written` puts back, if this is killed here
    path.rename(old)
    new.rename(path)
    remove(old)


def _exchange(one: Path, other: Path) -> bool:
    """Let two names change places in one step; False where the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return int(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)) == 0


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all; of names that are not UTF-8 escapes are left."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one where there is no such file, or something else in it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
