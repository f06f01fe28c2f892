"""Batches of the next step, made while the GPU computes this one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import torch

T = TypeVar("T")


class Prefetch(Generic[T]):
    """Results of a function of the step; with a GPU the next step's is made ahead, in a thread.

    Args:
        make: a pure function of the step; an error is raised when its step is requested.
        device: of the training; nothing is prefetched on a CPU.
    """

    def __init__(self, make: Callable[[int], T], device: str) -> None:
        self.make, self._pool, self._made = make, None, dict[int, Future[T]]()
        if (kind := torch.device(device).type) != "cpu":
            # A new thread starts on the first of several GPUs.
            first = (torch.cuda.set_device, (torch.cuda.current_device(),)) if kind == "cuda" else (None, ())
            self._pool = ThreadPoolExecutor(1, "selfsent-batches", *first)

    def __call__(self, step: int, last: bool = False) -> T:
        """The result for a step, counted from 0, mostly the one after the previous call; `last` if none follows."""
        if self._pool is None:
            return self.make(step)
        made = self._made.pop(step, None) or self._pool.submit(self.make, step)
        self._made = {} if last else {step + 1: self._pool.submit(self.make, step + 1)}
        return made.result()

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
