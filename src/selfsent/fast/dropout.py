"""Dropout whose random numbers cost less: on a CPU, drawing them one by one takes longer than everything around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.fast.gradients import apply

_LEVELS = 1 << 16


class Dropout(nn.Dropout):
    """`nn.Dropout`; on a CPU 16 random bits decide about each element, 64 of them drawn at a time.

    The rate is rounded to a multiple of 2⁻¹⁶ for that. The masks are a function of torch's generator, as ever.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Zero each element at the rate p, and divide the others by 1 − p, in training."""
        return dropout(input, self.p, self.training)


def dropout(states: Tensor, rate: float, training: bool = True) -> Tensor:
    """What `torch.nn.functional.dropout` does, on any device."""
    drawn = round(rate * _LEVELS)
    if not training or not 0 < drawn < _LEVELS or states.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(states, rate, training)
    return apply(_Mask, states, drawn)


class _Mask(torch.autograd.Function):
    """Elementwise product with a random mask, in both directions."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, drawn: int) -> Tensor:
        mask = _mask(states, drawn)
        ctx.save_for_backward(mask)
        return states * mask

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0] * ctx.saved_tensors[0], None


def _mask(states: Tensor, drawn: int) -> Tensor:
    """Zeros, at the rate drawn / 2¹⁶, and 1 / (1 − rate); made where the bits lie, since new memory costs more."""
    kept = torch.tensor(_LEVELS / (_LEVELS - drawn), dtype=states.dtype)
    seed = int(torch.empty((), dtype=torch.int64).random_())
    raw = cast(np.ndarray, np.random.SFC64(seed).random_raw(-(-states.numel() // 4)))
    bits = raw.view(np.int16)[: states.numel()]
    if kept.element_size() == 2:
        np.greater_equal(bits, drawn - _LEVELS // 2, out=bits, casting="unsafe")
        bits *= kept.view(torch.int16).numpy()
        return torch.from_numpy(bits).view(states.dtype).view(states.shape)
    return torch.from_numpy((bits >= drawn - _LEVELS // 2) * kept.numpy()).view(states.shape)


def put_dropout(module: nn.Module) -> None:
    """Let every `nn.Dropout` inside a module draw its numbers this way; nothing else about it changes."""
    for part in module.modules():
        if type(part) is nn.Dropout:
            part.__class__ = Dropout


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
