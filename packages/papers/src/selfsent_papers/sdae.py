"""SDAE and Skip-Thoughts: a recurrent decoder predicts words from the vector of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.data.random import uniforms
from selfsent.data.views.noise import DeleteWords, MaskWords
from selfsent.data.views.positives import Documents
from selfsent.data.views.tokens import Template, Tokens
from selfsent.data.views.view import View
from selfsent.methods.losses import linear_cross_entropy
from selfsent.methods.method import Learner, Loss, Method, MethodOptions
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting
from selfsent_papers.recurrent import Reads, RecurrentDecoder

_READS = "where the decoder reads the sentence vector: at all steps, as its first state (start), or both"


@dataclass(frozen=True)
class LoseAndSwap:
    """Words are lost, then disjoint pairs of neighbouring words are swapped (Hill, Cho and Korhonen 2016, section 2.3).

    The pairs are the first two words that are left, the third and the fourth, and so on.

    Args:
        lose: share of the words that are lost.
        swap: share of the pairs that are swapped.
        masked: whether lost words leave a mask.
    """

    lose: float
    swap: float
    masked: bool = False

    def __call__(self, tokens: Tokens, key: int, template: Template) -> Tokens:
        """The damaged batch; `tokens` stays as it is."""
        tokens = (MaskWords if self.masked else DeleteWords)(self.lose)(tokens, key, template)
        if not self.swap or not len(tokens.ids):
            return tokens
        _, sentence, position = tokens.words()
        chance = uniforms(key, tokens.rows[sentence], position, 1)
        has_next = np.append(sentence[1:] == sentence[:-1], False)
        left = np.flatnonzero((position % 2 == 0) & has_next & (chance < self.swap))
        order = np.arange(len(sentence))
        order[left], order[left + 1] = left + 1, left
        return tokens.take_words(order)


@dataclass(frozen=True)
class Neighbour:
    """The sentence at a fixed distance from a row in its document; the row itself where there is none.

    Args:
        away: 1 for the next sentence, -1 for the one before.
    """

    away: int = 1

    length_option = None

    def __call__(self, rows: np.ndarray, key: int, documents: Documents) -> tuple[np.ndarray, np.ndarray]:
        """The neighbour of each row."""
        first, position, last = documents.around(rows)
        there = position + self.away
        positions = np.where((there < first) | (there >= last), position, there)
        return documents.rows(positions), np.ones(len(rows), dtype=np.int64)


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
        return View(noise=LoseAndSwap(self.lose, self.swap, self.lost == "masked")), View()


@dataclass(frozen=True)
class SkipThoughts(MethodOptions):
    """Skip-Thoughts.

    −Σₜ log softmax(V hₜ)_wₜ over the words of the sentences before and after, hₜ = GRU(wₜ₋₁, s, hₜ₋₁).

    Kiros et al., 2015. arXiv:1506.06726.
    """

    reads: Reads = setting("steps", _READS)

    def views(self) -> tuple[View, ...]:
        """A sentence, the one before and the one after it."""
        return View(), View(passage=Neighbour(-1)), View(passage=Neighbour(1))


class _Decoding(Learner):
    """Shared: the loss of sentences that a decoder predicts from vectors."""

    def __init__(self, model: Encoder, options: SDAE | SkipThoughts, decoders: int) -> None:
        super().__init__(model, options)
        model.require_transformer(f"{options.method.name} trains a recurrent network or a transformer")
        self.decoders = nn.ModuleList(RecurrentDecoder(model, options.reads) for _ in range(decoders))
        self.output = nn.Linear(model.embedding_size, model.vocabulary_size)

    def rebuild(self, decoder: RecurrentDecoder, vectors: Tensor, whole: Packed) -> Loss:
        """−Σₜ log softmax(V hₜ)_wₜ over the words of sentences, hₜ = GRU(wₜ₋₁, s, hₜ₋₁), of their vectors s."""
        read = decoder.reading(whole)
        states = decoder(self.model.words, vectors, read)
        return Loss(linear_cross_entropy(states, self.output.weight, self.output.bias, read.targets), read.tokens)


class SequentialDenoisingLearner(_Decoding):
    """−Σₜ log softmax(V hₜ)_wₜ, hₜ = GRU(wₜ₋₁, s, hₜ₋₁): s the vector of the damaged sentence (Hill et al. 2016, 2.3).

    V has an output vector for each entry of the vocabulary. The decoder reads the word vectors of the encoder.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | some words lost, some pairs of words swapped |
    | `views[1]` | the same n | whole |
    | loss | a sum | over the tokens of the whole sentences |

    Raises:
        BaseEncoderError: the base is a table of token vectors.
        SettingsError: words are to be masked, and the tokenizer has no mask token.

    Examples:
        >>> learner = SequentialDenoisingLearner(model, SDAE())
        >>> damaged, whole = pack(model, ["cat sat the on"]), pack(model, ["the cat sat on"])
        >>> learner([damaged, whole]).count == whole.tokens - 1
        True
    """

    options: SDAE

    def __init__(self, model: Encoder, options: SDAE) -> None:
        super().__init__(model, options, 1)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch: the damaged sentences are encoded, the whole ones predicted."""
        damaged, whole = views
        decoder = self.decoders[0]
        assert isinstance(decoder, RecurrentDecoder)
        return self.rebuild(decoder, self.model(damaged), whole)


class SkipThoughtsLearner(_Decoding):
    """−Σₜ log softmax(V hₜ)_wₜ over the words before and after, hₜ = GRU(wₜ₋₁, s, hₜ₋₁), s the sentence's vector.

    Kiros et al. 2015, section 2.1. There is a GRU for either side; V and the word vectors are common to both. Where a
    document begins or ends, there is nothing to predict on that side.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | the one before each in its document, or the same again where there is none |
    | `views[2]` | n sentences | the one after each, likewise |
    | loss | a sum | over the tokens before and after |

    Examples:
        >>> learner = SkipThoughtsLearner(model, SkipThoughts())
        >>> middle, before, after = (pack(model, [text]) for text in ("it sat", "a cat came", "it slept"))
        >>> learner([middle, before, after]).count == before.tokens - 1 + after.tokens - 1
        True
    """

    options: SkipThoughts

    def __init__(self, model: Encoder, options: SkipThoughts) -> None:
        super().__init__(model, options, 2)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences and the sentences before and after them."""
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
            part = self.rebuild(decoder, chosen, other.take(there.tolist()))
            total, count = total + part.total, count + part.count
        return Loss(total, count)


# The published code passes Adam a rate of 0.01, which it ignores for its own 0.0002.
_PUBLISHED = Settings(learning_rate=2e-4, epochs=1, schedule="constant", warmup=0)

SDAE.method = Method("sdae", SDAE, SequentialDenoisingLearner).replace(
    pooling="lasttoken",
    published=_PUBLISHED.replace(batch_size=16, clip=2.0, max_length=100),
    defaults=Settings(batch_size=64, learning_rate=2e-4, epochs=1, max_length=64),
    large_learning_rate=2e-4,
    static=None,
    default_base="gru:512",
    presets={"faithful": {"lost": "masked"}},
    compared=False,
)

SkipThoughts.method = SDAE.method.replace(
    name="skip-thoughts",
    learner=SkipThoughtsLearner,
    options=SkipThoughts,
    published=_PUBLISHED.replace(batch_size=64, epochs=5, clip=5.0, max_length=30),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1, max_length=64),
    large_learning_rate=5e-4,
    presets={"faithful": {"reads": "start"}},
    aims_at_context=True,
)
