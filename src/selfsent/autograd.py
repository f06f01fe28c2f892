"""A typed door to torch's autograd functions, and gradients of large weights that are added where they lie."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary


def apply(function: type[torch.autograd.Function], *inputs: Any) -> Tensor:
    """Call an autograd function that returns one tensor; torch leaves it without types."""
    output: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]  # torch's own
    return output


_SPARE: Any = WeakTensorKeyDictionary()
"""Of every weight whose gradient is added where it lies: blocks of its size that nobody uses."""


def accumulate_in_place(weight: Tensor) -> None:
    """From now on, have `add_gradient` add to a weight's gradient itself. For one process: nobody else hears of it."""
    _SPARE[weight] = []


def block_for(weight: Tensor) -> Tensor:
    """Room for a float32 gradient of a weight, with anything in it.

    Blocks as large as a vocabulary are given back to the system when they are freed, and to clear their pages at every
    step takes longer than to read and write them.
    """
    spare = _SPARE.get(weight)
    return spare.pop() if spare else torch.empty_like(weight, dtype=torch.float32)


def add_gradient(weight: Tensor, gradient: Tensor, scale: Tensor) -> Tensor | None:
    """Give a weight `scale` times a gradient in a block from `block_for`, which is used up.

    Returns:
        What the backward pass is to return: the gradient, or None where it was added.
    """
    spare = _SPARE.get(weight)
    if spare is None or weight.grad is None:
        return gradient.mul_(scale).to(weight.dtype)
    weight.grad.add_(gradient, alpha=float(scale))
    spare.append(gradient)
    return None
