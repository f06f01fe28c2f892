"""Sent2Vec: the mean of word vectors predicts words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.data.views.view import View
from selfsent.distributed import gathered
from selfsent.methods.method import STATIC, AnyBase, Learner, Loss, Method, MethodOptions, require_table
from selfsent.models.assemble import freeze_after_tokens
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

_SPREAD = 0.02
"""Standard deviation of the initial output vectors."""


@dataclass(frozen=True)
class Sent2Vec(MethodOptions):
    """Sent2Vec, of words without bigrams.

    Σ_w ℓ(u_w·v) + Σ_n ℓ(−u_n·v), v the mean of the word vectors of a sentence but for w, n other words.

    Pagliardini, Gupta and Jaggi, 2018. arXiv:1703.02507.
    """

    negatives: int = setting(10, "other words that each word is held against", minimum=1)
    threshold: float = setting(1e-4, "share of all words above which a word is predicted less often", above=0.0)

    def views(self) -> tuple[View, ...]:
        """The sentence, whose words are predicted."""
        return (View(side="bare"),)

    def check_base(self, base: AnyBase, dropout: float | None = None) -> None:
        """Reject a base that is no table of token vectors."""
        require_table("sent2vec trains", base)


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

    Examples:
        >>> learner = Sent2VecLearner(load_encoder("bundled"), Sent2Vec(threshold=1.0))
        >>> batch = pack(learner.model, ["a cat sat", "dogs"])
        >>> learner([batch]).count
        3
    """

    options: Sent2Vec
    frequency: Tensor

    def __init__(self, model: Encoder, options: Sent2Vec) -> None:
        super().__init__(model, options)
        freeze_after_tokens(model)
        self.output = nn.Embedding(model.vocabulary_size, model.hidden_size)
        nn.init.normal_(self.output.weight, std=_SPREAD)
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
        share = self.options.threshold / self.frequency[packed.ids].clamp_min(1e-12)
        chance = torch.rand(packed.tokens, device=share.device, generator=self._random())
        chosen = (packed.lengths[packed.sentence] > 1) & (chance < share.sqrt() + share)
        v = self.contexts(packed, chosen).float()
        ids = packed.ids[chosen]
        total = F.softplus(-(v * self.output(ids)).sum(-1)).sum()
        if len(ids):
            count = len(ids) * self.options.negatives
            drawn = torch.multinomial(self.frequency.sqrt(), count, replacement=True, generator=self._random())
            negatives = drawn.view(len(ids), -1)
            scores = (self.output(negatives) @ v[:, :, None]).squeeze(-1)
            total = total + F.softplus(scores)[negatives != ids[:, None]].sum()
        return Loss(total, len(ids))

    def contexts(self, packed: Packed, chosen: Tensor) -> Tensor:
        """(chosen, d) means of the vectors of the other words of their sentences, of the chosen ones of (tokens,)."""
        words, owner = self.model.token_vectors(packed), packed.sentence
        sums = words.new_zeros(len(packed), words.shape[1]).index_add(0, owner, words)
        means: Tensor = (sums[owner[chosen]] - words[chosen]) / (packed.lengths[owner[chosen]] - 1)[:, None]
        return means

    def _random(self) -> torch.Generator | None:
        """Random numbers of the step in training; always the same ones otherwise."""
        return None if self.training else torch.Generator(self.model.device).manual_seed(0)


Sent2Vec.method = Method(
    "sent2vec",
    Sent2Vec,
    Sent2VecLearner,
    # Theirs are single sentences at a rate of 0.2, by plain gradient descent in several threads.
    published=Settings(batch_size=1, learning_rate=0.2, epochs=9, warmup=0, optimizer="sgd", clip=0.0),
    defaults=Settings(batch_size=128, learning_rate=0.004, epochs=15, max_length=64),
    large_learning_rate=0.004,
    static=STATIC.replace(batch_size=128),
    default_base="bundled",
    presets={"published": {"threshold": 5e-6}, "faithful": {"threshold": 5e-6}},
    compared=False,
)
