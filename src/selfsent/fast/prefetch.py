"""The next step's batches, made while a GPU still computes this one's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import torch

T = TypeVar("T")


class Ahead(Generic[T]):
    """What a function of the step gives; with a GPU one step is made in advance, in a thread of its own.

    Args:
        make: a pure function of the step; it may raise, and does so when its step is asked for.
        device: what computes meanwhile. A processor has no time to spare beside that: there, nothing is made ahead.
    """

    def __init__(self, make: Callable[[int], T], device: str) -> None:
        self.make, self.device = make, torch.device(device)
        self._thread: ThreadPoolExecutor | None = None
        self._made: dict[int, Future[T]] = {}

    def __call__(self, step: int, last: bool = False) -> T:
        """What `make` gives for a step, which is mostly the one behind the last that was asked for.

        Args:
            step: from 0.
            last: that there is none behind it.
        """
        if self.device.type == "cpu":
            return self.make(step)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "selfsent-batches")
            if self.device.type == "cuda":
                # A new thread begins with the first of several GPUs.
                self._thread.submit(torch.cuda.set_device, torch.cuda.current_device())
        known = self._made.pop(step, None) or self._thread.submit(self.make, step)
        self._made = {} if last else {step + 1: self._thread.submit(self.make, step + 1)}
        return known.result()

    def close(self) -> None:
        """End the thread; asked again, it begins anew."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
        self._thread, self._made = None, {}
