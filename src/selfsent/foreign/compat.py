"""Lookup of private names in other libraries: one that is missing is reported once, in one line on standard error."""

from __future__ import annotations

import logging
from functools import cache, reduce
from typing import Any

_logger = logging.getLogger("selfsent")


@cache
def warn_missing(library: str, name: str, instead: str) -> None:
    """Report that an installed library lacks a name, and the consequence."""
    from importlib import metadata

    _logger.warning("%s %s has no %s: %s", library, metadata.version(library), name, instead)


def lookup(library: str, owner: Any, name: str, instead: str) -> Any:
    """The object under a dotted name in a module or object; None, with a warning, where it is missing.

    Args:
        library: name of its distribution.
        owner: module or object with the name.
        name: such as `ops.mkldnn._linear_pointwise`.
        instead: the consequence, for the warning.
    """
    try:
        return reduce(getattr, name.split("."), owner)
    except AttributeError:
        warn_missing(library, f"{getattr(owner, '__name__', type(owner).__name__)}.{name}", instead)
        return None
