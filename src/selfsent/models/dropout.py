"""Leaving dropout out for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def without_dropout(module: nn.Module) -> Iterator[None]:
    """Within the block the module is in evaluation mode; gradients flow as ever."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:  # and no others: some were in evaluation mode before
            part.training = True
