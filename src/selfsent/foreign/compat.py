"""Lookup of private names in other libraries: one that is missing is reported once, in one line on standard error."""

from __future__ import annotations

import logging
from functools import cache, reduce
from importlib import metadata
from typing import Any

_logger = logging.getLogger("selfsent")


@cache
def warn_missing(library: str, name: str, instead: str) -> None:
    """Report that an installed library lacks a name, and what happens instead."""
    _logger.warning("%s %s has no %s: %s", library, metadata.version(library), name, instead)


def lookup(library: str, place: Any, name: str, instead: str) -> Any:
    """The object under a dotted name in a module or object; None, with a warning, where it is missing.

    Args:
        library: as it is installed.
        place: where to look.
        name: such as `ops.mkldnn._linear_pointwise`.
        instead: what happens where it is missing.
    """
    try:
        return reduce(getattr, name.split("."), place)
    except AttributeError:
        warn_missing(library, f"{getattr(place, '__name__', type(place).__name__)}.{name}", instead)
        return None
