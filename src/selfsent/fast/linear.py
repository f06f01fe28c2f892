"""Linear layers whose weight is cast once a step, and whose gradient needs no new memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.fast.gradients import accumulate_in_place, accumulates_in_place, add_product, apply, low_of

LARGE = 100_000
"""Weights of a layer below which torch's own way is as fast."""


class Linear(nn.Linear):
    """`nn.Linear`; trained under autocast on a CPU, it computes what autocast would with fewer steps around it.

    Autocast makes new blocks as large as the weight for its bfloat16 copy and for its gradient, in both types: a tenth
    of a step with a small batch. For one process only: nobody else hears of the gradient.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) to (..., out)."""
        if torch.compiler.is_compiling():
            return super().forward(input)
        wanted = torch.is_grad_enabled() and self.weight.requires_grad and accumulates_in_place(self.weight)
        low = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
        fits = input.device.type == "cpu" and input.dtype in (torch.float32, torch.bfloat16)
        if not (wanted and low and fits):
            return super().forward(input)
        return apply(_Product, input, self.weight, self.bias)


class _Product(torch.autograd.Function):
    """x wᵀ + b in bfloat16."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        low, rows = low_of(weight), states.to(torch.bfloat16)
        ctx.save_for_backward(rows, low)
        ctx.weight, ctx.dtype, ctx.biased = weight, states.dtype, bias is not None
        return F.linear(rows, low, None if bias is None else bias.to(torch.bfloat16))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, Tensor | None]:
        (states, low), error = ctx.saved_tensors, grads[0]
        rows, errors = (each.reshape(-1, each.shape[-1]) for each in (states, error))
        add_product(ctx.weight, errors.t() @ rows)
        grad_states = (error @ low).to(ctx.dtype) if ctx.needs_input_grad[0] else None
        return grad_states, None, errors.sum(0, dtype=torch.float32) if ctx.biased else None


def put_linears(module: nn.Module, size: int | None = None) -> None:
    """Let every plain `nn.Linear` of so many weights or more that learns inside a module work this way.

    Args:
        module: it is changed.
        size: `LARGE` when None.
    """
    size = LARGE if size is None else size
    for part in module.modules():
        if not isinstance(part, nn.Linear) or type(part) not in (nn.Linear, Linear):
            continue
        if part.weight.requires_grad and part.weight.numel() >= size:
            part.__class__ = Linear
            accumulate_in_place(part.weight, table=False)
