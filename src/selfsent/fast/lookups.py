"""Lookups of few rows of a large table, whose gradients are added to these rows alone."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

LARGE = 1000
"""Rows below which torch's own backward pass is faster: many lookups of few rows."""


class Lookup(nn.Embedding):
    """`nn.Embedding`; on a CPU, its backward pass adds to the rows of `weight.grad` that were looked up.

    Torch's own makes and adds a block of zeros of the table's size for each lookup: in a small batch, the largest part
    of a step after the matrix products. For one process only: the gradient is not reduced.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(...) ids to (..., d) rows."""
        learns = torch.is_grad_enabled() and self.weight.requires_grad
        if not learns or input.device.type != "cpu" or torch.compiler.is_compiling():
            return super().forward(input)
        anchor = torch.zeros((), requires_grad=True)  # makes the output require a gradient
        return cast(Tensor, _AddToRows.apply(anchor, input, self))  # type: ignore[no-untyped-call]  # torch's own


class _AddToRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, _: Tensor, ids: Tensor, table: Lookup) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.table = table
        return nn.functional.embedding(ids, table.weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        weight, ids, rows = ctx.table.weight, ctx.saved_tensors[0].flatten(), grads[0].flatten(0, -2)
        if ctx.table.padding_idx is not None:
            rows = rows.masked_fill((ids == ctx.table.padding_idx)[:, None], 0)
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        weight.grad.index_add_(0, ids, rows.to(weight.dtype))
        return None, None, None


def put_lookups(module: nn.Module, large: int = LARGE) -> None:
    """Replace every plain trained `nn.Embedding` of at least `large` rows in a module by a `Lookup`."""
    for part in module.modules():
        if type(part) is not nn.Embedding or part.max_norm or part.sparse or part.scale_grad_by_freq:
            continue
        if part.num_embeddings >= large and part.weight.requires_grad:
            part.__class__ = Lookup
