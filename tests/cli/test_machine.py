"""What a machine may lack: one line says it, and what to do."""

import errno
import os
import warnings

import pytest

from selfsent.errors import Damaged


@pytest.fixture
def failing(selfsent, monkeypatch):
    def run(error):
        def fail(options):
            raise error

        monkeypatch.setattr("selfsent.cli.methods.Methods.run", fail)
        return selfsent("methods")

    return run


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "No space left on device: make room"),
        (errno.EFBIG, "File too large: raise the limit of file sizes"),
        (errno.EMFILE, "Too many open files: raise the limit of open files"),
        (errno.EROFS, "Read-only file system: name another path"),
        (errno.ENOENT, "No such file or directory: was it removed meanwhile?"),
    ],
)
def test_what_the_system_says_is_one_line(failing, number, advice):
    assert failing(OSError(number, os.strerror(number), "/a/file")).complaint.startswith(f"selfsent: /a/file: {advice}")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
    ],
)
def test_too_little_memory_is_one_line(failing, error):
    assert failing(error).complaint.startswith("selfsent: there is not enough memory: ")


@pytest.mark.parametrize("error", [RuntimeError("a bug"), OSError("a bug"), ValueError("out of memory")])
def test_bugs_stay_bugs(failing, error):
    with pytest.raises(type(error)):
        failing(error)


def test_damage_is_told_in_one_line(selfsent, monkeypatch):
    def warn(options):
        warnings.warn("a\x1btable is damaged", Damaged, stacklevel=2)

    monkeypatch.setattr("selfsent.cli.methods.Methods.run", warn)
    done = selfsent("methods")
    assert done.err == "a\\x1btable is damaged\n"
