"""Text that is never trained on: its masked-language-model loss, and what that is in bits per character."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from selfsent.data.random import make_key
from selfsent.data.views.tokens import Template
from selfsent.fast.packing import Packed
from selfsent.methods import Loss
from selfsent.pretraining.blocks import Blocks, MaskBlocks

ALONG_THE_WAY, AT_THE_END = 256, 2048
"""Blocks looked at."""
_RATIO, _KEY = 0.15, make_key(0, 2)
"""Always the same masks, so that losses of different runs on the same text can be compared."""
_TOGETHER = 16


@dataclass(frozen=True)
class HeldOut:
    """Blocks to measure by.

    Args:
        blocks: of the held-out sentences.
        template: what stands around a block.
        characters_per_token: of these sentences.
    """

    blocks: Blocks
    template: Template
    characters_per_token: float

    def loss(self, forward: Callable[[Sequence[Packed]], Loss], device: str, most: int) -> float:
        """Mean cross-entropy in nats of the masked tokens, of `most` blocks drawn at random, always the same."""
        order = np.random.default_rng(0).permutation(len(self.blocks))[:most]
        noise, total, count = MaskBlocks(_RATIO), 0.0, 0.0
        for rows in np.array_split(order, -(-len(order) // _TOGETHER)):
            tokens = noise(self.blocks[rows], _KEY, self.template)
            packed = self.template.pack(tokens, len(tokens.ids)).to(device)
            with torch.no_grad():
                loss = forward([packed])
            total, count = total + float(loss.total), count + loss.count
        return total / max(count, 1.0)

    def bits_per_character(self, loss: float) -> float:
        """A loss in nats a token as bits a character: comparable between vocabularies, not with causal models."""
        return loss / math.log(2) / self.characters_per_token
