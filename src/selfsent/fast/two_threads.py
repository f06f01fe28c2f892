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

from selfsent.foreign.torch import is_in_torch_dispatch_mode
from selfsent.foreign.transformers import keeps_threads_apart

T = TypeVar("T")
U = TypeVar("U")
Network = Callable[[], Tensor]
_BUSY = threading.Lock()


def at_once(one: Network, other: Network) -> tuple[Tensor, Tensor]:
    """What two functions give, computed at the same time, and their gradients too.

    These are added to `grad` of the weights, as `backward` does it, and only once; `torch.autograd.grad` does not see
    the weights.

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
        ctx.set_materialize_grads(False)
        ctx.made = in_two_threads(one, other)
        outputs = tuple(each.detach() for each in ctx.made)
        ctx.mark_non_differentiable(
            *(out for out, made in zip(outputs, ctx.made, strict=True) if not made.requires_grad)
        )
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None]:
        if ctx.made is None:
            raise RuntimeError("what was computed at once has one backward pass")
        pairs = zip(ctx.made, grads, strict=True)
        learning = [(made, grad) for made, grad in pairs if made.requires_grad and grad is not None]
        ctx.made = None
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
    while another call is at work, of which this one may be part, one is called after the other.
    """
    threads = torch.get_num_threads()
    if threads < 2 or not keeps_threads_apart() or not _BUSY.acquire(blocking=False):
        return one(), other()
    try:
        try:
            pool = _halves(os.getpid(), threads)
            first, second = pool.submit(one), pool.submit(other)
        except RuntimeError:  # Python is about to end, and begins no threads any more
            return one(), other()
        wait((first, second))  # type: ignore[misc]  # of any two types
        return first.result(), second.result()
    finally:
        _BUSY.release()


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
            drop()

    def drop() -> None:
        """If there are any left, something went wrong: nobody need go on."""
        for _ in left:
            pass

    if shared:
        try:
            in_two_threads(_as_here(some), _as_here(some))
        finally:
            drop()
    for item in items[shared:]:
        work(item)


@cache
def _halves(process: int, threads: int) -> ThreadPoolExecutor:
    """Two threads with half of the cores each, for each process, since a fork does not take threads along."""
    pool, met = ThreadPoolExecutor(2, "selfsent-half", _take, (threads // 2,)), threading.Barrier(3)
    for _ in range(2):
        pool.submit(met.wait)
    met.wait()
    torch.set_num_threads(threads)  # what any thread has set is what new ones begin with
    return pool


def _take(cores: int) -> None:
    """Use so many cores in this thread from now on; before it asks for their number, torch would forget that."""
    torch.get_num_threads()
    torch.set_num_threads(cores)
