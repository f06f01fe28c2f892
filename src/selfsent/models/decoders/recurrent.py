"""A recurrent decoder: word by word, from the one vector of a sentence."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.models.decoders.transformer import start_for
from selfsent.models.encoder import Encoder
from selfsent.models.recurrent import begin_orthogonal, run

Reads = Literal["steps", "start", "both"]
"""Where a decoder reads the sentence vector: at every step, as its first state, or both."""


class RecurrentDecoder(nn.Module):
    """A GRU over word vectors from left to right, conditioned on the sentence vector s.

    At every step, s enters both gates and the new state (Kiros et al. 2015, equations 5 to 7): the input is the word
    vector concatenated with s. The first state is s; with `both` it is tanh(W s), as in the code of Hill et al. 2016.

    Args:
        model: the encoder, which also gives the word vectors.
        reads: where s enters.
    """

    def __init__(self, model: Encoder, reads: Reads) -> None:
        super().__init__()
        tokenizer = model.tokenizer
        self.start = start_for(model, (tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.pad_token_id))
        size, self.reads = model.embedding_size, reads
        width = model.word_vectors(torch.zeros(1, dtype=torch.long, device=model.device)).shape[-1]
        self.network = nn.GRU(width + (0 if reads == "start" else size), size)
        begin_orthogonal(self.network)
        self.begin = nn.Linear(size, size) if reads == "both" else nn.Identity()

    def reading(self, whole: Packed) -> Packed:
        """Input for whole sentences; the target of each token is the next one, the end included."""
        return whole.without_last() if self.start is None else whole.shift_right(self.start)

    def forward(self, model: Encoder, vectors: Tensor, read: Packed) -> Tensor:
        """(tokens, h) states, from which each token of `read` predicts the next, given the (sentences, e) vectors."""
        inputs = model.word_vectors(read.ids)
        if self.reads != "start":
            inputs = torch.cat([inputs.float(), vectors.float()[read.sentence]], dim=-1)
        first = None
        if self.reads != "steps":
            order = torch.from_numpy(read.order).to(vectors.device)
            first = self.begin(vectors.float())[order][None]
            first = first.tanh() if self.reads == "both" else first
        return run(self.network, inputs, read, first)
