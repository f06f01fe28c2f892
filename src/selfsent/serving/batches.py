"""Requests that arrive together are worked on together, in one thread beside the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TOGETHER = 64
"""Most pieces of work in a batch."""
CHARACTERS = 1 << 17
"""Most characters of a batch, unless its first piece has more."""


class Batcher:
    """A bounded queue in front of one thread. Nothing waits for a batch to fill: it is what came during the last one.

    Args:
        work: pieces of work -> a result for each, or an exception.
        size: number of characters in a piece.
        most: pieces that may wait.
    """

    def __init__(self, work: Callable[[Sequence[Any]], Sequence[Any]], size: Callable[[Any], int], most: int) -> None:
        self._work, self._size, self._most = work, size, most
        self._waiting: deque[tuple[Any, asyncio.Future[Any]]] = deque()
        self._some = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "selfsent")

    async def submit(self, piece: Any) -> Any:
        """The result of a piece of work.

        Raises:
            asyncio.QueueFull: too many wait.
        """
        if len(self._waiting) >= self._most:
            raise asyncio.QueueFull
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((piece, future))
        self._some.set()
        return await future

    async def run(self) -> None:
        """Work until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._some.wait()
            if batch := self._next():
                done: Sequence[Any]
                try:
                    done = await loop.run_in_executor(self._thread, self._work, [piece for piece, _ in batch])
                except Exception as error:
                    done = [error] * len(batch)
                for (_, future), result in zip(batch, done, strict=True):
                    if not future.done():  # else its client is gone
                        future.set_exception(result) if isinstance(result, Exception) else future.set_result(result)

    def _next(self) -> list[tuple[Any, asyncio.Future[Any]]]:
        batch: list[tuple[Any, asyncio.Future[Any]]] = []
        characters = 0
        while self._waiting and len(batch) < TOGETHER:
            piece, future = self._waiting[0]
            characters += self._size(piece)
            if batch and characters > CHARACTERS:
                return batch
            self._waiting.popleft()
            if not future.done():
                batch.append((piece, future))
        if not self._waiting:
            self._some.clear()
        return batch

    def close(self) -> None:
        """End the thread after what it is at."""
        self._thread.shutdown(wait=True, cancel_futures=True)
