"""Losses that several methods share."""

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.fast.padding import pad_rows

_CHUNK = {"cpu": 2**23, "cuda": 2**26}
"""Scores computed at a time, by kind of device: those of a whole batch are never in memory together."""
_BLOCK = 1024
"""Rows of the projection multiplied at a time on a CPU: they fit into its cache."""


def _project(states: Tensor, projection: Tensor, size: int) -> Tensor:
    """(n, vocabulary) scores in float32. On a CPU in blocks: as one product they take a third longer."""
    if states.device.type != "cpu":
        return F.linear(states, projection).float()
    scores = states.new_empty(len(states), len(projection), dtype=torch.float32)
    for begin in range(0, len(projection), size):
        block = slice(begin, begin + size)
        if states.dtype == torch.float32:
            torch.mm(states, projection[block].t(), out=scores[:, block])
        else:
            scores[:, block] = states @ projection[block].t()
    return scores


def _add_outer(total: Tensor, error: Tensor, states: Tensor, first: bool, size: int) -> None:
    """Add errorᵀ states to a float32 total; the first time overwrite it.

    On a CPU a product of another type is made in blocks: as a whole it would take memory as large as the vocabulary,
    which costs as much as the product.
    """
    if error.dtype == torch.float32:
        total.addmm_(error.t(), states, beta=int(not first))
        return
    rows = size if total.device.type == "cpu" else len(total)
    for begin in range(0, len(total), rows):
        block = slice(begin, begin + rows)
        product = error[:, block].t() @ states
        if first:
            total[block].copy_(product)
        else:
            total[block].add_(product)


class _LinearCrossEntropy(torch.autograd.Function):
    """Gradients are computed chunk by chunk in the forward pass, so that no chunk's scores outlive it."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        scores_at_once: int | None,
        block: int,
    ) -> Tensor:
        device = states.device.type
        low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        ctx.dtype, ctx.weight_dtype = states.dtype, weight.dtype
        with torch.autocast(device, enabled=False):
            states, projection = states.to(low), weight.to(low)
            needed = any(ctx.needs_input_grad)
            grad_states = torch.empty_like(states) if needed else states.new_empty(0)
            learns = ctx.needs_input_grad[1]
            grad_weight = torch.empty_like(weight, dtype=torch.float32) if learns else states.new_empty(0)
            if not len(states):
                grad_weight.zero_()
            grad_bias = torch.zeros_like(bias, dtype=torch.float32) if needed and bias is not None else None
            total = states.new_zeros((), dtype=torch.float32)
            rows = max(1, (scores_at_once or _CHUNK.get(device, _CHUNK["cpu"])) // len(weight))
            for chunk in range(0, len(states), rows):
                part, goal = states[chunk : chunk + rows], targets[chunk : chunk + rows, None]
                scores = _project(part, projection, block)
                if bias is not None:
                    scores += bias.float()
                scores = torch.log_softmax(scores, dim=-1)
                total -= scores.gather(1, goal).sum()
                if needed:
                    error = scores.exp_()
                    error[len(goal) :] = 0
                    error.scatter_add_(1, goal, torch.full_like(goal, -1, dtype=error.dtype))
                    if grad_bias is not None:
                        grad_bias += error.sum(0)
                    error = error.to(low)
                    torch.mm(error, projection, out=grad_states[chunk : chunk + rows])
                    if learns:
                        _add_outer(grad_weight, error, part, chunk == 0, block)
        ctx.save_for_backward(grad_states, *([] if grad_bias is None else [grad_bias]))
        ctx.grad_weight = grad_weight  # nobody else has it, so that it becomes the gradient without a copy
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None, None, None, None]:
        grad_states, *rest = ctx.saved_tensors
        scale, grad_weight, ctx.grad_weight = grads[0], ctx.grad_weight, None
        grad_bias = rest[0] * scale if rest else None
        of_weight = grad_weight.mul_(scale).to(ctx.weight_dtype) if ctx.needs_input_grad[1] else None
        return (grad_states * scale).to(ctx.dtype), of_weight, grad_bias, None, None, None


def linear_cross_entropy(
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    scores_at_once: int | None = None,
    block: int = _BLOCK,
) -> Tensor:
    """Sum of the cross-entropies of softmax(states weightᵀ + bias), without ever holding all scores in memory.

    Args:
        states: (n, d), perhaps padded (`pad_rows`); padding counts for nothing.
        weight: (vocabulary, d).
        bias: (vocabulary,) or None.
        targets: (n,) indices into the vocabulary.
        scores_at_once: maximum number of scores in memory, but for one row of them; None for the one of the device.
        block: rows of the projection multiplied at a time on a CPU.

    Returns:
        A float32 scalar, the sum over the n rows, in nats.
    """
    how = scores_at_once, block
    return cast(Tensor, _LinearCrossEntropy.apply(states, weight, bias, targets, *how))  # type: ignore[no-untyped-call]  # torch's


def head_cross_entropy(head: Any, states: Tensor, targets: Tensor) -> Tensor:
    """Sum of the cross-entropies of a language-model head on (n, d) states of the last layer."""
    return linear_cross_entropy(head(pad_rows(states)), head.output.weight, head.output.bias, targets)
