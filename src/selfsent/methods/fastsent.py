"""FastSent: the sum of a sentence's word vectors predicts the words of the sentences beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.views import View
from selfsent.fast.packing import Packed
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.methods.two_views import POSITIVES, Positives, ViewOptions, two_views
from selfsent.models.assemble import freeze_behind_tokens
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

_SPREAD = 0.02
"""Standard deviation of the numbers that output vectors begin as."""


@dataclass(frozen=True)
class Options(ViewOptions):
    """Options of FastSent."""

    positives: Positives = setting("neighbours", POSITIVES)
    own_words: bool = setting(False, "the sentence predicts its own words too (the paper's FastSent+AE)")


class FastSentLearner(Learner):
    """−Σ log softmax(U s)_w over the words w beside a sentence, s the sum of its word vectors (Hill et al. 2016, 2.2).

    U has an output vector for each entry of the vocabulary. The paper trains a table of word vectors; any encoder but a
    table predicts by its sentence vector instead of a sum.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | what stands beside each in its document |
    | loss | a sum | over the words of `views[1]` |

    Example:
        >>> learner = FastSentLearner(model, Options())
        >>> batch = pack(model, ["a cat sat", "dogs bark"]), pack(model, ["the day", "night"])
        >>> learner(batch).count
        3
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        if model.is_static:  # of which the sums are taken, and not what follows the table
            freeze_behind_tokens(model)
        size = model.hidden_size if model.is_static else model.embedding_size
        self.output = nn.Embedding(model.vocabulary_size, size)
        nn.init.normal_(self.output.weight, std=_SPREAD)
        special = torch.zeros(model.vocabulary_size, dtype=torch.bool)
        special[[number for number in model.tokenizer.all_special_ids if number < len(special)]] = True
        self.register_buffer("special", special, persistent=False)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences and what stands beside them."""
        sentences, beside = views
        scores = F.linear(self._vectors(sentences), self.output.weight).float()
        parts = [self._predict(scores, beside)] + ([self._predict(scores, sentences)] if self.options.own_words else [])
        return Loss(torch.stack([part.total for part in parts]).sum(), sum(part.count for part in parts))

    def _vectors(self, sentences: Packed) -> Tensor:
        """(n, d) sums of the word vectors of a table; the sentence vectors of any other encoder."""
        if not self.model.is_static:
            vectors: Tensor = self.model(sentences)
            return vectors
        words = self.model.token_vectors(sentences)
        return words.new_zeros(len(sentences), words.shape[1]).index_add(0, sentences.sentence, words)

    def _predict(self, scores: Tensor, words: Packed) -> Loss:
        """−Σ log softmax over the words of each sentence; all words of one share the (n, vocabulary) scores."""
        special: Tensor = self.special  # type: ignore[assignment]  # a buffer
        chosen = ~special[words.ids]
        number, ids = words.sentence[chosen], words.ids[chosen]
        total = scores.logsumexp(dim=1)[number].sum() - scores[number, ids].sum()
        return Loss(total, len(ids))


def views(options: Options) -> tuple[View, ...]:
    """A sentence, and what stands beside it."""
    return two_views(options)


FASTSENT = Method(
    name="fastsent",
    title="FastSent",
    citation="Hill, Cho and Korhonen, 2016. arXiv:1602.03483",
    objective="−Σ log softmax(U s)ᵥ, s the sum of the word vectors of a sentence, v the words of the one beside it",
    learner=FastSentLearner,
    options=Options,
    views=views,
    batchwise=False,
    pooling="mean",
    # Theirs are single sentences, by plain gradient descent.
    published=Settings(
        batch_size=1, learning_rate=0.025, epochs=1, schedule="linear", warmup=0, optimizer="sgd", clip=0.0
    ),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1, max_length=64),
    large_learning_rate=2e-5,
    static=STATIC,
)
