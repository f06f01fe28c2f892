"""Communication between the processes of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from selfsent.errors import SelfsentError

T = TypeVar("T")


def join() -> None:
    """Join the process group of `torchrun`, if there is one."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from accelerate import PartialState

        PartialState(cpu=not torch.cuda.is_available())


def accelerator() -> Any:
    """The Accelerator of accelerate, which shares a training out to several processes; one process does without.

    It has no mixed precision of its own, which would hold for the whole process and every later run.
    """
    from accelerate import Accelerator
    from accelerate.state import is_initialized

    found = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision=None if is_initialized() else "no")
    found.native_amp, found.scaler = False, None
    return found


def wait() -> None:
    """Block until all processes arrive."""
    if world_size() > 1:
        dist.barrier()


def gathered(value: T) -> list[T]:
    """The value of every process, by rank, on each of them; anything that can be pickled."""
    if world_size() == 1:
        return [value]
    everyone: list[Any] = [None] * world_size()
    dist.all_gather_object(everyone, value)
    return everyone


def together(action: Callable[[], T]) -> T:
    """The first process' result of an action that every process runs: other machines may lack its files.

    Raises:
        SelfsentError: the error of the lowest rank with one, on every process.
    """
    found: T | None = None
    error: SelfsentError | None = None
    try:
        found = action()
    except SelfsentError as raised:
        error = raised
    for each in gathered(error):
        if each is not None:
            raise each
    return of_first(cast(T, found))


def of_first(value: T) -> T:
    """The first process' value, on every process; anything that can be pickled, or depends on a clock."""
    if world_size() == 1:
        return value
    shared = [value if rank() == 0 else None]
    dist.broadcast_object_list(shared)
    return cast(T, shared[0])


def by_first(action: Callable[[], T]) -> T:
    """The result of an action that the first process alone does, on every process."""
    return of_first(cast(T, action() if rank() == 0 else None))


def world_size() -> int:
    """Number of processes that train together; 1 for a single one."""
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
    """The rows of all processes, (processes x n, d) from (n, d) on each, by rank; gradients flow back to every one."""
    if world_size() == 1:
        return local
    return cast(Tensor, _Gather.apply(local))  # type: ignore[no-untyped-call]  # torch's own
