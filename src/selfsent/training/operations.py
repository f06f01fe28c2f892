"""How many operations a step takes, and how many the device could do in that time."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

SIZES = {"cpu": 1024, "cuda": 8192}
"""Rows and columns of the weight in the product that is timed."""
ROWS = {"cpu": 4096, "cuda": 8192}
"""Rows of states in it, at most."""
LONG = 0.02
"""Seconds of a product that can be timed well; a slow device takes as long for fewer rows."""
TIMES = 5
"""Products that are timed, each by itself."""

_FORWARDS: Any = sdpa_flop_count
_BACKWARDS: Any = sdpa_backward_flop_count
UNCOUNTED: dict[Any, Callable[..., int]] = {
    torch.ops.aten.addmm_: lambda _, left, right, *__, **___: int(2 * left[0] * left[1] * right[1]),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: (
        lambda query, key, value, *_, **__: int(_FORWARDS(query, key, value))
    ),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda gradient, query, key, value, *_, **__: int(_BACKWARDS(gradient, query, key, value))
    ),
}
"""Operations, from the shapes, of what torch's counter leaves out."""


def counted(action: Callable[[], Any]) -> tuple[Any, int]:
    """What an action returns, and the floating-point operations of its products of matrices and of its attention.

    A multiplication and an addition are two operations; backward passes count, and nothing else does. The action runs
    a little more slowly, and computes the same.
    """
    with FlopCounterMode(display=False, custom_mapping=UNCOUNTED) as counter:
        result = action()
    return result, counter.get_total_flops()


@cache
@torch.inference_mode()
def matrix_rate(device: str, kind: torch.dtype) -> float:
    """Operations a second in products of large matrices: the limit of a device, by measurement.

    Args:
        device: where.
        kind: type of the numbers.

    Returns:
        The best of some on a CPU, which may be busy with other things, and the median on a GPU.
    """
    place = torch.device(device).type
    size, rows = SIZES[place], 64
    generator = torch.Generator(device).manual_seed(0)  # the run's own random numbers go on as if nothing had been
    states, weight = (
        torch.randn(count, size, generator=generator, device=device).to(kind) for count in (ROWS[place], size)
    )

    def seconds() -> float:
        begin = time.perf_counter()
        (states[:rows] @ weight)[0, 0].item()  # waits for the device
        return time.perf_counter() - begin

    seconds()  # the first one wakes the device
    while seconds() < LONG and rows < len(states):
        rows *= 2
    taken = sorted(seconds() for _ in range(TIMES))
    return 2 * rows * size**2 / taken[0 if place == "cpu" else TIMES // 2]
