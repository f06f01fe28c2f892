"""A recurrent network over word vectors: an encoder that reads a sentence word by word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from selfsent.data.packed import Packed
from selfsent.errors import BaseEncoderError
from selfsent.models.encoder import Encoder
from selfsent.models.token_states import Read, TokenStates, last_layer


def run(network: nn.GRU | nn.LSTM, inputs: Tensor, packed: Packed) -> Tensor:
    """(tokens, h) states of a recurrent network of one layer, in packed order.

    Always in float32: a rounding error in one state would reach all later ones.

    Args:
        network: it reads from left to right, or both ways.
        inputs: (tokens, d) what it reads, in packed order.
        packed: the batch.
    """
    order, back, counts = packed.by_position
    with torch.autocast(inputs.device.type, enabled=False):
        states, _ = network(PackedSequence(inputs.float()[order], counts))
    return cast(Tensor, states.data[back])


class RecurrentStates(TokenStates):
    """The states of a recurrent network on packed batches, sentence by sentence.

    Args:
        words: the word vectors.
        network: the recurrent network.
    """

    def __init__(self, words: nn.Embedding, network: nn.GRU | nn.LSTM) -> None:
        self.words, self.network = words, network
        self.position_offset, self.reads_types, self.runs_packed = 0, False, True

    def __call__(self, packed: Packed, read: Read = last_layer) -> Tensor:
        """(tokens, h) states of every token, in packed order."""
        return run(self.network, self.words(packed.ids), packed)


class RecurrentEncoder(Encoder):
    """Word vectors, a recurrent network and a pooling: sentence-transformers' `WordEmbeddings`, `LSTM` and `Pooling`.

    The network may also be selfsent's own `Gru`.

    Args:
        sentence_transformer: its first two modules are word vectors and network.
    """

    has_transformer = False
    kind = "a recurrent network"
    _stem = 2

    def __init__(self, sentence_transformer: Any) -> None:
        super().__init__(sentence_transformer)
        self.tokenizer = sentence_transformer[0].tokenizer.tokenizer
        self.states = RecurrentStates(self.words, self.transformer)

    @property
    def words(self) -> nn.Embedding:
        """The word vectors, (vocabulary, d)."""
        return cast(nn.Embedding, self.sentence_transformer[0].emb_layer)

    @property
    def transformer(self) -> Any:
        """The recurrent network, in place of a transformer."""
        return self.sentence_transformer[1].encoder

    @property
    def hidden_size(self) -> int:
        """Width of a token state, of both directions where there are two."""
        network = self.transformer
        return int(network.hidden_size) * (2 if network.bidirectional else 1)

    def _through_padded(self, packed: Packed, modules: Sequence[nn.Module]) -> NoReturn:
        raise BaseEncoderError("modules that read padding need a transformer, and this base is a recurrent network")
