"""Whether two descriptions of a run are the same: of a run and what resumes it, or of processes that train together."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from selfsent.distributed import gathered, host
from selfsent.errors import RunError

_HARMLESS = ("base", "corpus source")
"""Names, which may be written in several ways; digest and fingerprint say whether the contents are the same."""


def check_agreement(asked: dict[str, Any]) -> None:
    """Refuse processes that were given different options, encoders or text, before any of them takes a step.

    On machines of their own each process reads its own files. Rows are chosen by their numbers, so tables that differ
    would train every machine on something else, in silence.

    Args:
        asked: everything that decides the result, as JSON.

    Raises:
        RunError: another process was asked for something else; every process says so.
    """
    first, *others = gathered((host(), asked))
    for number, (name, theirs) in enumerate(others, 1):
        if place := _first_place(first[1], theirs):
            where, one, other = place
            raise RunError(
                f"process {number} on {name} has another {where} ({other}) than process 0 on {first[0]} ({one}): give"
                " all machines the same files, encoders and options"
            )


def first_difference(old: Any, new: Any, where: str = "", but: Collection[str] = ()) -> str | None:
    """In words, the first place where two JSON values differ, save those in `but`; None when they are the same."""
    place = _first_place(old, new, where, but)
    return None if place is None else f"{place[0]} was {place[1]}, now {place[2]}"


def _first_place(old: Any, new: Any, where: str = "", but: Collection[str] = ()) -> tuple[str, Any, Any] | None:
    """The name of the first place where two JSON values differ, and what stands there in both."""
    if where in but:
        return None
    if isinstance(old, dict) and isinstance(new, dict):
        for name in {**old, **new}:
            if place := _first_place(old.get(name), new.get(name), f"{where} {name}".strip(), but):
                return place
        return None
    if old == new or where in _HARMLESS:
        return None
    before, now = ("not given" if value is None else value for value in (old, new))
    return where.replace("_", " "), before, now
