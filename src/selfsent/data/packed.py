"""Packed batches: the tokens of many sentences in one flat row.

A batch of sentences of different lengths is usually padded to a (batch, length) block, and on real text most of that
block is padding. Here the tokens are concatenated instead, sorted by sentence length, so linear layers, norms and
embeddings see real tokens only. Attention must not cross the borders of sentences: on a GPU the kernel gets them;
elsewhere it runs on groups of sentences of similar length, or of a few of any.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from selfsent.data.ragged import ranges
from selfsent.data.targets import IGNORED

_ODD = np.uint64(0x9E3779B97F4A7C15)
_WASTE = 4096
"""Padding scores per head that attention may compute to save a group; a further group costs about as much."""

# torch keeps the code of the last 1,024 shapes of products in bfloat16, of each thread: up to 1 MB each, which is more
# than a small encoder takes to train. Since rows are padded to few lengths, a quarter of them serves a run.
for _name in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
    os.environ.setdefault(_name, "256")


class Slots(NamedTuple):
    """Layout of rows in a padded block: the row of each slot, the slot of each row, and the empty slots."""

    pad: Tensor
    unpad: Tensor
    empty: Tensor


@dataclass(frozen=True)
class Group:
    """Consecutive sentences of similar length in the packed row.

    `slots` is the layout of their tokens in a (sentences, length) block, `mask` is true where it has tokens. Both are
    None when all sentences have the same length and the block is a plain view.
    """

    start: int
    tokens: int
    sentences: int
    length: int
    slots: Slots | None
    mask: Tensor | None
    _of_heads: dict[int, Slots] = field(default_factory=dict, init=False, repr=False, compare=False)

    def of_heads(self, heads: int) -> Slots:
        """Slots for rows of one head of one token, and a (sentences, heads, length) block; on a CPU."""
        if heads not in self._of_heads:
            every, head = torch.arange(self.tokens), torch.arange(heads)
            slots = self.slots or Slots(every, every, every[:0])

            def spread(positions: Tensor) -> Tensor:
                sentence, position = positions // self.length, positions % self.length
                return (sentence[:, None] * heads + head).mul_(self.length).add_(position[:, None]).flatten()

            rows = slots.pad.view(-1, 1, self.length) * heads + head[:, None]
            self._of_heads[heads] = Slots(rows.flatten(), spread(slots.unpad), spread(slots.empty))
        return self._of_heads[heads]


@dataclass(eq=False)
class Packed:
    """The token ids of a batch of sentences, special tokens included, packed into one row.

    Inside, sentences are kept in order of falling length; everything that leaves by sentence (`mean`, `first`) is in
    the order given.
    """

    given_ids: np.ndarray
    """(tokens,) token ids, sentence after sentence."""
    given_lengths: np.ndarray
    """(sentences,) tokens of each sentence, in the same order; none is zero."""
    given_targets: np.ndarray | None = None
    """(tokens,) token to predict at each position, or `IGNORED`; or None."""
    device: torch.device | str = "cpu"
    """Device of the tensors."""
    vectors: Tensor | None = None
    """(sentences, d) vectors of a frozen encoder, if they are known already."""
    given_types: np.ndarray | None = None
    """(tokens,) token types, 0 in the first and 1 in the second of two texts joined as one input; or None."""
    given_documents: np.ndarray | None = None
    """(sentences,) number of the document of each sentence; or None."""
    given_left_out: np.ndarray | None = None
    """(sentences,) leading tokens of a prompt, which the pooling leaves out; or None."""
    given_texts: np.ndarray | None = None
    """(sentences,) what `texts` are without a prompt; None where there is none."""
    saw_window: bool = field(default=False, init=False)
    """Whether an attention layer has shown it a window, so that one is not in a mask alone."""

    def __post_init__(self) -> None:
        self.given_lengths = np.asarray(self.given_lengths, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.given_lengths)

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.given_ids)

    def to(self, device: torch.device | str) -> Packed:
        """The same batch for another device."""
        return replace(self, device=device, vectors=None if self.vectors is None else self.vectors.to(device))

    # Everything below is computed on first use: a table of token vectors needs little of it.

    @cached_property
    def order(self) -> np.ndarray:
        """(sentences,) numbers of the sentences in packed order."""
        return np.asarray(np.argsort(-self.given_lengths, kind="stable"))

    @cached_property
    def _given_starts(self) -> np.ndarray:
        return np.asarray(np.cumsum(self.given_lengths) - self.given_lengths)

    @cached_property
    def _sorted_lengths(self) -> np.ndarray:
        return np.asarray(self.given_lengths[self.order])

    @cached_property
    def _sorted_starts(self) -> np.ndarray:
        return np.asarray(np.cumsum(self._sorted_lengths) - self._sorted_lengths)

    @cached_property
    def _source(self) -> np.ndarray:
        return ranges(self._given_starts[self.order], self._sorted_lengths)

    def _tensor(self, array: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        # A copy from pageable memory would block.
        pinned = tensor.pin_memory() if torch.device(self.device).type == "cuda" else tensor
        return pinned.to(self.device, non_blocking=True)

    @cached_property
    def ids(self) -> Tensor:
        """(tokens,) token ids in packed order."""
        return self._tensor(self.given_ids[self._source].astype(np.int64))

    @cached_property
    def flat_ids(self) -> Tensor:
        """(tokens,) token ids, sentence after sentence in the order given."""
        return self._tensor(self.given_ids.astype(np.int64, copy=False))

    @cached_property
    def starts(self) -> Tensor:
        """(sentences,) where each sentence begins in `flat_ids`."""
        return self._tensor(self._given_starts)

    @cached_property
    def targets(self) -> Tensor:
        """(tokens,) token to predict at each position, or `IGNORED`."""
        if self.given_targets is None:
            return torch.full_like(self.ids, IGNORED)
        return self._tensor(self.given_targets[self._source].astype(np.int64))

    @cached_property
    def types(self) -> Tensor | None:
        """(tokens,) token types in packed order, where there are any."""
        return None if self.given_types is None else self._tensor(self.given_types[self._source].astype(np.int64))

    @cached_property
    def documents(self) -> Tensor | None:
        """(sentences,) number of the document that each sentence is from, in the order given, where that is known."""
        return None if self.given_documents is None else self._tensor(self.given_documents.astype(np.int64))

    @cached_property
    def texts(self) -> Tensor:
        """(sentences,) a 64-bit number for each sentence, in the order given: equal for sentences of equal tokens."""
        if self.given_texts is not None:
            return self._tensor(self.given_texts)
        within = ranges(np.zeros_like(self.given_lengths), self.given_lengths)
        # A sum of products, one factor of which is drawn for the position, wraps around on purpose.
        terms = (self.given_ids.astype(np.uint64) + _ODD) * _factors(self.longest)[within]
        # Of sentences without tokens, which start where the next one does or after all others, the sum is 0.
        sums = np.where(self.given_lengths > 0, np.add.reduceat(np.append(terms, np.uint64(0)), self._given_starts), 0)
        return self._tensor(sums.view(np.int64))

    @cached_property
    def positions(self) -> Tensor:
        """(tokens,) position of each token in its sentence, from 0."""
        return self._tensor(ranges(np.zeros_like(self._sorted_lengths), self._sorted_lengths))

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
    def cu_seqlens(self) -> Tensor:
        """(sentences + 1,) int32: where each sentence begins in the packed row, and where the last one ends."""
        return self._tensor(np.append(self._sorted_starts, self.tokens).astype(np.int32))

    @property
    def longest(self) -> int:
        """Tokens of the longest sentence."""
        return int(self._sorted_lengths[0])

    @cached_property
    def groups(self) -> list[Group]:
        """Groups for whole layers: neighbours in the packed row with lengths within an eighth of the longest."""
        return self._grouped(0)

    @cached_property
    def attention_groups(self) -> list[Group]:
        """Groups for attention alone, where a few slots of padding cost less than another group."""
        return self._grouped(_WASTE)

    def _grouped(self, waste: int) -> list[Group]:
        groups, begin = [], 0
        lengths = self._sorted_lengths
        while begin < len(lengths):
            longest = int(lengths[begin])
            alike = int(np.searchsorted(-lengths, -(longest - longest // 8 - 1), side="left"))
            wasted = np.cumsum(longest**2 - lengths[begin:] ** 2)
            end = max(alike, begin + int(np.searchsorted(wasted, waste, side="right")))
            groups.append(self._group(begin, end, longest))
            begin = end
        return groups

    def _group(self, begin: int, end: int, longest: int) -> Group:
        start, lengths = int(self._sorted_starts[begin]), self._sorted_lengths[begin:end]
        tokens = int(lengths.sum())
        if lengths[-1] == longest:
            return Group(start, tokens, end - begin, longest, None, None)
        mask = np.arange(longest) < lengths[:, None]
        unpad = np.flatnonzero(mask)
        pad = np.zeros(mask.size, dtype=np.int64)
        pad[unpad] = np.arange(tokens)
        slots = Slots(self._tensor(pad), self._tensor(unpad), self._tensor(np.flatnonzero(~mask)))
        return Group(start, tokens, end - begin, longest, slots, self._tensor(mask[:, None, None]))

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
        chosen = np.array(sentences, np.int64)
        index = ranges(self._given_starts[chosen], self.given_lengths[chosen])
        targets, types = (None if x is None else x[index] for x in (self.given_targets, self.given_types))
        left_out = None if self.given_left_out is None else self.given_left_out[chosen]
        ids, lengths = self.given_ids[index], self.given_lengths[chosen]
        return Packed(ids, lengths, targets, self.device, given_types=types, given_left_out=left_out)

    def without_prompts(self, states: Tensor) -> tuple[Tensor, Packed]:
        """The (tokens, d) states and the batch without `given_left_out`; of each sentence a token stays at least."""
        if self.given_left_out is None:
            return states, self
        left_out = np.minimum(self.given_left_out, self.given_lengths - 1)
        within = ranges(np.zeros_like(left_out), self.given_lengths)
        kept = np.flatnonzero(within >= np.repeat(left_out, self.given_lengths))
        left = Packed(self.given_ids[kept], self.given_lengths - left_out, device=self.device)
        return states[self._tensor(np.argsort(self._source)[kept[left._source]])], left

    def without_last(self) -> Packed:
        """Every sentence less its last token; each position's target is the next token: teacher forcing."""
        keep = np.ones(len(self.given_ids), dtype=bool)
        keep[self._given_starts + self.given_lengths - 1] = False
        following = np.roll(self.given_ids, -1)
        return Packed(self.given_ids[keep], self.given_lengths - 1, following[keep], self.device)

    def shift_right(self, start: int) -> Packed:
        """Every sentence with a start token before it, so that its first token is a target too."""
        shifted = np.roll(self.given_ids, 1)
        shifted[self._given_starts] = start
        return Packed(shifted, self.given_lengths, self.given_ids, self.device)


@lru_cache(maxsize=8)
def _factors(count: int) -> np.ndarray:
    """(count,) fixed random numbers; fewer of them are a prefix of more."""
    return np.random.default_rng(0).integers(2**64, size=count, dtype=np.uint64)


def concatenate(batches: Sequence[Packed]) -> Packed:
    """Several packed batches as one, for one forward pass; sentences keep their order."""
    if len(batches) == 1:
        return batches[0]
    given: dict[str, Any] = {}
    for name in ("given_ids", "given_lengths", "given_targets", "given_types", "given_left_out"):
        parts = [getattr(batch, name) for batch in batches]
        given[name] = None if any(part is None for part in parts) else np.concatenate(parts)
    return Packed(device=batches[0].device, **given)
