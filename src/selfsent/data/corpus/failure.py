"""A fault in a corpus, with its place."""

from __future__ import annotations

from typing import NoReturn

from selfsent.errors import CorpusError


def fail(name: str, problem: str, line: int | None = None, row: int | None = None) -> NoReturn:
    """Raise the one-line `CorpusError` for a fault at a line or row of a file."""
    where = name if name.isprintable() else repr(name)
    where += f", line {line}" if line is not None else f", row {row}" if row is not None else ""
    raise CorpusError(" ".join(f"{where}: {problem}".split()))
