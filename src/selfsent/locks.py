"""Files, parts of files and directories that one process at a time holds; a kill lets go of them."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from selfsent.errors import OutputError
from selfsent.files import output_errors


@contextmanager
def lock_file(path: Path, taken: str) -> Iterator[None]:
    """Hold the lock file `path`, which no other process has until the block, or this process, ends.

    Raises:
        OutputError: another process holds it, in the words of `taken`, or it cannot be written.
    """
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    with file:
        if sys.platform != "win32":  # which has no such locks: there, nobody is held back
            import fcntl

            with output_errors(path):
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise OutputError(taken) from None
        yield


_HELD: WeakValueDictionary[Path, DirectoryLock] = WeakValueDictionary()


class DirectoryLock:
    """A directory that no other process holds as long as this object, or this process, lives.

    Args:
        path: the directory.
        taken: what is said where another process holds it.

    Raises:
        OutputError: another process holds it.
    """

    def __init__(self, path: Path, taken: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY) if sys.platform != "win32" else -1  # where nobody is held back
        weakref.finalize(self, _close, self._descriptor)
        if self._descriptor >= 0:
            import fcntl

            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OutputError(taken) from None
            except OSError:  # file systems of some networks have no such locks
                pass


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def lock_directory(path: Path, taken: str) -> DirectoryLock:
    """Hold a directory; what holds it in this process already is shared."""
    with output_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        place = path.resolve()
        held = _HELD.get(place) or DirectoryLock(place, taken)
    _HELD[place] = held
    return held


@contextmanager
def lock_range(path: Path, start: int, end: int, patient: bool) -> Iterator[bool]:
    """Whether this process alone holds the bytes from `start` to `end` of a lock file, until the block, or it, ends.

    Args:
        path: the lock file. Nothing else may open it: a process loses its locks of a file when it closes it once.
        start: the first byte.
        end: behind the last one.
        patient: wait while another process holds one of them.

    Raises:
        OutputError: it cannot be written.
    """
    with output_errors(path):
        file = path.open("ab")
    with file:
        mine = True
        if sys.platform != "win32":  # which has no such locks: there, nobody is held back
            import fcntl

            with output_errors(path):
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB), end - start, start)
                except (BlockingIOError, PermissionError):
                    mine = False
        yield mine
