"""Work shared by two threads on a CPU, each with half of the cores."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

import torch

T = TypeVar("T")
_BUSY = threading.Lock()


def share_out(work: Callable[[T], None], items: Sequence[T], device: torch.device) -> None:
    """Call a function for each item; on a CPU two threads take items in turn.

    Threads that share every operation wait for each other after each; these wait once.

    Args:
        work: called in any order, in inference mode. After an error no further item is started.
        items: an item without a partner gets all cores.
        device: of the computation.
    """
    threads, pairs = torch.get_num_threads(), len(items) // 2 * 2
    shared = device.type == "cpu" and threads > 1 and pairs
    if not shared or not _BUSY.acquire(blocking=False):
        for item in items:
            work(item)
        return
    left = iter(items[:pairs])

    def run() -> None:
        try:
            with torch.inference_mode():
                for item in left:
                    work(item)
        finally:
            deque(left, maxlen=0)

    pool = _halves(os.getpid(), threads)
    running = [pool.submit(run) for _ in range(2)]
    try:
        wait(running)
    finally:
        deque(left, maxlen=0)
        _BUSY.release()
    for each in running:
        each.result()
    for item in items[pairs:]:
        work(item)


@cache
def _halves(process: int, threads: int) -> ThreadPoolExecutor:
    """Two threads with half of the cores each; one pool for each process, since a fork has no threads."""
    pool, met = ThreadPoolExecutor(2, "selfsent-half", _take, (threads // 2,)), threading.Barrier(3)
    for _ in range(2):
        pool.submit(met.wait)
    met.wait()
    torch.set_num_threads(threads)  # new threads inherit the last number set
    return pool


def _take(cores: int) -> None:
    """Set the number of cores of this thread; torch forgets it unless it is read first."""
    torch.get_num_threads()
    torch.set_num_threads(cores)
