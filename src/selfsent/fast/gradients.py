"""A typed door to torch's autograd functions, and gradients of large tables that are added where they lie."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary


def apply(function: type[torch.autograd.Function], *inputs: Any) -> Tensor:
    """Call an autograd function that returns one tensor; torch leaves it without types."""
    output: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]  # torch's own
    return output


@dataclass
class _InPlace:
    """What is known of a weight whose gradient is added where it lies.

    Args:
        spare: blocks of its size that nobody uses.
        rows: that were added to since it was cleared; one tensor of distinct ones where `distinct`.
        whole: whether more than rows was added.
    """

    spare: list[Tensor] = field(default_factory=list)
    rows: list[Tensor] = field(default_factory=list)
    distinct: bool = False
    whole: bool = False

    def all_over(self, *_: Any) -> None:
        """More than rows was added."""
        self.whole = True


_IN_PLACE: Any = WeakTensorKeyDictionary()


def accumulate_in_place(weight: Tensor) -> None:
    """From now on, let a weight's gradient be added where it lies. For one process: nobody else hears of it.

    Args:
        weight: a leaf that requires a gradient, most of which is added to rows.
    """
    if weight in _IN_PLACE:
        return
    known = _IN_PLACE[weight] = _InPlace()
    weight.register_post_accumulate_grad_hook(known.all_over)  # type: ignore[no-untyped-call]  # torch's own


def block_for(weight: Tensor) -> Tensor:
    """Room for a float32 gradient of a weight, with anything in it.

    Large blocks are given back to the system when they are freed, and to clear their pages at every step takes longer
    than to read and write them.
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
        known.distinct = False


def add_gradient(weight: Tensor, gradient: Tensor, scale: Tensor) -> Tensor | None:
    """Give a weight `scale` times a gradient in a block from `block_for`, which is used up.

    Returns:
        What the backward pass is to return: the gradient, or None where it was added.
    """
    known = _IN_PLACE.get(weight)
    if known is None or weight.grad is None:
        return gradient.mul_(scale).to(weight.dtype)
    weight.grad.add_(gradient, alpha=float(scale))
    known.spare.append(gradient)
    known.all_over()
    return None


def rows_added(weight: Tensor) -> Tensor | None:
    """(n,) rows of a weight that its gradient is in, in order; None where it may be anywhere."""
    known = _IN_PLACE.get(weight)
    if known is None or known.whole:
        return None
    if not known.distinct:
        known.rows = [torch.unique(torch.cat([torch.empty(0, dtype=torch.long), *known.rows]))]
        known.distinct = True
    rows: Tensor = known.rows[0]
    return rows


def gradient_of(weight: Tensor) -> Tensor:
    """A gradient, which must be there, less rows that are zero: it has the same norm."""
    assert weight.grad is not None
    rows = rows_added(weight)
    return weight.grad if rows is None else weight.grad.index_select(0, rows)


def clear_gradients(optimizer: torch.optim.Optimizer) -> None:
    """Forget the gradients of a step; where they are added in place, the memory they take is kept."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"] if weight in _IN_PLACE]
    kept = [weight.grad for weight in weights]
    optimizer.zero_grad(set_to_none=True)
    for weight, gradient in zip(weights, kept, strict=True):
        known: _InPlace = _IN_PLACE[weight]
        if gradient is None:
            continue
        rows = rows_added(weight)
        weight.grad = gradient.zero_() if rows is None else gradient.index_fill_(0, rows, 0)
        known.rows, known.distinct, known.whole = [], False, False


def release(optimizer: torch.optim.Optimizer) -> None:
    """Forget the gradients, and give back the memory that was kept for them."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            _IN_PLACE.pop(weight, None)
    optimizer.zero_grad(set_to_none=True)
