"""Softmax that is as fast for short rows on a CPU: torch takes those number by number, ten times as slowly."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from selfsent.autograd import apply

REGISTER = 16
"""Numbers in float32 of a register of AVX-512: torch takes rows that are shorter number by number."""
WIDE = 64
"""Length of a row from which on torch is as fast in bfloat16 as in float32, both conversions counted."""


def softmax(scores: Tensor) -> Tensor:
    """Softmax over the last dimension, with gradients.

    Args:
        scores: (..., n), of any type and on any device.

    Returns:
        The same shape; float32 for short rows of bfloat16 on a CPU, else the type of the scores.
    """
    length = scores.shape[-1]
    if scores.device.type == "cpu" and scores.dtype == torch.bfloat16 and length < WIDE:
        scores = scores.float()
    if scores.device.type == "cpu" and scores.dtype == torch.float32 and length < REGISTER:
        return apply(_Softmax, scores)
    return scores.softmax(-1)


class _Softmax(torch.autograd.Function):
    """The equation, each step for all rows at once."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        shares = (scores - scores.amax(-1, keepdim=True)).exp_()
        shares /= shares.sum(-1, keepdim=True)
        ctx.save_for_backward(shares)
        return shares

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (shares,) = ctx.saved_tensors
        gradient: Tensor = grads[0] * shares
        return gradient.addcmul_(shares, gradient.sum(-1, keepdim=True), value=-1)
