"""Losses that several methods share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.autograd import add_gradient, apply, block_for

_CHUNK = 2**23
"""Scores computed at a time: the vocabulary projection of a batch never lies in memory as a whole."""
_BLOCK = 1024
"""Rows of the projection multiplied at a time on a CPU: they fit into its cache."""


def _project(states: Tensor, projection: Tensor) -> Tensor:
    """(n, vocabulary) scores in float32. On a CPU in blocks: as one product they take a third longer."""
    if states.device.type != "cpu" or states.dtype != torch.float32:
        return F.linear(states, projection).float()
    scores = states.new_empty(len(states), len(projection))
    for begin in range(0, len(projection), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        torch.mm(states, projection[block].t(), out=scores[:, block])
    return scores


class _LinearCrossEntropy(torch.autograd.Function):
    """Gradients are computed chunk by chunk in the forward pass, so that no chunk's scores outlive it."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
        device = states.device.type
        low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        ctx.dtype, ctx.weight = states.dtype, weight
        with torch.autocast(device, enabled=False):
            states, projection = states.to(low), weight.to(low)
            needed = any(ctx.needs_input_grad)
            grad_states = torch.empty_like(states) if needed else states.new_empty(0)
            grad_weight = block_for(weight) if needed else states.new_empty(0)
            if low != torch.float32 or not len(states):
                grad_weight.zero_()
            grad_bias = torch.zeros_like(bias, dtype=torch.float32) if needed and bias is not None else None
            total = states.new_zeros((), dtype=torch.float32)
            rows = max(1, _CHUNK // len(weight))
            for chunk in range(0, len(states), rows):
                part, goal = states[chunk : chunk + rows], targets[chunk : chunk + rows, None]
                scores = _project(part, projection)
                if bias is not None:
                    scores += bias.float()
                scores = torch.log_softmax(scores, dim=-1)
                total -= scores.gather(1, goal).sum()
                if needed:
                    error = scores.exp_()
                    error.scatter_add_(1, goal, torch.full_like(goal, -1, dtype=error.dtype))
                    if grad_bias is not None:
                        grad_bias += error.sum(0)
                    error = error.to(low)
                    torch.mm(error, projection, out=grad_states[chunk : chunk + rows])
                    if low == torch.float32:  # the first product writes over what lay in the block before
                        grad_weight.addmm_(error.t(), part, beta=int(chunk > 0))
                    else:
                        grad_weight += error.t() @ part
        ctx.save_for_backward(grad_states, grad_weight, *([] if grad_bias is None else [grad_bias]))
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None, None]:
        grad_states, grad_weight, *rest = ctx.saved_tensors
        scale = grads[0]
        grad_bias = rest[0] * scale if rest else None
        return (grad_states * scale).to(ctx.dtype), add_gradient(ctx.weight, grad_weight, scale), grad_bias, None


def linear_cross_entropy(states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """Sum of the cross-entropies of softmax(states weightᵀ + bias), without ever holding all scores in memory.

    Args:
        states: (n, d).
        weight: (vocabulary, d).
        bias: (vocabulary,) or None.
        targets: (n,) indices into the vocabulary.

    Returns:
        A float32 scalar: the sum over the n rows, in nats.
    """
    return apply(_LinearCrossEntropy, states, weight, bias, targets)
