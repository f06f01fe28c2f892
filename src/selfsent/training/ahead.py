"""The next step's batches, made while the device still computes this one's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """What a function of the step gives, one step made in advance, in a thread of its own.

    Args:
        make: a pure function of the step; it may raise, and does so when its step is asked for.
    """

    def __init__(self, make: Callable[[int], T]) -> None:
        self.make = make
        self._thread = ThreadPoolExecutor(1, "selfsent-batches")
        self._made: dict[int, Future[T]] = {}

    def __call__(self, step: int) -> T:
        """What `make` gives for a step, which is mostly the one behind the last that was asked for."""
        known = self._made.pop(step, None) or self._thread.submit(self.make, step)
        self._made = {step + 1: self._thread.submit(self.make, step + 1)}
        return known.result()
