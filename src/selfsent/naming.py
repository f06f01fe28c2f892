"""Names that are given from Python: one or several, and of what lies in a directory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any


def names(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Several names: a list of them as it is, or one string with commas between them.

    Example:
        >>> names("a, b"), names(["a", "b"]), names(None)
        (('a', 'b'), ('a', 'b'), ())
    """
    return tuple(map(str.strip, given.split(",")) if isinstance(given, str) else given or ())


def name_of(model: Any) -> Any:
    """The directory of a run or a path as a string; anything else as it is."""
    return os.fspath(model) if isinstance(model, os.PathLike) else model
