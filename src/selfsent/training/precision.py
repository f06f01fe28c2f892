"""Which number format the arithmetic runs in."""

from __future__ import annotations

import torch

from selfsent.settings import Precision


def computes_bfloat16(device: torch.device | str) -> bool:
    """Whether the processor multiplies bfloat16 matrices in hardware; otherwise that is far slower than float32."""
    kind = torch.device(device).type
    if kind == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if kind == "cpu":
        capable = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
        tiles = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
        return bool(capable()) or bool(tiles())
    return False


def inference_device() -> torch.device:
    """Where a model that is only run lies: on the first CUDA device, where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def resolve_precision(precision: Precision, device: torch.device | str) -> Precision:
    """`auto` made concrete: bfloat16 where the processor computes it, else float32."""
    if precision != "auto":
        return precision
    return "bfloat16" if computes_bfloat16(device) else "float32"


def autocast(device: torch.device | str, precision: Precision) -> torch.autocast:
    """Computing in a precision that `resolve_precision` gave: products in bfloat16, weights in float32; or neither."""
    return torch.autocast(torch.device(device).type, torch.bfloat16, enabled=precision == "bfloat16")
