"""Whether the model and data hub can be reached, asked once, so that nothing waits for retries without a network."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from urllib.parse import urlsplit

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


@contextmanager
def offline_if_unreachable() -> Iterator[None]:
    """Let the hub's libraries look only into their cache while the hub cannot be reached."""
    import datasets
    from huggingface_hub import constants

    before = datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    if not hub_reachable():
        datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before
