"""How many operations a step takes, and how many the device could do in that time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count, shape_wrapper

T = TypeVar("T")

SIZES = {"cpu": 1024, "cuda": 8192}
"""Rows and columns of the weight in the product that is timed."""
ROWS = {"cpu": 4096, "cuda": 8192}
"""Rows of states in it, at most."""
LONG = 0.02
"""Seconds of a product that can be timed well; a slow device takes as long for fewer rows."""
TIMES = 5
"""Products that are timed, each by itself."""

_forwards: Any = sdpa_flop_count
_backwards: Any = sdpa_backward_flop_count
_wrapped: Any = shape_wrapper
FORMULAS: dict[Any, Callable[..., int]] = {
    **flop_registry,
    # What torch's own list leaves out, from the shapes.
    torch.ops.aten.addmm_: _wrapped(lambda _, left, right, *__, **___: 2 * left[0] * left[1] * right[1]),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _wrapped(
        lambda query, key, value, *_, **__: _forwards(query, key, value)
    ),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _wrapped(
        lambda gradient, query, key, value, *_, **__: _backwards(gradient, query, key, value)
    ),
}
"""Operations of products of matrices, convolutions and attention."""


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Adds up the operations of what is called below gradients, their own calls included."""

    total = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        result = function(*args, **named)
        if formula := FORMULAS.get(getattr(function, "overloadpacket", None)):
            with suppress(Exception):  # shapes that a formula does not know: a figure is not worth a run
                self.total += int(formula(*args, **named, out_val=result))
        return result


def counted(action: Callable[[], T]) -> tuple[T, int]:
    """What an action returns, and the floating-point operations of its products of matrices and of its attention.

    A multiplication and an addition are two operations; backward passes count, and nothing else does. The action runs
    a little more slowly, and computes the same. In `torch.inference_mode`, in which layers are not taken apart, and in
    compiled code there is nothing to count.
    """
    with _Counter() as counter:  # type: ignore[no-untyped-call]  # likewise
        result = action()
    return result, counter.total


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
    best = taken[0 if place == "cpu" else TIMES // 2]
    return 2 * rows * size**2 / max(best, 1e-9)  # a clock may stand still for so long
