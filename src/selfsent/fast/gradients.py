"""Typed calls of autograd functions, and gradients of embedding tables that are added in place, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary


def apply(function: type[torch.autograd.Function], *inputs: Any) -> Tensor:
    """Call an autograd function that returns one tensor; torch leaves it without types."""
    output: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]  # torch's own
    return output


@dataclass
class _InPlace:
    """State of a weight whose gradient is added in place.

    Args:
        spare: unused blocks of its size.
        rows: ids of the rows that were added to since it was cleared.
        whole: whether more than rows was added.
    """

    spare: list[Tensor] = field(default_factory=list)
    rows: list[Tensor] = field(default_factory=list)
    whole: bool = False

    def all_over(self, *_: Any) -> None:
        """Mark that more than rows was added."""
        self.whole = True


_IN_PLACE: Any = WeakTensorKeyDictionary()


def accumulate_in_place(weight: Tensor) -> None:
    """Make a weight accumulate its gradient in place. For one process: the gradient is not reduced.

    Args:
        weight: a leaf that requires a gradient, most of which is added to rows.
    """
    if weight in _IN_PLACE:
        return
    known = _IN_PLACE[weight] = _InPlace()
    weight.register_post_accumulate_grad_hook(known.all_over)  # type: ignore[no-untyped-call]  # torch's own


def block_for(weight: Tensor) -> Tensor:
    """An uninitialised block for a float32 gradient of a weight.

    Freed large blocks go back to the system, and clearing their pages at every step takes longer than reading and
    writing them.
    """
    known = _IN_PLACE.get(weight)
    return known.spare.pop() if known and known.spare else torch.empty_like(weight, dtype=torch.float32)


def add_rows(weight: Tensor, ids: Tensor, rows: Tensor) -> None:
    """Add (n, d) to the rows `ids`, (n,), of a weight's gradient."""
    if weight.grad is None:
        weight.grad = torch.zeros_like(weight)
    weight.grad.index_add_(0, ids, rows.to(weight.dtype))
    if known := _IN_PLACE.get(weight):
        known.rows.append(ids)


def add_gradient(weight: Tensor, gradient: Tensor, scale: Tensor) -> Tensor | None:
    """Give a weight `scale` times a gradient in a block from `block_for`, which is used up.

    Returns:
        Result for the backward pass: the gradient, or None where it was added.
    """
    known = _IN_PLACE.get(weight)
    if known is None or weight.grad is None:
        return gradient.mul_(scale).to(weight.dtype)
    weight.grad.add_(gradient, alpha=float(scale))
    known.spare.append(gradient)
    known.all_over()
    return None


def rows_added(weight: Tensor) -> Tensor | None:
    """(n,) ids of the rows that a weight's gradient is in, in order; None where it may be anywhere."""
    known = _IN_PLACE.get(weight)
    if known is None or known.whole:
        return None
    known.rows = [torch.unique(torch.cat([torch.empty(0, dtype=torch.long), *known.rows]))]
    rows: Tensor = known.rows[0]
    return rows


def gradient_of(weight: Tensor) -> Tensor:
    """The gradient without rows that are zero, which has the same norm; it must exist."""
    assert weight.grad is not None
    rows = rows_added(weight)
    return weight.grad if rows is None else weight.grad.index_select(0, rows)


def clear_gradients(optimizer: torch.optim.Optimizer) -> None:
    """Clear the gradients of a step; where they are added in place, their memory is kept."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"] if weight in _IN_PLACE]
    kept = [weight.grad for weight in weights]
    optimizer.zero_grad(set_to_none=True)
    for weight, gradient in zip(weights, kept, strict=True):
        known: _InPlace = _IN_PLACE[weight]
        if gradient is None:
            continue
        rows = rows_added(weight)
        weight.grad = gradient.zero_() if rows is None else gradient.index_fill_(0, rows, 0)
        known.rows, known.whole = [], False


def release(optimizer: torch.optim.Optimizer) -> None:
    """Clear the gradients, and free the memory kept for them."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            _IN_PLACE.pop(weight, None)
    optimizer.zero_grad(set_to_none=True)


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
        return apply(_AddToRows, torch.zeros((), requires_grad=True), input, self)


class _AddToRows(torch.autograd.Function):
    """Rows of a table. The first input makes the output require a gradient."""

    @staticmethod
    def forward(ctx: Any, _: Tensor, ids: Tensor, table: Lookup) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.table = table
        return nn.functional.embedding(ids, table.weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        weight, ids, rows = ctx.table.weight, ctx.saved_tensors[0].flatten(), grads[0].flatten(0, -2)
        if ctx.table.padding_idx is not None:
            real = ids != ctx.table.padding_idx
            if not real.all():
                ids, rows = ids[real], rows[real]
        add_rows(weight, ids, rows)
        return None, None, None


def put_lookups(module: nn.Module, rows: int | None = None) -> None:
    """Replace every plain trained `nn.Embedding` of at least `rows` rows in a module by a `Lookup`.

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
