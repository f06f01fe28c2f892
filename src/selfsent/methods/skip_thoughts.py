"""Skip-Thoughts: the vector of a sentence rebuilds, word by word, the sentences before and behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from selfsent.data.views import Beside, View
from selfsent.fast.packing import Packed
from selfsent.methods.losses import linear_cross_entropy
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.methods.sdae import DECODER_SIZE, READS
from selfsent.models.decoders.recurrent import Reads, RecurrentDecoder
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, check_limits, setting


@dataclass(frozen=True)
class Options:
    """Options of Skip-Thoughts."""

    decoder_size: int = setting(0, DECODER_SIZE, minimum=0)
    reads: Reads = setting("steps", READS)

    def __post_init__(self) -> None:
        check_limits(self)


class SkipThoughtsLearner(Learner):
    """−Σₜ log softmax(V hₜ)_wₜ over the words before and behind, hₜ = GRU(wₜ₋₁, s, hₜ₋₁), s the sentence's vector.

    Kiros et al. 2015, section 2.1. There is a GRU for either side; V and the word vectors are common to both. Where a
    document begins or ends, there is nothing to predict on that side.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | the one before each in its document, or the same again where there is none |
    | `views[2]` | n sentences | the one behind each, likewise |
    | loss | a sum | over the tokens before and behind |

    Example:
        >>> learner = SkipThoughtsLearner(model, Options())
        >>> middle, before, behind = (pack(model, [text]) for text in ("it sat", "a cat came", "it slept"))
        >>> learner([middle, before, behind]).count == before.tokens - 1 + behind.tokens - 1
        True
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        self.decoders = nn.ModuleList(RecurrentDecoder(model, options.decoder_size, options.reads) for _ in range(2))
        size = options.decoder_size or model.embedding_size
        self.output = nn.Linear(size, model.vocabulary_size)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences and those before and behind them."""
        sentences, *beside = views
        vectors = self.model(sentences)
        parts = [
            self._predict(decoder, vectors, sentences, other)
            for decoder, other in zip(self.decoders, beside, strict=True)
        ]
        return Loss(torch.stack([part.total for part in parts]).sum(), sum(part.count for part in parts))

    def _predict(self, decoder: nn.Module, vectors: Tensor, sentences: Packed, other: Packed) -> Loss:
        """The loss of one side, of sentences that have one there."""
        assert isinstance(decoder, RecurrentDecoder)
        there = np.flatnonzero((sentences.texts != other.texts).cpu().numpy())
        if not len(there):
            # Every weight is to get a gradient, if only of zeros: another process may have something to predict.
            weights = (*decoder.parameters(), *self.output.parameters())
            return Loss(sum(((weight * 0).sum() for weight in weights), vectors.float().sum() * 0), 0)
        read = decoder.reading(other.take(there.tolist()))
        states = decoder(self.model, vectors[torch.from_numpy(there).to(vectors.device)], read)
        return Loss(linear_cross_entropy(states, self.output.weight, self.output.bias, read.targets), read.tokens)


SKIP_THOUGHTS = Method(
    name="skip-thoughts",
    title="Skip-Thoughts",
    citation="Kiros et al., 2015. arXiv:1506.06726",
    objective="−Σₜ log softmax(V hₜ)_wₜ over the words of the sentences before and behind, hₜ = GRU(wₜ₋₁, s, hₜ₋₁)",
    learner=SkipThoughtsLearner,
    options=Options,
    views=lambda options: (View(), View(passage=Beside(-1)), View(passage=Beside(1))),
    batchwise=False,
    pooling="lasttoken",
    # The published code passes Adam a rate of 0.01, which it does not read: 0.0002 stands in it.
    published=Settings(
        batch_size=64, learning_rate=2e-4, epochs=5, schedule="constant", warmup=0, clip=5.0, max_length=30
    ),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1, max_length=64),
    large_learning_rate=3e-5,
    static=STATIC,
    usual_base="gru",
    presets={"faithful": {"reads": "start"}},
)
