"""Cross-attention to a single sentence vector, and the token that a decoder reads first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.views.tokens import Template
from selfsent.models.encoder import Encoder


def from_one_slot(
    value: nn.Module, output: nn.Module, vectors: Tensor, sentence: Tensor, heads: int, head_dropout: float
) -> Tensor:
    """Cross-attention to a memory of one slot: W_o W_v s, computed once per sentence.

    Args:
        value: W_v.
        output: W_o.
        vectors: (sentences, e) s.
        sentence: (...) number of the sentence at each position.
        heads: of the attention.
        head_dropout: rate at which whole heads are dropped at a position, which is what dropout of an attention weight
            does where there is only one.

    Returns:
        (..., d) what each position is told.
    """
    said: Tensor = value(vectors)
    if not head_dropout:
        return cast(Tensor, output(said)[sentence])
    kept = F.dropout(said.new_ones(*sentence.shape, heads, 1), head_dropout)
    return cast(Tensor, output((said[sentence].reshape(*sentence.shape, heads, -1) * kept).flatten(-2)))


class CrossAttention(nn.Module):
    """Cross-attention to a memory of one slot, computed as what it is.

    With a single key the softmax is 1 whatever query and key are, so every position of a sentence gets W_o W_v s:
    computed once per sentence, without query and key. Dropout on the attention weight would drop whole heads of it at
    each position: left out unless `head_dropout` says so. Dropout on the result and the residual with its norm are as
    in the decoder of BERT.
    """

    def __init__(
        self,
        memory_size: int,
        size: int,
        epsilon: float,
        dropout: float,
        spread: float,
        heads: int,
        head_dropout: float,
    ) -> None:
        super().__init__()
        self.heads, self.head_dropout = heads, head_dropout
        self.value = nn.Linear(memory_size, size)
        self.output = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size, eps=epsilon)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.value, self.output):
            nn.init.normal_(layer.weight, std=spread)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor, vectors: Tensor, sentence: Tensor) -> Tensor:
        """(1, tokens, d) states, plus what their sentences' (sentences, e) vectors say, normalised."""
        rate = self.head_dropout if self.training else 0.0
        said = from_one_slot(self.value, self.output, vectors, sentence, self.heads, rate)
        return cast(Tensor, self.norm(self.dropout(said)[None] + states))


def start_for(model: Encoder, candidates: Iterable[int | None]) -> int | None:
    """What to read in front of every sentence, so that its first word is predicted as well.

    Args:
        model: whose tokenizer may put a special token there itself; then nothing is needed, and this is None.
        candidates: tokens to take instead; the first that exists, or 0.
    """
    if Template.of(model.tokenizer, model.vocabulary_size).prefix:
        return None
    return next((int(token) for token in candidates if token is not None), 0)
