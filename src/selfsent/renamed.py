"""Old public names: they work for one version, with a `DeprecationWarning` that names the new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import Any, ParamSpec, TypeVar, cast

from selfsent.progress import Counter, Progress

_P = ParamSpec("_P")
_R = TypeVar("_R")


def warn_renamed(old: str, new: str, depth: int = 2) -> None:
    """Warn that a name is deprecated.

    Args:
        old: the deprecated name.
        new: the name that replaces it.
        depth: number of calls between this one and the code to blame.
    """
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, depth + 1)


def renamed_arguments(**names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Accept old keyword arguments of a function.

    Args:
        **names: new name by old name.

    Raises:
        TypeError: on a call with both names of an argument.

    Examples:
        >>> @renamed_arguments(word_weight="lexical_weight")
        ... def search(lexical_weight: float = 0.5) -> float:
        ...     return lexical_weight
        >>> search(word_weight=1.5)
        1.5
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
            if named.keys() & names.keys():
                _rename(function.__qualname__.removesuffix(".__init__"), named, names)
            return function(*arguments, **named)

        return call

    return decorate


def _rename(function: str, named: dict[str, Any], names: dict[str, str]) -> None:
    for old in [*named.keys() & names.keys()]:
        if names[old] in named:
            raise TypeError(f"{function}() got {old} and {names[old]}, which are the same: give {names[old]}")
        warn_renamed(f"{function}({old}=)", f"{names[old]}=", 3)
        named[names[old]] = named.pop(old)


class _Callbacks(Progress):
    """Progress for the functions that were given in place of one."""

    def __init__(self, advance: Counter | None = None, notice: Callable[[str], None] | None = None) -> None:
        self._advance, self._notice = advance, notice

    def notice(self, line: str) -> None:
        if self._notice:
            self._notice(line)

    def count(self, what: str, done: int, total: int) -> None:
        if self._advance:
            self._advance(done)


def callbacks_as_progress(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Accept functions in place of `progress`: `advance`, of a count, and `notice`, of a line.

    `advance` may also stand at the position of `progress`.

    Raises:
        TypeError: on a call with `progress` and one of them.

    Examples:
        >>> @callbacks_as_progress
        ... def work(progress: Progress = Progress()) -> None:
        ...     progress.count("working", 3, 3)
        >>> work(advance=print)
        3
    """
    name, called = function.__qualname__, cast(Callable[..., _R], function)
    place = [*signature(function).parameters].index("progress")

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> _R:
        old: dict[str, Any] = {each: named.pop(each) for each in ("advance", "notice") if each in named}
        before, given, after = arguments[:place], [*arguments[place : place + 1]], arguments[place + 1 :]
        if given and callable(given[0]):
            old["advance"] = given[0]
        elif old and (given or "progress" in named):
            raise TypeError(f"{name}() got {' and '.join(old)} and progress, which are the same: give progress")
        if not old:
            return called(*arguments, **named)
        for each in old:
            warn_renamed(f"{name}({each}=)", "progress=, a selfsent.progress.Progress")
        if given:
            return called(*before, _Callbacks(**old), *after, **named)
        return called(*arguments, progress=_Callbacks(**old), **named)

    return cast(Callable[_P, _R], call)


def moved_module(old: str, *new: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that moved: its names are read at their new place, with a warning.

    Args:
        old: the deprecated module's name.
        *new: the names of the modules that replace it, each before those that it imports from.

    Examples:
        >>> __getattr__ = moved_module("simplejson", "json")
        >>> __getattr__("loads")("[1]")
        [1]
    """

    def found(name: str) -> Any:
        if name.startswith("__"):  # asked for by the import system
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        homes = [module for module in map(import_module, new) if hasattr(module, name)]
        if not homes:
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        warn_renamed(f"{old}.{name}", f"{homes[-1].__name__}.{name}")
        return getattr(homes[-1], name)

    return found
