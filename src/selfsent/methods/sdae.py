"""SDAE and Skip-Thoughts: a recurrent decoder predicts words from the vector of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.data.views.noise import Chain, DeleteWords, MaskWords, SwapPairs
from selfsent.data.views.positives import Neighbour
from selfsent.data.views.view import View
from selfsent.methods.losses import linear_cross_entropy
from selfsent.methods.method import OF_DOCUMENTS, Learner, Loss, Method, MethodOptions
from selfsent.models.decoders.recurrent import Reads, RecurrentDecoder
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

_READS = "where the decoder reads the sentence vector: at all steps, as its first state (start), or both"


@dataclass(frozen=True)
class SDAE(MethodOptions):
    """Sequential denoising auto-encoder.

    −Σₜ log softmax(V hₜ)_wₜ, hₜ = GRU(wₜ₋₁, s, hₜ₋₁), s the vector of the damaged sentence.

    Hill, Cho and Korhonen, 2016. arXiv:1602.03483.
    """

    lose: float = setting(0.1, "share of the words that are lost, the paper's p_o", minimum=0.0, maximum=1.0)
    swap: float = setting(0.1, "share of the pairs of words that are swapped, its p_x", minimum=0.0, maximum=1.0)
    lost: Literal["deleted", "masked"] = setting("deleted", "what becomes of words that are lost")
    reads: Reads = setting("both", _READS)

    def views(self) -> tuple[View, ...]:
        """A damaged sentence, and the whole one."""
        lost = DeleteWords(self.lose) if self.lost == "deleted" else MaskWords(self.lose)
        return View(noise=Chain((lost, SwapPairs(self.swap)))), View(side="bare")


@dataclass(frozen=True)
class SkipThoughts(MethodOptions):
    """Skip-Thoughts.

    −Σₜ log softmax(V hₜ)_wₜ over the words of the sentences before and after, hₜ = GRU(wₜ₋₁, s, hₜ₋₁).

    Kiros et al., 2015. arXiv:1506.06726.
    """

    reads: Reads = setting("steps", _READS)

    def views(self) -> tuple[View, ...]:
        """A sentence, the one before and the one after it."""
        return View(), *(View(passage=Neighbour(away), side="bare") for away in (-1, 1))


def _rebuild(learner: Learner, decoder: RecurrentDecoder, vectors: Tensor, whole: Packed, output: nn.Linear) -> Loss:
    """−Σₜ log softmax(V hₜ)_wₜ over the words of sentences, hₜ = GRU(wₜ₋₁, s, hₜ₋₁), of their vectors s."""
    read = decoder.reading(whole)
    states = decoder(learner.model, vectors, read)
    return Loss(linear_cross_entropy(states, output.weight, output.bias, read.targets), read.tokens)


class SequentialDenoisingLearner(Learner):
    """−Σₜ log softmax(V hₜ)_wₜ, hₜ = GRU(wₜ₋₁, s, hₜ₋₁): s the vector of the damaged sentence (Hill et al. 2016, 2.1).

    V has an output vector for each entry of the vocabulary. The decoder reads the word vectors of the encoder.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | some words lost, some pairs of words swapped |
    | `views[1]` | the same n | whole |
    | loss | a sum | over the tokens of the whole sentences |

    Raises:
        SettingsError: words are to be masked, and the tokenizer has no mask token.

    Example:
        >>> learner = SequentialDenoisingLearner(model, SDAE())
        >>> damaged, whole = pack(model, ["cat sat the on"]), pack(model, ["the cat sat on"])
        >>> learner([damaged, whole]).count == whole.tokens - 1
        True
    """

    options: SDAE

    def __init__(self, model: Encoder, options: SDAE) -> None:
        super().__init__(model, options)
        self.decoder = RecurrentDecoder(model, options.reads)
        self.output = nn.Linear(model.embedding_size, model.vocabulary_size)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch: the damaged sentences are encoded, the whole ones predicted."""
        damaged, whole = views
        return _rebuild(self, self.decoder, self.model(damaged), whole, self.output)


class SkipThoughtsLearner(Learner):
    """−Σₜ log softmax(V hₜ)_wₜ over the words before and after, hₜ = GRU(wₜ₋₁, s, hₜ₋₁), s the sentence's vector.

    Kiros et al. 2015, section 2.1. There is a GRU for either side; V and the word vectors are common to both. Where a
    document begins or ends, there is nothing to predict on that side.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | the one before each in its document, or the same again where there is none |
    | `views[2]` | n sentences | the one after each, likewise |
    | loss | a sum | over the tokens before and after |

    Example:
        >>> learner = SkipThoughtsLearner(model, SkipThoughts())
        >>> middle, before, after = (pack(model, [text]) for text in ("it sat", "a cat came", "it slept"))
        >>> learner([middle, before, after]).count == before.tokens - 1 + after.tokens - 1
        True
    """

    options: SkipThoughts

    def __init__(self, model: Encoder, options: SkipThoughts) -> None:
        super().__init__(model, options)
        self.decoders = nn.ModuleList(RecurrentDecoder(model, options.reads) for _ in range(2))
        self.output = nn.Linear(model.embedding_size, model.vocabulary_size)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences and those before and after them."""
        sentences, *neighbours = views
        vectors = self.model(sentences)
        total, count = vectors.float().sum() * 0, 0.0
        for decoder, other in zip(self.decoders, neighbours, strict=True):
            assert isinstance(decoder, RecurrentDecoder)
            there = np.flatnonzero((sentences.texts != other.texts).cpu().numpy())
            if not len(there):
                # Every weight is to get a gradient, if only of zeros: another process may have something to predict.
                weights = (*decoder.parameters(), *self.output.parameters())
                total = total + torch.stack([(weight * 0).sum() for weight in weights]).sum()
                continue
            chosen = vectors[torch.from_numpy(there).to(vectors.device)]
            part = _rebuild(self, decoder, chosen, other.take(there.tolist()), self.output)
            total, count = total + part.total, count + part.count
        return Loss(total, count)


# The published code passes Adam a rate of 0.01, which it ignores for its own 0.0002.
_PUBLISHED = Settings(learning_rate=2e-4, epochs=1, schedule="constant", warmup=0)

SDAE.method = Method("sdae", SDAE, SequentialDenoisingLearner).but(
    pooling="lasttoken",
    published=_PUBLISHED.but(batch_size=16, clip=2.0, max_length=100),
    defaults=Settings(batch_size=64, learning_rate=2e-4, epochs=1, max_length=64),
    large_learning_rate=3e-5,
    default_base="gru",
    presets={"faithful": {"lost": "masked"}},
    compared=False,
)

SkipThoughts.method = SDAE.method.but(
    name="skip-thoughts",
    learner=SkipThoughtsLearner,
    options=SkipThoughts,
    published=_PUBLISHED.but(batch_size=64, epochs=5, clip=5.0, max_length=30),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1, max_length=64),
    presets={"faithful": {"reads": "start"}},
    aimed_at=OF_DOCUMENTS,
)
