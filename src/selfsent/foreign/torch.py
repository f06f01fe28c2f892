"""Private names of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from inspect import unwrap
from typing import Any, cast

import torch
from torch import Tensor

from selfsent.foreign.compat import lookup


@cache
def _processor_has(name: str) -> bool:
    """Whether the processor has a feature, by `torch.cpu`; False where torch lacks the test."""
    test: Any = lookup("torch", torch, f"cpu.{name}", "the processor is taken not to have it")
    return test is not None and bool(test())


def processor_multiplies_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16 in hardware: AVX-512 BF16 or AMX."""
    return _processor_has("_is_avx512_bf16_supported") or _processor_has("_is_amx_tile_supported")


def processor_multiplies_bytes() -> bool:
    """Whether the CPU multiplies bytes in hardware, with AVX-512 VNNI, and torch has layers that do."""
    if not _processor_has("_is_vnni_supported"):
        return False
    names = ("ops.onednn.qlinear_prepack", "ops.onednn.qlinear_pointwise")
    return all(lookup("torch", torch, name, "8 bits are computed in bfloat16") for name in names)


@cache
def lays_out_bfloat16() -> bool:
    """Whether torch and the processor can keep a bfloat16 weight in oneDNN's layout."""
    names = ("_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_bf16_supported")
    instead = "weights are reordered for every batch, which is slower"
    if not all(lookup("torch", torch, f"ops.mkldnn.{name}", instead) for name in names):
        return False
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def laid_out(weight: Tensor, rows: int) -> Tensor:
    """A bfloat16 weight, (out, in), in oneDNN's layout for inputs of about `rows` rows."""
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
    return lookup("torch", torch, "ops.aten._flash_attention_forward", instead) is not None


@cache
def without_compiler(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """A class of optimisers that does the same without torch's compiler.

    Decorators of some methods keep the compiler out of them, for which they import it: it takes longer than torch
    itself, and than training a small table. Here it compiles nothing.
    """
    kept_out = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods: dict[str, Any] = {name: unwrap(getattr(kind, name)) for name in kept_out}
    methods["step"] = torch.no_grad()(unwrap(kind.step))
    return type(kind.__name__, (kind,), methods)


def scale_all(tensors: Iterable[Tensor], factor: float) -> None:
    """Multiply tensors in place, in one call."""
    torch._foreach_mul_(list(tensors), factor)


def move_all(slow: Iterable[Tensor], fast: Iterable[Tensor], share: float) -> None:
    """Slow ← slow + share (fast − slow), in one call."""
    torch._foreach_lerp_(list(slow), list(fast), share)


def scale_on_the_way(optimizer: torch.optim.Optimizer, gradients: list[Tensor], factor: float) -> None:
    """Scale gradients in a fused optimiser's next step, or now where it cannot."""
    if lookup("torch", optimizer, "_step_supports_amp_scaling", "gradients are scaled before the step"):
        scale = torch.tensor(1 / factor, device=gradients[0].device)
        optimizer.grad_scale = scale  # type: ignore[attr-defined]
    else:
        scale_all(gradients, factor)
