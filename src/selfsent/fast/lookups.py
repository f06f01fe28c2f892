"""Gradients of embedding tables, added where they belong instead of made as large as the table at every lookup."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from selfsent.fast.gradients import accumulate_in_place, add_rows, apply

LARGE = 1000
"""Rows below which torch's own way is faster: many lookups of few rows."""


class Lookup(nn.Embedding):
    """`nn.Embedding`; on a CPU, its backward pass adds to the rows of `weight.grad` that were looked up.

    Torch's own makes a block of zeros of the table's size and adds that, for each lookup: in a small batch, the largest
    part of a step that is not a matrix product. For one process only: nobody else hears of this gradient.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(...) ids to (..., d) rows."""
        learns = torch.is_grad_enabled() and self.weight.requires_grad
        if not learns or input.device.type != "cpu" or torch.compiler.is_compiling():
            return super().forward(input)
        return apply(_AddToRows, torch.zeros((), requires_grad=True), input, self)


class _AddToRows(torch.autograd.Function):
    """Rows of a table. The first input is there to make the output one that a gradient comes back to."""

    @staticmethod
    def forward(ctx: Any, _: Tensor, ids: Tensor, table: Lookup) -> Tensor:
        ctx.ids, ctx.table = ids, table
        return nn.functional.embedding(ids, table.weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        weight, ids, rows = ctx.table.weight, ctx.ids.flatten(), grads[0].flatten(0, -2)
        if ctx.table.padding_idx is not None:
            real = ids != ctx.table.padding_idx
            if not real.all():
                ids, rows = ids[real], rows[real]
        add_rows(weight, ids, rows)
        return None, None, None


def put_lookups(module: nn.Module, rows: int | None = None) -> None:
    """Let every plain `nn.Embedding` of so many rows or more that learns inside a module add to its gradient.

    Args:
        module: it is changed.
        rows: `LARGE` when None.
    """
    rows = LARGE if rows is None else rows
    for part in module.modules():
        if not isinstance(part, nn.Embedding) or type(part) not in (nn.Embedding, Lookup):
            continue
        learns = part.num_embeddings >= rows and part.weight.requires_grad
        if learns and not (part.max_norm or part.sparse or part.scale_grad_by_freq):
            part.__class__ = Lookup
            accumulate_in_place(part.weight)
