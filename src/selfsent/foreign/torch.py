"""What of torch is not part of its API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor

from selfsent.foreign.said import found, say


@cache
def _processor_has(name: str) -> bool:
    """What `torch.cpu` says of the processor; no, where it does not say it any more."""
    tells: Callable[[], object] | None = found("torch", torch, f"cpu.{name}", "the processor is taken not to have it")
    return tells is not None and bool(tells())


def processor_multiplies_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16 in hardware: AVX-512 BF16 or AMX."""
    return _processor_has("_is_avx512_bf16_supported") or _processor_has("_is_amx_tile_supported")


def processor_multiplies_bytes() -> bool:
    """Whether the CPU multiplies bytes in hardware, with AVX-512 VNNI, and torch has layers that do."""
    if not _processor_has("_is_vnni_supported"):
        return False
    names = ("ops.onednn.qlinear_prepack", "ops.onednn.qlinear_pointwise")
    return all(found("torch", torch, name, "no 8-bit layers, --int8 computes in bfloat16") for name in names)


@cache
def lays_out_bfloat16() -> bool:
    """Whether torch and the processor have what keeps a bfloat16 weight as oneDNN reads it."""
    names = ("_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_bf16_supported")
    instead = "--fast reorders weights for every batch, and is slower"
    if not all(found("torch", torch, f"ops.mkldnn.{name}", instead) for name in names):
        return False
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def laid_out(weight: Tensor, rows: int) -> Tensor:
    """A bfloat16 weight, (out, in), as oneDNN reads it, for inputs of about so many rows."""
    return cast(Tensor, torch.ops.mkldnn._reorder_linear_weight(weight, rows))


def linear_laid_out(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """States weightᵀ + bias, for a weight from `laid_out`."""
    return cast(Tensor, torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], ""))


def flash_attention(*args: Any, **kwargs: Any) -> Tensor:
    """Attention over a packed row in one kernel, dropout included, which `torch.nn.attention.varlen` leaves out."""
    return cast(Tensor, torch.ops.aten._flash_attention_forward(*args, **kwargs)[0])


def has_flash_attention() -> bool:
    """Whether there is `flash_attention`."""
    instead = "attention is computed in padded groups"
    return found("torch", torch, "ops.aten._flash_attention_forward", instead) is not None


def scale_all(tensors: Iterable[Tensor], factor: float) -> None:
    """Multiply tensors in place, in one call."""
    torch._foreach_mul_(list(tensors), factor)


def move_all(slow: Iterable[Tensor], fast: Iterable[Tensor], share: float) -> None:
    """Slow ← slow + share (fast − slow), in one call."""
    torch._foreach_lerp_(list(slow), list(fast), share)


def scale_on_the_way(optimizer: torch.optim.Optimizer, gradients: list[Tensor], factor: float) -> None:
    """Let a fused optimiser's next step take `factor` times its gradients; or multiply them where it would not."""
    device = gradients[0].device
    kind: Any = type(optimizer)
    if _divides_by_grad_scale(kind, device.type):
        optimizer.grad_scale = torch.tensor(1 / factor, device=device)  # type: ignore[attr-defined]
    else:
        scale_all(gradients, factor)


@cache
def _divides_by_grad_scale(kind: Callable[..., torch.optim.Optimizer], device: str) -> bool:
    """Whether a fused optimiser divides by its `grad_scale`, tried on one weight."""

    def moved(gradient: float, scale: float | None) -> float:
        weight = torch.ones(1, device=device, requires_grad=True)
        weight.grad = torch.full_like(weight, gradient)
        # Adam's step hardly depends on the size of a gradient, unless it is as small as epsilon.
        optimizer = kind([weight], lr=1.0, fused=True, eps=1.0)
        if scale is not None:
            optimizer.grad_scale = torch.tensor(scale, device=device)  # type: ignore[attr-defined]
        optimizer.step()
        return float(weight.detach())

    if abs(moved(0.5, None) - moved(2.0, 4.0)) < 1e-6:
        return True
    say(
        "torch",
        f"division by grad_scale in a fused {getattr(kind, '__name__', kind)}",
        "gradients are scaled before the step",
    )
    return False
