"""Packed batches: the tokens of many sentences in one flat row, and attention that stays within each sentence.

A batch of sentences of different lengths is usually padded to a (batch, length) block, and on real text most of that
block is padding. Here the tokens lie one behind the other instead, sorted by sentence length, so linear layers,
norms and embeddings see real tokens only. Attention, which must not cross a sentence's border, runs on small groups
of sentences of similar length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

IGNORED = -1
"""The target of a position that is not to be predicted."""


@dataclass(frozen=True)
class Group:
    """Sentences of similar length, which lie one behind the other in the packed row.

    `pad` is the position in the packed row for each slot of the (sentences, length) block, `unpad` the slot of each
    token; both are None when all sentences have the same length, so that the block is a plain view.
    """

    start: int
    tokens: int
    sentences: int
    length: int
    pad: Tensor | None
    unpad: Tensor | None
    mask: Tensor | None


class Packed:
    """The token ids of a batch of sentences, special tokens included, packed into one row.

    Args:
        ids: (tokens,) token ids, sentence after sentence.
        lengths: (sentences,) tokens of each sentence, in the same order; none is zero.
        targets: (tokens,) what to predict at each position, `IGNORED` where nothing; or None.
        device: where the tensors are wanted.
        vectors: (sentences, d) what a frozen encoder made of the sentences, when that is known already.

    Inside, sentences are kept in order of falling length; everything that leaves by sentence (`pool`, `first`) is in
    the order given.
    """

    def __init__(
        self,
        ids: np.ndarray,
        lengths: np.ndarray,
        targets: np.ndarray | None = None,
        device: torch.device | str = "cpu",
        vectors: Tensor | None = None,
    ) -> None:
        self.given_ids, self.given_targets, self.vectors = ids, targets, vectors
        self.given_lengths = np.asarray(lengths, dtype=np.int64)
        self.device = torch.device(device)
        self.order = np.argsort(-self.given_lengths, kind="stable")
        self._sorted_lengths = self.given_lengths[self.order]
        starts = np.concatenate(([0], np.cumsum(self.given_lengths)))[:-1]
        self._sorted_starts = np.concatenate(([0], np.cumsum(self._sorted_lengths)))[:-1]
        self._within = np.arange(len(ids)) - np.repeat(self._sorted_starts, self._sorted_lengths)
        self._source = np.repeat(starts[self.order], self._sorted_lengths) + self._within

    def __len__(self) -> int:
        return len(self.given_lengths)

    @property
    def tokens(self) -> int:
        """How many tokens the batch holds."""
        return len(self._source)

    def to(self, device: torch.device | str) -> Packed:
        """The same batch for another device."""
        vectors = None if self.vectors is None else self.vectors.to(device)
        return Packed(self.given_ids, self.given_lengths, self.given_targets, device, vectors)

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device, non_blocking=True)

    @cached_property
    def ids(self) -> Tensor:
        """(tokens,) token ids in packed order."""
        return self._tensor(self.given_ids[self._source].astype(np.int64))

    @cached_property
    def targets(self) -> Tensor:
        """(tokens,) what to predict at each position, `IGNORED` where nothing."""
        if self.given_targets is None:
            return torch.full_like(self.ids, IGNORED)
        return self._tensor(self.given_targets[self._source].astype(np.int64))

    @cached_property
    def positions(self) -> Tensor:
        """(tokens,) place of each token in its sentence, from 0."""
        return self._tensor(self._within)

    @cached_property
    def lengths(self) -> Tensor:
        """(sentences,) tokens of each sentence, in the order given."""
        return self._tensor(self.given_lengths)

    @cached_property
    def sentence(self) -> Tensor:
        """(tokens,) number of the sentence, in the order given, that each token belongs to."""
        return self._tensor(np.repeat(self.order, self._sorted_lengths))

    @cached_property
    def first(self) -> Tensor:
        """(sentences,) packed position of each sentence's first token."""
        where = np.empty_like(self._sorted_starts)
        where[self.order] = self._sorted_starts
        return self._tensor(where)

    @cached_property
    def last(self) -> Tensor:
        """(sentences,) packed position of each sentence's last token."""
        return self.first + self.lengths - 1

    @cached_property
    def groups(self) -> list[Group]:
        """Neighbours in the packed row whose lengths are within a quarter of the longest of them."""
        groups, begin = [], 0
        lengths = self._sorted_lengths
        while begin < len(lengths):
            longest = int(lengths[begin])
            end = int(np.searchsorted(-lengths, -(longest - longest // 4 - 1), side="left"))
            groups.append(self._group(begin, end, longest))
            begin = end
        return groups

    def _group(self, begin: int, end: int, longest: int) -> Group:
        start, lengths = int(self._sorted_starts[begin]), self._sorted_lengths[begin:end]
        tokens = int(lengths.sum())
        if lengths[-1] == longest:
            return Group(start, tokens, end - begin, longest, None, None, None)
        mask = np.arange(longest) < lengths[:, None]
        unpad = np.flatnonzero(mask)
        pad = np.zeros(mask.size, dtype=np.int64)
        pad[unpad] = np.arange(tokens)
        return Group(
            start,
            tokens,
            end - begin,
            longest,
            self._tensor(pad),
            self._tensor(unpad),
            self._tensor(mask[:, None, None]),
        )

    @property
    def slots(self) -> int:
        """Token slots that attention computes, padding included."""
        return sum(group.sentences * group.length for group in self.groups)

    def mean(self, states: Tensor) -> Tensor:
        """Mean of each sentence's (tokens, d) states, in float32, as (sentences, d)."""
        total = states.new_zeros(len(self), states.shape[-1], dtype=torch.float32)
        total.index_add_(0, self.sentence, states.float())
        return total / self.lengths[:, None]

    def max(self, states: Tensor) -> Tensor:
        """Maximum over each sentence's (tokens, d) states, as (sentences, d)."""
        index = self.sentence[:, None].expand_as(states)
        floor = states.new_full((len(self), states.shape[-1]), -torch.inf)
        return floor.scatter_reduce(0, index, states, "amax")

    def take(self, sentences: Sequence[int]) -> Packed:
        """The sentences of these numbers, in this order."""
        ends = np.cumsum(self.given_lengths)
        pieces = [slice(ends[number] - self.given_lengths[number], ends[number]) for number in sentences]
        targets = self.given_targets
        return Packed(
            np.concatenate([self.given_ids[piece] for piece in pieces]),
            self.given_lengths[list(sentences)],
            None if targets is None else np.concatenate([targets[piece] for piece in pieces]),
            self.device,
        )

    def without_last(self) -> Packed:
        """Every sentence less its last token; each position's target is the token behind it: teacher forcing."""
        last = np.cumsum(self.given_lengths) - 1
        keep = np.ones(len(self.given_ids), dtype=bool)
        keep[last] = False
        following = np.roll(self.given_ids, -1)
        return Packed(self.given_ids[keep], self.given_lengths - 1, following[keep], self.device)


def concatenate(batches: Sequence[Packed]) -> Packed:
    """Several packed batches as one, for one forward pass; sentences keep their order."""
    if len(batches) == 1:
        return batches[0]
    targets = [batch.given_targets for batch in batches]
    return Packed(
        np.concatenate([batch.given_ids for batch in batches]),
        np.concatenate([batch.given_lengths for batch in batches]),
        None if any(t is None for t in targets) else np.concatenate([t for t in targets if t is not None]),
        batches[0].device,
    )


def apply(function: type[torch.autograd.Function], *inputs: Any) -> Tensor:
    """Call an autograd function that returns one tensor; torch leaves it without types."""
    output: Tensor = function.apply(*inputs)  # type: ignore[no-untyped-call]  # torch's own
    return output


class _Pad(torch.autograd.Function):
    """(tokens, d) to (slots, d). Empty slots repeat a token: they are masked, so no gradient comes back from them."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, pad: Tensor, unpad: Tensor) -> Tensor:
        ctx.unpad = unpad
        return states.index_select(0, pad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return grads[0].index_select(0, ctx.unpad), None, None


class _Unpad(torch.autograd.Function):
    """(slots, d) to (tokens, d)."""

    @staticmethod
    def forward(ctx: Any, block: Tensor, unpad: Tensor) -> Tensor:
        ctx.unpad, ctx.slots = unpad, len(block)
        return block.index_select(0, unpad)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        block = grads[0].new_zeros(ctx.slots, grads[0].shape[-1])
        return block.index_copy_(0, ctx.unpad, grads[0]), None


def _attend(
    group: Group, query: Tensor, key: Tensor, value: Tensor, causal: bool, window: int | None, **options: Any
) -> Tensor:
    """Attention within the sentences of one group: (tokens, heads, head size) in, the same out."""
    heads, size = query.shape[1:]

    def block(states: Tensor) -> Tensor:
        if group.pad is not None:
            states = apply(_Pad, states.reshape(group.tokens, heads * size), group.pad, group.unpad)
        return states.reshape(group.sentences, group.length, heads, size).transpose(1, 2)

    mask = group.mask
    if window is not None and group.length > window + 1:
        place = torch.arange(group.length, device=query.device)
        near = (place[:, None] - place[None, :]).abs() <= window
        near = near.tril() if causal else near
        mask, causal = near if mask is None else mask & near, False
    elif causal:
        # Padding stands behind the real tokens, so a causal mask alone already hides it from them.
        mask = None
    out = F.scaled_dot_product_attention(block(query), block(key), block(value), mask, is_causal=causal, **options)
    out = out.transpose(1, 2)
    if group.unpad is None:
        return out.reshape(group.tokens, heads, size)
    return apply(_Unpad, out.reshape(-1, heads * size), group.unpad).view(group.tokens, heads, size)


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
        query: (tokens, heads, head size).
        key: the same shape.
        value: the same shape.
        packed: the batch the tokens belong to.
        dropout: probability that an attention weight is dropped.
        scaling: factor on the scores; 1/sqrt(head size) when None.
        causal: whether a token sees only itself and what stands before it.
        window: largest distance at which a token sees another; None for no limit.

    Returns:
        (tokens, heads, head size).
    """
    parts = []
    for group in packed.groups:
        own = [states.narrow(0, group.start, group.tokens) for states in (query, key, value)]
        parts.append(_attend(group, own[0], own[1], own[2], causal, window, dropout_p=dropout, scale=scaling))
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
