"""Groups of sentences of similar length in a packed row: attention pads each of them to a block of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Slots:
    """Where rows lie in a padded block: the row of each slot, the slot of each row, and the slots that hold none."""

    pad: Tensor
    unpad: Tensor
    empty: Tensor


@dataclass(frozen=True)
class Group:
    """Sentences of similar length, which lie one behind the other in the packed row.

    `slots` says where their tokens lie in a (sentences, length) block, `mask` which of it is no padding; both are None
    when all sentences have the same length, so that the block is a plain view.
    """

    start: int
    tokens: int
    sentences: int
    length: int
    slots: Slots | None
    mask: Tensor | None
    _of_heads: dict[int, Slots] = field(default_factory=dict, init=False, repr=False, compare=False)

    def of_heads(self, heads: int) -> Slots:
        """The same for rows of one head of one token, and a (sentences, heads, length) block; on a CPU."""
        if heads not in self._of_heads:
            every, head = torch.arange(self.tokens), torch.arange(heads)
            slots = self.slots or Slots(every, every, every[:0])

            def spread(places: Tensor) -> Tensor:
                sentence, place = places // self.length, places % self.length
                return (sentence[:, None] * heads + head).mul_(self.length).add_(place[:, None]).flatten()

            rows = slots.pad.view(-1, 1, self.length) * heads + head[:, None]
            self._of_heads[heads] = Slots(rows.flatten(), spread(slots.unpad), spread(slots.empty))
        return self._of_heads[heads]
