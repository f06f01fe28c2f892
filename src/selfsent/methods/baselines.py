"""Older baselines: FastSent, SDAE, Skip-Thoughts and Sent2Vec, which predict words from one vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.data.views.noise import Chain, DeleteWords, MaskWords, SwapPairs
from selfsent.data.views.positives import Neighbour
from selfsent.data.views.view import View
from selfsent.distributed import gathered
from selfsent.errors import BaseEncoderError
from selfsent.methods.losses import linear_cross_entropy
from selfsent.methods.method import OF_DOCUMENTS, STATIC, Learner, Loss, Method, MethodOptions
from selfsent.methods.ranking import POSITIVES, ViewOptions
from selfsent.models.assemble import freeze_after_tokens
from selfsent.models.decoders.recurrent import Reads, RecurrentDecoder
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


@dataclass(frozen=True)
class Sent2Vec(MethodOptions):
    """Sent2Vec, of words without bigrams.

    Σ_w ℓ(u_w·v) + Σ_n ℓ(−u_n·v), v the mean of the word vectors of a sentence but for w, n other words.

    Pagliardini, Gupta and Jaggi, 2018. arXiv:1703.02507.
    """

    negatives: int = setting(10, "other words that each word is held against", minimum=1)
    threshold: float = setting(1e-4, "share of all words above which a word is predicted less often", above=0.0)


def _output_vectors(model: Encoder) -> nn.Embedding:
    """An output vector for each entry of the vocabulary; of static embeddings nothing but the table is trained."""
    if model.is_static:
        freeze_after_tokens(model)
    output = nn.Embedding(model.vocabulary_size, model.hidden_size if model.is_static else model.embedding_size)
    nn.init.normal_(output.weight, std=_SPREAD)
    return output


def _sums(words: Tensor, packed: Packed) -> Tensor:
    """(n, d) sums over the sentences of (tokens, d) word vectors."""
    return words.new_zeros(len(packed), words.shape[1]).index_add(0, packed.sentence, words)


class FastSentLearner(Learner):
    """−Σ log softmax(U s)_w over the words w next to a sentence, s the sum of its word vectors (Hill et al. 2016, 2.2).

    U has an output vector for each entry of the vocabulary. The paper trains a table of word vectors; any encoder but a
    table predicts by its sentence vector instead of a sum.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | a neighbour of each in its document |
    | loss | a sum | over the words of `views[1]` |

    Example:
        >>> learner = FastSentLearner(model, FastSent())
        >>> batch = pack(model, ["a cat sat", "dogs bark"]), pack(model, ["the day", "night"])
        >>> learner(batch).count
        3
    """

    options: FastSent
    special: Tensor

    def __init__(self, model: Encoder, options: FastSent) -> None:
        super().__init__(model, options)
        self.output = _output_vectors(model)
        special = torch.zeros(model.vocabulary_size, dtype=torch.bool)
        special[[number for number in model.tokenizer.all_special_ids if number < len(special)]] = True
        self.register_buffer("special", special, persistent=False)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences and their neighbours; all words of one share its scores."""
        sentences, neighbours = views
        static = self.model.is_static
        s = _sums(self.model.token_vectors(sentences), sentences) if static else self.model(sentences)
        scores = F.linear(s, self.output.weight).float()
        chosen = ~self.special[neighbours.ids]
        owner, ids = neighbours.sentence[chosen], neighbours.ids[chosen]
        return Loss(scores.logsumexp(dim=1)[owner].sum() - scores[owner, ids].sum(), len(ids))


class Sent2VecLearner(Learner):
    """Σ_w ℓ(u_w·v) + Σ_n ℓ(−u_n·v), v the mean of the word vectors of a sentence but for w, ℓ(x) = log(1 + e⁻ˣ).

    Pagliardini, Gupta and Jaggi 2018, section 2.2; without their vectors of bigrams. The n are drawn in proportion to
    the root of their frequency f, and a word is predicted with probability √(t/f) + t/f, where that is below 1.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | those of a single token predict nothing |
    | loss | a sum | over the tokens that are predicted |

    Raises:
        BaseEncoderError: the base is no table of token vectors.

    Example:
        >>> learner = Sent2VecLearner(load_encoder("bundled"), Sent2Vec(threshold=1.0))
        >>> batch = pack(learner.model, ["a cat sat", "dogs"])
        >>> learner([batch]).count
        3
    """

    options: Sent2Vec
    frequency: Tensor

    def __init__(self, model: Encoder, options: Sent2Vec) -> None:
        super().__init__(model, options)
        if not model.is_static:
            kind = model.transformer.config.model_type if model.has_transformer else "recurrent network"
            other = f"this base is a {kind}: choose another base, such as bundled"
            raise BaseEncoderError(f"sent2vec trains a table of token vectors, and {other}")
        self.output = _output_vectors(model)
        self.register_buffer("frequency", torch.full((model.vocabulary_size,), 1 / model.vocabulary_size))

    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """Count how often each token occurs."""
        counts = torch.zeros(self.model.vocabulary_size, dtype=torch.float64)
        for view, *_ in batches:
            counts += torch.bincount(view.flat_ids.cpu(), minlength=len(counts))
        counts = torch.stack(gathered(counts)).sum(0)
        if counts.any():
            self.frequency.copy_(counts / counts.sum())

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences."""
        packed = views[0]
        words, owner = self.model.token_vectors(packed), packed.sentence
        others = packed.lengths[owner] - 1
        share = self.options.threshold / self.frequency[packed.ids].clamp_min(1e-12)
        chance = torch.rand(packed.tokens, device=words.device, generator=self._random())
        chosen = (others > 0) & (chance < share.sqrt() + share)
        v = ((_sums(words, packed)[owner[chosen]] - words[chosen]) / others[chosen, None]).float()
        ids = packed.ids[chosen]
        total = F.softplus(-(v * self.output(ids)).sum(-1)).sum()
        if len(ids):
            count = len(ids) * self.options.negatives
            drawn = torch.multinomial(self.frequency.sqrt(), count, replacement=True, generator=self._random())
            negatives = drawn.view(len(ids), -1)
            scores = (self.output(negatives) @ v[:, :, None]).squeeze(-1)
            total = total + F.softplus(scores)[negatives != ids[:, None]].sum()
        return Loss(total, len(ids))

    def _random(self) -> torch.Generator | None:
        """Random numbers of the step in training; always the same ones otherwise."""
        return None if self.training else torch.Generator(self.model.device).manual_seed(0)


FastSent.method = Method("fastsent", FastSent, FastSentLearner).but(
    # Theirs are single sentences, by plain gradient descent.
    published=Settings(batch_size=1, learning_rate=0.025, epochs=1, warmup=0, optimizer="sgd", clip=0.0),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1, max_length=64),
    aimed_at=OF_DOCUMENTS,
)

Sent2Vec.method = Method("sent2vec", Sent2Vec, Sent2VecLearner).but(
    # Theirs are single sentences at a rate of 0.2, by plain gradient descent in several threads.
    published=Settings(batch_size=1, learning_rate=0.2, epochs=9, warmup=0, optimizer="sgd", clip=0.0),
    defaults=Settings(batch_size=128, learning_rate=0.004, epochs=15, max_length=64),
    large_learning_rate=0.004,
    static=STATIC.but(batch_size=128),
    default_base="bundled",
    presets={"published": {"threshold": 5e-6}, "faithful": {"threshold": 5e-6}},
    compared=False,
)

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
        return View(noise=Chain((lost, SwapPairs(self.swap)))), View()


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
