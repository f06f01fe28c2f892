"""Normalisation of names given in Python: one or several, and of runs or paths."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def names(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Names as a tuple, from a list or a comma-separated string.

    Examples:
        >>> names("a, b"), names(["a", "b"]), names(None)
        (('a', 'b'), ('a', 'b'), ())
    """
    return tuple(map(str.strip, given.split(",")) if isinstance(given, str) else given or ())


def name_given(model: str) -> tuple[str | None, str]:
    """The name that `NAME=MODEL` gives a model, if any, and the model; a path that exists is a model as it stands.

    A name has no question mark, after which a model may have fields with values.

    Examples:
        >>> name_given("mine=runs/tickets"), name_given("runs/tickets")
        (('mine', 'runs/tickets'), (None, 'runs/tickets'))
        >>> name_given("api:e5?input_type=query|passage")
        (None, 'api:e5?input_type=query|passage')
    """
    name, sign, rest = model.partition("=")
    is_named = sign and name and rest and "?" not in name and not os.path.exists(model)  # noqa: PTH110
    return (name, rest) if is_named else (None, model)


def name_of(model: Any) -> Any:
    """The directory of a run, or a path, as a string; anything else unchanged."""
    return os.fspath(model) if isinstance(model, os.PathLike) else model


def short_names(models: Sequence[str]) -> list[str]:
    """Names to show of models: the end of a path, as short as keeps them apart; others as they are.

    A run keeps two parts, a relative path of two parts both. The `model` in a run's directory goes.

    Examples:
        >>> short_names(["bundled", "/data/all-MiniLM-L6-v2+words", "runs/pairs/model"])
        ['bundled', 'all-MiniLM-L6-v2+words', 'runs/pairs']
    """
    possible = [_ends_of(model) for model in models]
    while True:
        count = Counter(each[0] for each in possible)
        longer = [each[1:] if count[each[0]] > 1 and each[1:] else each for each in possible]
        if longer == possible:
            return [each[0] for each in possible]
        possible = longer


def _ends_of(model: str) -> list[str]:
    """Names for a model, short ones first, itself the last."""
    path = Path(model.partition("+")[0])
    rest, parts = model[len(str(path)) :], path.parts
    kept = parts[:-1] if parts[-1:] == ("model",) and len(parts) > 1 else parts
    if not path.is_absolute() and len(parts) < 3 and kept == parts:
        return [model]
    least = 1 if path.is_absolute() and not Path(*kept, "run.json").is_file() else 2
    first = 1 if path.is_absolute() else 0  # the root is no name
    return [*("/".join(kept[start:]) + rest for start in range(max(first, len(kept) - least), first - 1, -1)), model]
