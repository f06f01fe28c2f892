"""Names of a package that are imported when they are first used, so that an import of few names is quick (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def imported_from(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """A module's `__getattr__`.

    Args:
        package: its name.
        homes: the names that it offers, by the module below it that has them.

    Examples:
        >>> __getattr__ = imported_from("json", {"decoder": ("JSONDecoder",)})
        >>> __getattr__("JSONDecoder")().decode("[1]")
        [1]
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def found(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        if f"{package}.{name}" not in sys.modules:  # a module of that name is the package's attribute
            setattr(sys.modules[package], name, value)
        return value

    return found
