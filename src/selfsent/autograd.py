"""A typed door to torch's autograd functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def apply(function: type[torch.autograd.Function], *inputs: Any) -> Tensor:
    """Call an autograd function that returns one tensor; torch leaves it without types."""
    output: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]  # torch's own
    return output
