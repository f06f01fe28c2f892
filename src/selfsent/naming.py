"""Normalisation of names given in Python: one or several, and of runs or paths."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any


def names(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Names as a tuple, from a list or a comma-separated string.

    Example:
        >>> names("a, b"), names(["a", "b"]), names(None)
        (('a', 'b'), ('a', 'b'), ())
    """
    return tuple(map(str.strip, given.split(",")) if isinstance(given, str) else given or ())


def name_given(model: str) -> tuple[str | None, str]:
    """The name that `NAME=MODEL` gives a model, if any, and the model; a path that exists is a model as it stands.

    Example:
        >>> name_given("mine=runs/tickets"), name_given("runs/tickets")
        (('mine', 'runs/tickets'), (None, 'runs/tickets'))
    """
    name, sign, rest = model.partition("=")
    return (name, rest) if sign and name and rest and not os.path.exists(model) else (None, model)  # noqa: PTH110


def name_of(model: Any) -> Any:
    """The directory of a run, or a path, as a string; anything else unchanged."""
    return os.fspath(model) if isinstance(model, os.PathLike) else model
