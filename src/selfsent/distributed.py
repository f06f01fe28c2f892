"""What methods need of the other processes: their negatives, and nothing else."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def world_size() -> int:
    """How many processes train together; 1 when this one is alone."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor) -> Tensor:
        parts = [torch.empty_like(local) for _ in range(world_size())]
        dist.all_gather(parts, local.contiguous())
        ctx.size = len(local)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        # Every process' loss depends on this process' rows, so their gradients add up.
        total = grads[0].contiguous().clone()
        dist.all_reduce(total)
        return total.narrow(0, rank() * ctx.size, ctx.size)


def gather(local: Tensor) -> Tensor:
    """The rows of all processes, (processes x n, d) from (n, d) on each, in order of rank; gradients flow back to every one."""
    return local if world_size() == 1 else _Gather.apply(local)
