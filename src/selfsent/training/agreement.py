"""Differences of configs: of a resumed run to the old one, and between processes."""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping
from typing import Any

from selfsent.distributed import gathered
from selfsent.errors import RunError

_HARMLESS = ("base", "corpus source")
"""Names that may differ in spelling; digest and fingerprint cover the contents."""


def check_agreement(config: dict[str, Any]) -> None:
    """Reject processes with different options, encoders or text, before any of them takes a step.

    On machines of their own each process reads its own files. Rows are chosen by number, so different tables would
    silently train every machine on something else.

    Args:
        config: everything that decides the result, as JSON.

    Raises:
        RunError: another process has another config; every process raises it.
    """
    first, *others = gathered((platform.node() or "unnamed", config))
    for number, (name, theirs) in enumerate(others, 1):
        if difference := _first_difference(first[1], theirs):
            where, one, other = difference
            raise RunError(
                f"process {number} on {name} has another {where} ({other}) than process 0 on {first[0]} ({one}): give"
                " all machines the same files, encoders and options"
            )


def first_difference(old: Any, new: Any, exclude: Collection[str] = ()) -> str | None:
    """Text on the first difference of two JSON values outside the names in `exclude`; None without one."""
    found = _first_difference(old, new, exclude)
    return None if found is None else f"{found[0]} was {found[1]}, now {found[2]}"


def _first_difference(old: Any, new: Any, exclude: Collection[str] = ()) -> tuple[str, Any, Any] | None:
    """Name of the first difference of two JSON values, and both values there."""
    old, new = _flattened(old), _flattened(new)
    for name in {**old, **new}:
        free = name in _HARMLESS or any(f"{name} ".startswith(f"{each} ") for each in exclude)
        if old.get(name) != new.get(name) and not free:
            before, now = ("not given" if each.get(name) is None else each[name] for each in (old, new))
            return name.replace("_", " "), before, now
    return None


def _flattened(config: Any, name: str = "") -> dict[str, Any]:
    """A JSON value without nesting: values by names such as `settings seed`."""
    if not isinstance(config, Mapping):
        return {name: config}
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= _flattened(value, f"{name} {key}" if name else key)
    return found
