"""Two things at the same time on a CPU, each on half of the cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

T = TypeVar("T")
U = TypeVar("U")
Network = Callable[[], Tensor]
_NAME = "selfsent-other-half"


def at_once(one: Network, other: Network) -> tuple[Tensor, Tensor]:
    """What two functions give, computed at the same time, and their gradients too.

    These are added to `grad` of the weights, as `backward` does it; `torch.autograd.grad` does not see the weights.

    Args:
        one: on a CPU, without weights that learn in the other one, too.
        other: likewise. Only one of them may draw random numbers: which of two came first would be chance.
    """
    if is_in_torch_dispatch_mode():  # who counts operations does so in one thread
        return one(), other()
    result: tuple[Tensor, Tensor] = _Pair.apply(  # type: ignore[no-untyped-call]  # torch's own
        torch.zeros((), requires_grad=True), _as_here(one), _as_here(other)
    )
    return result


class _Pair(torch.autograd.Function):
    """Two graphs of their own. The first input is there to make the outputs ones that gradients come back to."""

    @staticmethod
    def forward(ctx: Any, _: Tensor, one: Network, other: Network) -> tuple[Tensor, ...]:
        ctx.made = in_two_threads(one, other)
        outputs = tuple(each.detach() for each in ctx.made)
        ctx.mark_non_differentiable(
            *(out for out, made in zip(outputs, ctx.made, strict=True) if not made.requires_grad)
        )
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        learning = [(made, grad) for made, grad in zip(ctx.made, grads, strict=True) if made.requires_grad]
        del ctx.made
        if len(learning) == 1:
            torch.autograd.backward(*learning[0])
        elif learning:
            in_two_threads(*(lambda pair=pair: torch.autograd.backward(*pair) for pair in learning))
        return None, None, None


def _as_here(function: Callable[[], T]) -> Callable[[], T]:
    """A function that computes in any thread as it would in this one, of which these modes are."""
    learns, runs_only = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    low, kind = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

    def run() -> T:
        with (
            torch.inference_mode(runs_only),
            torch.set_grad_enabled(learns),
            torch.autocast("cpu", kind, enabled=low),
        ):
            return function()

    return run


def in_two_threads(one: Callable[[], T], other: Callable[[], U]) -> tuple[T, U]:
    """What two functions return, each called in a thread with half of the cores; an error of either is raised.

    Threads that share every operation wait at the end of each for the slower core; these wait once. With one core, or
    from within such a call, one is called after the other.
    """
    threads = torch.get_num_threads()
    half = threads // 2
    if half == 0 or threading.current_thread().name.startswith(_NAME):
        return one(), other()

    def in_thread() -> U:
        # Each thread has its own number of threads; what is set last is also that of all threads to come.
        if torch.get_num_threads() != half:
            torch.set_num_threads(half)
        return other()

    task = _thread(os.getpid()).submit(in_thread)
    try:
        torch.set_num_threads(half)
        return one(), task.result()
    finally:
        wait([task])
        torch.set_num_threads(threads)


def share_out(work: Callable[[T], None], items: Sequence[T], device: torch.device) -> None:
    """Do some work for each of some items, on a CPU in two threads, each of which takes the next one when it is done.

    Args:
        work: in any order; it finds the modes of torch as they are here. After an error nothing new is begun.
        items: what it is done for; one that is without a partner has all cores.
        device: what it keeps busy.
    """
    shared = len(items) // 2 * 2 if device.type == "cpu" else 0
    left = iter(items[:shared])

    def some() -> None:
        try:
            for item in left:
                work(item)
        finally:
            for _ in left:  # if there are any, something went wrong here: the other thread need not go on
                pass

    if shared:
        in_two_threads(_as_here(some), _as_here(some))
    for item in items[shared:]:
        work(item)


@cache
def _thread(process: int) -> ThreadPoolExecutor:
    """One for each process: a fork does not take threads along."""
    return ThreadPoolExecutor(1, _NAME)
