"""FastSent: the sum of a sentence's word vectors predicts the words next to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.methods.method import Learner, Loss, Method
from selfsent.methods.positives import POSITIVES, ViewOptions
from selfsent.models.assemble import freeze_after_tokens
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

_SPREAD = 0.02
"""Standard deviation of the initial output vectors."""


@dataclass(frozen=True)
class FastSent(ViewOptions):
    """FastSent.

    −Σ log softmax(U s)ᵥ, s the sum of the word vectors of a sentence, v the words of its neighbour.

    Hill, Cho and Korhonen, 2016. arXiv:1602.03483.
    """

    positives: str = setting("neighbours", POSITIVES)


class FastSentLearner(Learner):
    """−Σ log softmax(U s)_w over the words w next to a sentence, s the sum of its word vectors (Hill et al. 2016, 2.3).

    U has an output vector for each entry of the vocabulary. The paper trains a table of word vectors; any encoder but a
    table predicts by its sentence vector instead of a sum.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | a neighbour of each in its document |
    | loss | a sum | over the words of `views[1]` |

    Examples:
        >>> learner = FastSentLearner(model, FastSent())
        >>> batch = pack(model, ["a cat sat", "dogs bark"]), pack(model, ["the day", "night"])
        >>> learner(batch).count
        3
    """

    options: FastSent
    special: Tensor

    def __init__(self, model: Encoder, options: FastSent) -> None:
        super().__init__(model, options)
        if model.is_static:
            freeze_after_tokens(model)
        width = model.hidden_size if model.is_static else model.embedding_size
        self.output = nn.Embedding(model.vocabulary_size, width)
        nn.init.normal_(self.output.weight, std=_SPREAD)
        special = torch.zeros(model.vocabulary_size, dtype=torch.bool)
        special[[number for number in model.tokenizer.all_special_ids if number < len(special)]] = True
        self.register_buffer("special", special, persistent=False)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences and their neighbours; all words of one share its scores."""
        sentences, neighbours = views
        if self.model.is_static:
            words = self.model.token_vectors(sentences)
            s = words.new_zeros(len(sentences), words.shape[1]).index_add(0, sentences.sentence, words)
        else:
            s = self.model(sentences)
        scores = F.linear(s, self.output.weight).float()
        chosen = ~self.special[neighbours.ids]
        owner, ids = neighbours.sentence[chosen], neighbours.ids[chosen]
        return Loss(scores.logsumexp(dim=1)[owner].sum() - scores[owner, ids].sum(), len(ids))


FastSent.method = Method("fastsent", FastSent, FastSentLearner).replace(
    # Theirs are single sentences, by plain gradient descent.
    published=Settings(batch_size=1, learning_rate=0.025, epochs=1, warmup=0, optimizer="sgd", clip=0.0),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1, max_length=64),
    default_base="bundled",
    aims_at_context=True,
    compared=False,
)
