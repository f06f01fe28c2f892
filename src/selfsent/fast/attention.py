"""Attention that stays within each sentence of a packed batch, as transformers models call it."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.data.packed import Group, Packed, Slots
from selfsent.fast.gradients import apply
from selfsent.foreign.torch import flash_attention, has_flash_attention


class _Pad(torch.autograd.Function):
    """(rows, d) to (slots, d). Empty slots repeat a row: they are masked, so no gradient comes back from them."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, slots: Slots) -> Tensor:
        ctx.slots = slots
        return states.index_select(0, slots.pad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0].index_select(0, ctx.slots.unpad), None


class _Unpad(torch.autograd.Function):
    """(slots, d) to (rows, d)."""

    @staticmethod
    def forward(ctx: Any, block: Tensor, slots: Slots) -> Tensor:
        ctx.slots = slots
        return block.index_select(0, slots.unpad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        # To gather is faster than to put in place, though the empty slots have to be cleared behind it.
        return grads[0].index_select(0, ctx.slots.pad).index_fill_(0, ctx.slots.empty, 0), None


SHORT = {False: 256, True: 128}
"""By whether gradients are wanted: tokens of a sentence up to which, in bfloat16 on a CPU, products of matrices are
faster than torch's fused kernel."""

LARGE = 16
"""Scores beyond which bfloat16 is not exact enough: from here on neighbours lie an eighth apart."""

LARGEST_HEAD = 192
"""Size of a head up to which the kernel for packed rows has a backward pass on every GPU that has it."""


def _attend_in_steps(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool, scale: float | None
) -> Tensor:
    """Attention step by step on a CPU: with dropout, for which torch has no fused kernel, and where it is faster.

    In training in float32 or better, as torch does; the result has the type that torch's would have. Otherwise in
    bfloat16, unless that would round large scores by too much.
    """
    device = query.device.type
    wanted = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else query.dtype
    if causal:
        mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    with torch.autocast(device, enabled=False):
        if dropout or torch.is_grad_enabled():
            query, key, value = (x if x.dtype == torch.float64 else x.float() for x in (query, key, value))
        else:
            query, key = query.to(value.dtype), key.to(value.dtype)
        scores = (query * scale) @ key.transpose(-1, -2)
        if scores.dtype == torch.bfloat16 and max(map(abs, torch.aminmax(scores))) > LARGE:
            scores = (query.float() * scale) @ key.float().transpose(-1, -2)
        if mask is not None:
            # No infinity: a padded place may see nothing at all, and what comes of it must be a number.
            scores = scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
        shares = F.dropout(scores.softmax(-1), dropout).to(value.dtype)
        return (shares @ value).to(wanted)


def _attend(
    group: Group,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: bool,
    window: int | None,
    dropout: float,
    scale: float | None,
) -> Tensor:
    """Attention within the sentences of one group: (tokens, heads, head size) in, the same out."""
    heads, size = query.shape[1:]
    mask = group.mask
    if window is not None and group.length > window + 1:
        place = torch.arange(group.length, device=query.device)
        near = (place[:, None] - place[None, :]).abs() <= window
        near = near.tril() if causal else near
        mask, causal = near if mask is None else mask & near, False
    elif causal:
        # Padding stands behind the real tokens, so a causal mask alone already hides it from them.
        mask = None
    # Rotary positions leave query and key in float32.
    short = value.dtype == torch.bfloat16 and group.length <= SHORT[torch.is_grad_enabled()]
    in_steps = query.device.type == "cpu" and (dropout or short)
    # Products of matrices want the rows of a head together; torch's fused kernel reads them where they lie.
    slots, width = (group.of_heads(heads), size) if in_steps else (group.slots, heads * size)
    if slots is not None:
        query, key, value = (apply(_Pad, states.reshape(-1, width), slots) for states in (query, key, value))
    if in_steps:
        shape = group.sentences, heads, group.length, size
        query, key, value = (states.view(shape) for states in (query, key, value))
        out = _attend_in_steps(query, key, value, mask, dropout, causal, scale)
    else:
        shape = group.sentences, group.length, heads, size
        query, key, value = (states.reshape(shape).transpose(1, 2) for states in (query, key, value))
        out = F.scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale=scale).transpose(1, 2)
    if slots is not None:
        out = apply(_Unpad, out.reshape(-1, width), slots)
    return out.reshape(group.tokens, heads, size)


@cache
def _knows_borders(device: torch.device) -> bool:
    """Whether there is a kernel on a device that reads a whole packed row: on GPUs from Ampere on."""
    return (
        device.type == "cuda"
        and torch.version.hip is None
        and torch.backends.cuda.is_flash_attention_available()
        and torch.cuda.get_device_capability(device) >= (8, 0)
        and has_flash_attention()
    )


def _attend_by_borders(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed: Packed,
    causal: bool,
    window: int | None,
    dropout: float,
    scale: float | None,
) -> Tensor:
    """Attention of the whole row in one kernel, without padding: (tokens, heads, head size) in, the same out."""
    left = -1 if window is None else window
    return flash_attention(
        query.to(value.dtype),
        key.to(value.dtype),
        value,
        packed.cu_seqlens,
        packed.cu_seqlens,
        packed.longest,
        packed.longest,
        dropout,
        causal,
        False,
        scale=scale,
        window_size_left=left,
        window_size_right=0 if causal else left,
    )


def packed_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed: Packed,
    dropout: float = 0.0,
    scaling: float | None = None,
    causal: bool = False,
    window: int | None = None,
) -> Tensor:
    """Scaled dot-product attention within each sentence of a packed batch.

    Args:
        query: (tokens, heads, head size), perhaps `filled` behind.
        key: the same shape.
        value: the same shape.
        packed: the batch the tokens belong to.
        dropout: probability that an attention weight is dropped.
        scaling: factor on the scores; 1/sqrt(head size) when None.
        causal: whether a token sees only itself and what stands before it.
        window: largest distance at which a token sees another; None for no limit.

    Returns:
        The same shape.
    """
    size = query.shape[-1]
    half = value.dtype in (torch.bfloat16, torch.float16)
    if half and size % 8 == 0 and size <= LARGEST_HEAD and _knows_borders(value.device):
        return _attend_by_borders(query, key, value, packed, causal, window, dropout, scaling)
    # A split's gradient is one concatenation; that of a slice would be a block of zeros as large as the whole.
    sizes = [group.tokens for group in packed.attention_groups]
    if fill := len(query) - packed.tokens:
        sizes.append(fill)
    pieces = [torch.split(states, sizes) for states in (query, key, value)]
    parts = [
        _attend(group, own_query, own_key, own_value, causal, window, dropout, scaling)
        for group, own_query, own_key, own_value in zip(packed.attention_groups, *pieces, strict=False)
    ]
    parts += pieces[2][len(parts) :]  # nobody looks at what comes of the zeros behind a row
    return parts[0] if len(parts) == 1 else torch.cat(parts)


ATTENTION = "selfsent"
"""The name under which the attention below is registered with transformers."""


def _attention_interface(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    packed: Packed | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """What transformers calls in every attention layer: packed attention in a packed batch, torch's own otherwise.

    `query` is (1, heads, tokens, head size) for a packed batch; the result is (1, tokens, heads, head size).
    """
    if packed is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)  # type: ignore[no-any-return]  # untyped
    repeats = query.shape[1] // key.shape[1]
    if repeats > 1:
        key, value = key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)
    causal = kwargs.get("is_causal")
    window = kwargs.get("sliding_window")
    packed.saw_window |= window is not None
    out = packed_attention(
        query.transpose(1, 2)[0],
        key.transpose(1, 2)[0],
        value.transpose(1, 2)[0],
        packed,
        dropout=kwargs.get("dropout", 0.0),
        scaling=kwargs.get("scaling"),
        causal=bool(getattr(module, "is_causal", False) if causal is None else causal),
        window=None if window is None else int(window) - 1,
    )
    return out[None], None


def _mask_interface(*args: Any, **kwargs: Any) -> Tensor | None:
    """The mask for the attention above: none for a packed batch, which has no padding; torch's own otherwise."""
    if kwargs.get("attention_mask") is None:
        return None
    from transformers.masking_utils import sdpa_mask

    return sdpa_mask(*args, **kwargs)  # type: ignore[no-any-return]  # untyped


def register() -> None:
    """Make the attention known to transformers; doing it twice does no harm."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(ATTENTION, _attention_interface)
    AttentionMaskInterface.register(ATTENTION, _mask_interface)
