"""Device and number format for inference and training."""

from __future__ import annotations

import time
from functools import cache

import torch

from selfsent.foreign.torch import processor_multiplies_bfloat16, processor_multiplies_bytes
from selfsent.models.bfloat16 import into_bfloat16
from selfsent.models.encoder import Encoder
from selfsent.models.int8 import into_int8
from selfsent.settings import Precision

_GAIN = 1.2
"""Minimum speed-up of products by bfloat16 that pays for converting weights and states."""
_TIMES = 5


def computes_bfloat16(device: torch.device | str) -> bool:
    """Whether products of matrices are faster in bfloat16 than in float32.

    A CPU needs instructions for it, and not every CPU that has them is fast at them: with the same AVX-512 BF16, one
    kind of processor takes half as long as for float32 and another twice as long. So they are timed, once a process.
    """
    kind = torch.device(device).type
    if kind == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if kind == "cpu":
        return processor_multiplies_bfloat16() and gain_of_bfloat16() >= _GAIN
    return False


@cache
def gain_of_bfloat16() -> float:
    """Speed-up of matrix products of a small encoder's shape by bfloat16 over float32 on this CPU.

    The best CPU time of several runs, so that other processes hardly matter.
    """
    generator = torch.Generator().manual_seed(0)  # the run's own random numbers go on as if nothing had been
    states, weight = (torch.randn(rows, 384, generator=generator) for rows in (1024, 1536))

    @torch.inference_mode()
    def seconds(kind: torch.dtype) -> float:
        left, right = states.to(kind), weight.to(kind)
        taken = []
        for _ in range(_TIMES + 1):  # the first one makes the code
            begin = time.process_time()
            torch.nn.functional.linear(left, right)
            taken.append(time.process_time() - begin)
        return max(min(taken), 1e-9)

    return seconds(torch.float32) / seconds(torch.bfloat16)


def computes_int8(device: torch.device | str) -> bool:
    """Whether the processor multiplies bytes in hardware and this torch has the layers for it: a CPU with AVX-512 VNNI.

    Without that instruction sums of products of bytes overflow.
    """
    return torch.device(device).type == "cpu" and processor_multiplies_bytes()


def quicken(model: Encoder, *, fast: bool, int8: bool) -> Encoder:
    """Switch an encoder to inference in fewer bits, as far as the processor supports it.

    A table of token vectors has no products that could be quicker.

    Args:
        model: an encoder on its final device. It is changed, and returned.
        fast: products in bfloat16 (`into_bfloat16`).
        int8: some of them in 8 bits (`into_int8`), the others in bfloat16.

    Raises:
        BaseEncoderError: 8 bits are too few for it.
    """
    if model.is_static:
        return model
    if quick_precision(model.device, fast=fast, int8=int8) == "int8":
        into_int8(model)
    return into_bfloat16(model) if quick_precision(model.device, fast=fast or int8) == "bfloat16" else model


def quick_precision(device: torch.device | str, *, fast: bool, int8: bool = False) -> str:
    """Precision after `quicken` on a device: int8, bfloat16 or float32."""
    if int8 and computes_int8(device):
        return "int8"
    return "bfloat16" if (fast or int8) and computes_bfloat16(device) else "float32"


def inference_device() -> torch.device:
    """Device for inference: the first CUDA device, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def resolve_precision(precision: Precision, device: torch.device | str) -> Precision:
    """`auto` made concrete: bfloat16 where the processor is faster at it, else float32."""
    if precision != "auto":
        return precision
    return "bfloat16" if computes_bfloat16(device) else "float32"


def autocast(device: torch.device | str, precision: Precision) -> torch.autocast:
    """Computing in a precision that `resolve_precision` gave: products in bfloat16, weights in float32; or neither."""
    return torch.autocast(torch.device(device).type, torch.bfloat16, enabled=precision == "bfloat16")
