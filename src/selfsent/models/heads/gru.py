"""A gated recurrent unit between word vectors and pooling, which sentence-transformers has no module for."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from selfsent.models.heads.module import OwnModule


class Gru(OwnModule):
    """A GRU over the word vectors of a SentenceTransformer (Cho et al. 2014), as its `LSTM` is an LSTM.

    Args:
        embedding_dimension: width of a word vector.
        hidden_dim: width of a state, of each direction.
        bidirectional: whether a second one reads from right to left.
    """

    config_keys = ("embedding_dimension", "hidden_dim", "bidirectional")

    def __init__(self, embedding_dimension: int, hidden_dim: int, bidirectional: bool = False) -> None:
        super().__init__()
        self.embedding_dimension, self.hidden_dim = embedding_dimension, hidden_dim
        self.bidirectional = bidirectional
        self.encoder = nn.GRU(embedding_dimension, hidden_dim, bidirectional=bidirectional, batch_first=True)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """As a module of a SentenceTransformer: the states of a padded block."""
        lengths = features["attention_mask"].sum(1).clamp(min=1).cpu()
        packed = pack_padded_sequence(features["token_embeddings"], lengths, batch_first=True, enforce_sorted=False)
        features["token_embeddings"] = pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0]
        return features

    def get_embedding_dimension(self) -> int:
        """Width of a token state."""
        return self.hidden_dim * (2 if self.bidirectional else 1)
