"""CNN-SBERT's pooling: max-pools and convolutions along the tokens, the same small filters for every hidden unit.

The network reads the (tokens, d) states of a sentence as an image of one channel. Five times it max-pools two
neighbouring rows and convolves along the tokens, followed by tanh; the remaining rows are averaged into a vector of
width d, every entry between -1 and 1 (Choi et al. 2021, section III, figure 2, read from below).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from selfsent.data.packed import Packed
from selfsent.errors import BaseEncoderError
from selfsent.models.heads.module import OwnModule
from selfsent.models.heads.options import CNN_POOL

CHANNELS = (1, 32, 64, 128, 128, 1)
WINDOWS = (1, 5, 3, 3, 1)


class CnnPool(OwnModule):
    """The pooling of a SentenceTransformer by this network.

    Args:
        embedding_dimension: d, the width of a token state and of the sentence vector.
        stride: rows that a max-pool of two rows moves on. With 2 it halves their number, rounding up; with 1 it keeps
            it, the last row being its own neighbour.
        masked: always true; earlier versions could read padding.
        length: of no effect; earlier versions padded to so many tokens.

    Raises:
        BaseEncoderError: it was trained to read padding.
    """

    config_keys = ("embedding_dimension", "stride")
    pooling_mode = CNN_POOL

    def __init__(self, embedding_dimension: int, stride: int = 2, masked: bool = True, length: int = 0) -> None:
        super().__init__()
        if not masked:
            raise BaseEncoderError("this CNN pooling was trained to read padding, which selfsent no longer does")
        self.embedding_dimension, self.stride = embedding_dimension, stride
        sizes = zip(CHANNELS, CHANNELS[1:], WINDOWS, strict=False)
        self.convolutions = nn.ModuleList(nn.Conv2d(ins, outs, (window, 1)) for ins, outs, window in sizes)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """As a module of a SentenceTransformer: makes the sentence vectors of a padded block."""
        states, mask = features["token_embeddings"], features["attention_mask"].bool()
        features["sentence_embedding"] = self.pooled(states[mask], mask.sum(1).cpu().numpy())
        return features

    def of_packed(self, states: Tensor, packed: Packed) -> Tensor:
        """(sentences, d) from (tokens, d) states in packed order, padding left out."""
        vectors = self.pooled(states, packed.given_lengths[packed.order])
        back = np.argsort(packed.order)
        return vectors[torch.from_numpy(back).to(states.device)]

    def pooled(self, states: Tensor, lengths: np.ndarray) -> Tensor:
        """(sentences, d) from the (tokens, d) states of sentences one after the other, in float32.

        Args:
            states: token states.
            lengths: (sentences,) tokens of each.
        """
        rows = states[:, :, None]
        for convolution in self.convolutions:
            rows, lengths = self._maxima(rows, lengths)
            rows = torch.tanh(_convolved(cast(nn.Conv2d, convolution), rows, lengths))
        sentence = _on(np.repeat(np.arange(len(lengths)), lengths), rows)
        total = rows.new_zeros(len(lengths), rows.shape[1], dtype=torch.float32)
        return total.index_add(0, sentence, rows[:, :, 0].float()) / _on(lengths, rows)[:, None]

    def _maxima(self, rows: Tensor, lengths: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """The maxima of neighbouring rows of each sentence, (fewer rows, d, channels), and how many there are of each.

        A last row without a neighbour is its own: what padding of minus infinity would give.
        """
        starts, last = np.cumsum(lengths) - lengths, np.cumsum(lengths) - 1
        fewer = -(-lengths // self.stride)
        position = np.arange(fewer.sum()) - np.repeat(np.cumsum(fewer) - fewer, fewer)
        first = np.repeat(starts, fewer) + self.stride * position
        second = np.minimum(first + 1, np.repeat(last, fewer))
        one, other = rows[_on(first, rows)], rows[_on(second, rows)]
        return torch.where(one >= other, one, other), fewer

    def get_embedding_dimension(self) -> int:
        """Length of the vectors that come out."""
        return self.embedding_dimension


def _convolved(convolution: nn.Conv2d, rows: Tensor, lengths: np.ndarray) -> Tensor:
    """A convolution along the tokens of each sentence, as if there were nothing but zeros around it.

    One matrix product for each position in the window, over the rows that have such a neighbour alone: after a few
    max-pools most sentences have one row or two, and the greater part of a window hangs over their ends.

    Args:
        convolution: its window odd, of one unit.
        rows: (rows, d, channels).
        lengths: (sentences,) rows of each sentence.

    Returns:
        (rows, d, other channels).
    """
    weight = convolution.weight[..., 0]
    position = np.concatenate([np.arange(length) for length in lengths])
    after = np.repeat(lengths, lengths) - position
    middle = weight.shape[2] // 2
    out = functional.linear(rows, weight[:, :, middle], convolution.bias)
    for offset in range(-middle, middle + 1):
        having = np.flatnonzero((position + offset >= 0) & (offset < after))
        if offset and len(having):
            neighbours = functional.linear(rows[_on(having + offset, rows)], weight[:, :, middle + offset])
            out.index_add_(0, _on(having, rows), neighbours)
    return out


def _on(array: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(array).to(like.device)
