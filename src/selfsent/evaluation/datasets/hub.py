"""Whether the model and data hub can be reached, asked once, so that nothing waits for retries without a network."""

from __future__ import annotations

import os
import socket
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from selfsent.errors import DataError

PATIENCE = 3.0
"""Seconds to wait for the hub to answer."""


@cache
def hub_reachable() -> bool:
    """Whether the hub answers; behind a proxy it is taken to, because only the client library knows the way."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    address = urlsplit(constants.ENDPOINT)
    try:
        port = address.port or (80 if address.scheme == "http" else 443)
        socket.create_connection((address.hostname or "", port), timeout=PATIENCE).close()
    except OSError:
        return False
    return True


def from_hub(name: str, config: str | None, split: str | None = None) -> Any:
    """The rows of a data set of the hub, or of its cache; those of all its splits by their names where none is given.

    While the hub cannot be reached, its libraries look only into their cache.

    Args:
        name: its id.
        config: one of its configurations; None for the only one.
        split: one of its splits.

    Raises:
        DataError: it is not to be had.
    """
    try:
        import datasets
    except ImportError as error:
        raise DataError("the hub needs: pip install 'selfsent[hub]'") from error
    from huggingface_hub import constants

    before = datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    if not hub_reachable():
        datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        return datasets.load_dataset(name, config, split=split)
    except Exception as error:  # what the library raises has many kinds and pages of text; the first line says it
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        why = f"does not provide it: {reason}" if hub_reachable() else "cannot be reached and its cache lacks it"
        raise DataError(f"the hub {why}") from error
    finally:
        datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before
