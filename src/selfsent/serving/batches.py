"""Requests that arrive together are worked on together, in threads beside the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TOGETHER = 64
"""Maximum number of pieces of work in a batch."""
CHARACTERS = 1 << 17
"""Maximum number of characters of a batch, unless its first piece has more."""


Work = Callable[[Sequence[Any]], Sequence[Any]]


class Batcher:
    """A bounded queue in front of a few threads. A batch is all work that came during the last one: none waits to fill.

    Args:
        work: pieces of work -> a result for each, or an exception.
        size: number of characters in a piece.
        most: pieces that may wait.
        threads: batches that are worked on at a time.
        characters: maximum number in a batch, unless its first piece has more.
    """

    def __init__(
        self, work: Work, size: Callable[[Any], int], most: int, threads: int = 1, characters: int = CHARACTERS
    ) -> None:
        self._work, self._size, self._most = work, size, most
        self._characters = characters
        self._waiting: deque[tuple[Any, asyncio.Future[Any]]] = deque()
        self._some = asyncio.Event()
        self._thread = ThreadPoolExecutor(threads, "selfsent")
        self._threads = threads

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
        await asyncio.gather(*(self._run() for _ in range(self._threads)))

    async def _run(self) -> None:
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
            if batch and characters > self._characters:
                return batch
            self._waiting.popleft()
            if not future.done():
                batch.append((piece, future))
        if not self._waiting:
            self._some.clear()
        return batch

    def close(self) -> None:
        """End the threads after their current batches."""
        self._thread.shutdown(wait=True, cancel_futures=True)
