"""Attention that stays within each sentence of a packed batch, as transformers models call it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from selfsent.data.packed import Group, Packed, Slots
from selfsent.foreign.torch import flash_attention, has_flash_attention


class _Move(torch.autograd.Function):
    """(rows, d) to (slots, d), or back.

    Empty slots repeat a row: they are masked, so no gradient comes back from them. Gathering is faster than scattering,
    even if empty slots have to be cleared afterwards.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, slots: Slots, pads: bool) -> Tensor:
        ctx.save_for_backward(*slots)  # so that a pass that is computed again does not keep them
        ctx.pads = pads
        return states.index_select(0, slots.pad if pads else slots.unpad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        slots = Slots(*ctx.saved_tensors)
        if ctx.pads:
            return grads[0].index_select(0, slots.unpad), None, None
        return grads[0].index_select(0, slots.pad).index_fill_(0, slots.empty, 0), None, None


def _moved(states: Tensor, slots: Slots, pads: bool) -> Tensor:
    return cast(Tensor, _Move.apply(states, slots, pads))  # type: ignore[no-untyped-call]  # torch's own


SHORT = {False: 256, True: 128}
"""Tokens of a sentence up to which matrix products are faster than torch's fused kernel, in bfloat16 on a CPU; by
whether gradients are computed."""

LARGE = 16
"""Scores beyond which bfloat16 is not exact enough: its numbers are an eighth apart from here on."""

LARGEST_HEAD = 192
"""Size of a head up to which the kernel for packed rows has a backward pass on every GPU that has it."""


def _attend_in_steps(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool, scale: float | None
) -> Tensor:
    """Attention step by step on a CPU: with dropout, for which torch has no fused kernel, and where faster.

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
            # Not infinity: a padded position may see nothing at all, and its result must not be NaN.
            scores = scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
        shares = F.dropout(scores.softmax(-1), dropout).to(value.dtype)
        return (shares @ value).to(wanted)


LONG = 1024
"""Tokens from which a window, or dropout on a CPU, is computed in blocks: memory is then linear in the tokens."""
BLOCK = 128
"""Queries in a block."""


def _near(rows: Tensor, columns: Tensor, causal: bool, window: int | None) -> Tensor:
    """(rows, columns) whether a token at a position sees that at another one."""
    distance = rows[:, None] - columns[None, :]
    near = distance >= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
    return near if window is None else near & (distance.abs() <= window)


Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, bool], Tensor]
"""From query, key, value, mask, and whether a token sees no later one, to results."""


def _in_blocks(
    attend: Attend, states: Sequence[Tensor], padding: Tensor | None, causal: bool, window: int | None
) -> Tensor:
    """Attention a block of queries at a time, each with the blocks of keys that it may see.

    With gradients a block is computed again in the backward pass, so that neither scores nor masks are kept.

    Args:
        attend: the kernel.
        states: query, key and value, (sentences, heads, length, head size).
        padding: (sentences, 1, 1, length) where there are tokens, if not everywhere.
        causal: whether a token sees only itself and the tokens before it.
        window: largest distance at which a token sees another; None for no limit.
    """
    position = torch.arange(states[0].shape[-2], device=states[0].device)
    # A split's gradient is one concatenation; a slice's would be as large as the whole, for each block.
    query, key, value = (torch.split(each, BLOCK, dim=-2) for each in states)
    reach = len(query) if window is None else -(-window // BLOCK)

    def block(at: int, mine: Tensor) -> Tensor:
        seen = slice(max(0, at - reach), at + 1 if causal else at + reach + 1)
        rows, columns = position[BLOCK * at :][:BLOCK], position[BLOCK * seen.start : BLOCK * seen.stop]
        mask = _near(rows, columns, causal, window)
        if padding is not None:  # a padded position sees itself, or its result would not be a number
            mask = mask & padding[..., columns] | (rows[:, None] == columns)
        return attend(mine, torch.cat(key[seen], -2), torch.cat(value[seen], -2), mask, False)

    # For the device of a tensor that it is given, `checkpoint` keeps the state of the random numbers.
    blocks = [checkpoint(block, at, mine, use_reentrant=False) for at, mine in enumerate(query)]
    return torch.cat(blocks, dim=-2)


def _attend(
    group: Group, states: Sequence[Tensor], causal: bool, window: int | None, dropout: float, scale: float | None
) -> Tensor:
    """Attention within the sentences of one group: query, key, value (tokens, heads, head size) in, the same out."""
    heads, size = states[0].shape[1:]
    device, mask = states[0].device, group.mask
    windowed = window is not None and group.length > window + 1
    if windowed and group.length <= LONG:
        position = torch.arange(group.length, device=device)
        near = _near(position, position, causal, window)
        mask, causal = near if mask is None else mask & near, False
    elif causal:
        # Padding follows the real tokens, so a causal mask already hides it from them.
        mask = None
    # Rotary positions leave query and key in float32.
    short = states[2].dtype == torch.bfloat16 and group.length <= SHORT[torch.is_grad_enabled()]
    in_steps = device.type == "cpu" and (dropout or short)
    # Matrix products want the rows of a head together; torch's fused kernel reads them in place.
    slots, width = (group.of_heads(heads), size) if in_steps else (group.slots, heads * size)
    if slots is not None:
        states = [_moved(each.reshape(-1, width), slots, True) for each in states]
    if in_steps:
        states = [each.view(group.sentences, heads, group.length, size) for each in states]
    else:
        shape = group.sentences, group.length, heads, size
        states = [each.reshape(shape).transpose(1, 2) for each in states]
    kernel = _attend_in_steps if in_steps else F.scaled_dot_product_attention

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        return kernel(query, key, value, mask, dropout, causal, scale=scale)

    if group.length > LONG and (windowed or in_steps):
        out = _in_blocks(attend, states, group.mask, causal, window)
    else:
        out = attend(states[0], states[1], states[2], mask, causal)
    out = out if in_steps else out.transpose(1, 2)
    if slots is not None:
        out = _moved(out.reshape(-1, width), slots, False)
    return out.reshape(group.tokens, heads, size)


@cache
def knows_borders(device: torch.device) -> bool:
    """Whether there is a kernel on a device that reads a whole packed row: on GPUs from Ampere on."""
    return (
        device.type == "cuda"
        and torch.version.hip is None
        and torch.backends.cuda.is_flash_attention_available()
        and torch.cuda.get_device_capability(device) >= (8, 0)
        and has_flash_attention()
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
        query: (tokens, heads, head size), perhaps padded (`pad_rows`).
        key: the same shape.
        value: the same shape.
        packed: the batch the tokens belong to.
        dropout: probability that an attention weight is dropped.
        scaling: factor on the scores; 1/sqrt(head size) when None.
        causal: whether a token sees only itself and the tokens before it.
        window: largest distance at which a token sees another; None for no limit.

    Returns:
        The same shape.
    """
    size = query.shape[-1]
    half = value.dtype in (torch.bfloat16, torch.float16)
    if half and size % 8 == 0 and size <= LARGEST_HEAD and knows_borders(value.device):
        left = -1 if window is None else window
        borders = (packed.cu_seqlens, packed.cu_seqlens, packed.longest, packed.longest)
        states = query.to(value.dtype), key.to(value.dtype), value
        reach = {"window_size_left": left, "window_size_right": 0 if causal else left}
        return flash_attention(*states, *borders, dropout, causal, False, scale=scaling, **reach)
    # A split's gradient is one concatenation; a slice's would be a block of zeros as large as the whole.
    sizes = [group.tokens for group in packed.attention_groups]
    if spare := len(query) - packed.tokens:
        sizes.append(spare)
    split = [torch.split(states, sizes) for states in (query, key, value)]
    groups = zip(packed.attention_groups, *split, strict=False)
    parts = [_attend(group, states, causal, window, dropout, scaling) for group, *states in groups]
    parts += split[2][len(parts) :]  # results of padding are not used
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
    """The attention function registered with transformers: packed attention in a packed batch, else torch's own.

    `query` is (1, heads, tokens, head size) for a packed batch; the result is (1, tokens, heads, head size).
    """
    if packed is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)  # type: ignore[no-any-return]  # untyped
    repeats = query.shape[1] // key.shape[1]
    if repeats > 1:
        key, value = key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)
    causal, window = kwargs.get("is_causal"), kwargs.get("sliding_window")
    packed.saw_window |= window is not None
    causal = bool(getattr(module, "is_causal", False) if causal is None else causal)
    window = None if window is None else int(window) - 1  # ours leaves the token itself out
    query, key, value = (states.transpose(1, 2)[0] for states in (query, key, value))
    dropout, scaling = kwargs.get("dropout", 0.0), kwargs.get("scaling")
    out = packed_attention(query, key, value, packed, dropout, scaling, causal, window)
    return out[None], None


def _mask_interface(*args: Any, **kwargs: Any) -> Tensor | None:
    """The mask for the attention above: none for a packed batch, which has no padding; torch's own otherwise."""
    if kwargs.get("attention_mask") is None:
        return None
    from transformers.masking_utils import sdpa_mask

    return sdpa_mask(*args, **kwargs)  # type: ignore[no-any-return]  # untyped


def register() -> None:
    """Register the attention with transformers; may be called again."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(ATTENTION, _attention_interface)
    AttentionMaskInterface.register(ATTENTION, _mask_interface)
