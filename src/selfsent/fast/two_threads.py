"""Work shared by two threads on a CPU, each with half of the cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from typing import TypeVar

import torch

from selfsent.foreign.transformers import keeps_threads_apart

T = TypeVar("T")
_BUSY = threading.Lock()


def share_out(work: Callable[[T], None], items: Sequence[T], device: torch.device) -> None:
    """Call a function for each item; on a CPU two threads take items in turn.

    Threads that share every operation wait for each other after each; these wait once.

    Args:
        work: called in any order, with torch's modes as they are here. After an error no further item is started.
        items: an item without a partner gets all cores.
        device: of the computation.
    """
    threads, pairs = torch.get_num_threads(), len(items) // 2 * 2
    shared = device.type == "cpu" and threads > 1 and pairs and keeps_threads_apart()
    if not shared or not _BUSY.acquire(blocking=False):
        for item in items:
            work(item)
        return
    left, running = iter(items[:pairs]), list[Future[None]]()
    learns, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    low, kind = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

    def run() -> None:
        autocast = torch.autocast("cpu", kind, enabled=low)
        try:
            with torch.inference_mode(inference), torch.set_grad_enabled(learns), autocast:
                for item in left:
                    work(item)
        finally:
            drop()

    def drop() -> None:
        """Discard the remaining items."""
        for _ in left:
            pass

    try:
        with suppress(RuntimeError):  # Python is about to exit and starts no threads
            pool = _halves(os.getpid(), threads)
            for _ in range(2):
                running.append(pool.submit(run))
        if len(running) < 2:
            run()
        wait(running)
    finally:
        drop()
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
