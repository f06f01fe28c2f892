"""Locks of files, byte ranges and directories between processes; released on exit. Windows has none of them."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from selfsent.errors import OutputError
from selfsent.files import output_errors


@contextmanager
def lock_range(path: Path, start: int, end: int, patient: bool) -> Iterator[bool]:
    """Whether this process alone holds the bytes from `start` to `end` of a lock file, until the block ends.

    Args:
        path: the lock file. Nothing else may open it: a process loses its locks of a file when it closes it once.
        start: the first byte.
        end: the byte after the last one.
        patient: wait while another process holds one of them.

    Raises:
        OutputError: it cannot be written.
    """
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    with file:
        free = True
        if sys.platform != "win32":
            import fcntl

            with output_errors(path):
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB), end - start, start)
                except (BlockingIOError, PermissionError):
                    free = False
        yield free


class PathLock:
    """Holds a file or directory until it is released, or no longer referenced.

    Args:
        path: the file or directory.
        message: of the error if it is held already.

    Raises:
        OutputError: it is held already.
    """

    def __init__(self, path: Path, message: str) -> None:
        self.release: Callable[[], object] = lambda: None
        if sys.platform == "win32":
            return
        import fcntl

        descriptor = os.open(path, os.O_RDONLY)
        self.release = weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(message) from None
        except OSError:  # some network file systems have no such locks
            pass


_LOCKS: WeakValueDictionary[Path, PathLock] = WeakValueDictionary()


def lock_directory(path: Path, message: str) -> PathLock:
    """Hold a directory, made if need be; a lock that this process has already is shared."""
    with output_errors(path):
        path.mkdir(parents=True, exist_ok=True)
        lock = _LOCKS.get(path.resolve()) or PathLock(path.resolve(), message)
    _LOCKS[path.resolve()] = lock
    return lock
