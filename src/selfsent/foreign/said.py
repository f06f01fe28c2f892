"""What is said where a library no longer has a name that is relied on: once, in one line, on standard error."""

from __future__ import annotations

import logging
from functools import cache, reduce
from importlib import metadata
from typing import Any

_logger = logging.getLogger("selfsent")


@cache
def say(library: str, name: str, instead: str) -> None:
    """Say that a library does not have a name, and what is done without it.

    Args:
        library: as it is installed.
        name: what is missing.
        instead: what happens now.
    """
    _logger.warning("%s %s has no %s: %s", library, metadata.version(library), name, instead)


def found(library: str, place: Any, name: str, instead: str) -> Any:
    """What stands under a dotted name in a module or object; None where it is missing, which is said.

    Args:
        library: as it is installed.
        place: where to look.
        name: with dots: `ops.mkldnn._linear_pointwise`.
        instead: what happens where it is missing.
    """
    try:
        return reduce(getattr, name.split("."), place)
    except AttributeError:
        say(library, f"{getattr(place, '__name__', type(place).__name__)}.{name}", instead)
        return None
