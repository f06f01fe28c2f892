"""Which process this is, before torch is imported."""

from __future__ import annotations

import os


def leads() -> bool:
    """Whether this is the only process, or the first of those that `torchrun` started."""
    return os.environ.get("RANK", "0") == "0"
