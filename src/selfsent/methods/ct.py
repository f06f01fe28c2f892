"""Contrastive tension: two encoders must agree on a sentence, and on no other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.data.views.view import NegativeSampler, View
from selfsent.distributed import world_size
from selfsent.errors import SettingsError
from selfsent.methods.contrast import ranking_loss
from selfsent.methods.method import Learner, Loss, Method, MethodOptions
from selfsent.methods.positives import ViewOptions
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

DropoutIn = Literal["none", "kept", "both"]
DROPOUT_IN = "which encoders train with dropout: none, the one that is kept, or both"


@dataclass(frozen=True)
class CT(MethodOptions):
    """Contrastive tension.

    binary cross-entropy of σ(f₁(a)·f₂(b)): is b the same sentence as a, or one drawn at random?.

    Carlsson, Gyllensten, Gogoulou, Ylipää Hellqvist and Sahlgren, 2021. openreview.net/forum?id=Ov_sMNau-PF.
    """

    negatives: int = setting(7, "pairs of two sentences for each of one with itself", minimum=1, maximum=1000)
    dropout_in: DropoutIn = setting("none", DROPOUT_IN)

    def views(self) -> tuple[View, ...]:
        """The inputs of the two encoders."""
        return View(), View(sampler=NegativeSampler(self.negatives))


@dataclass(frozen=True)
class CTInBatch(ViewOptions):
    """Contrastive tension with in-batch negatives.

    cross-entropy of softmax(scale · cos(f₁(a), f₂(b))) over the batch, in both directions.

    Carlsson, Gyllensten, Gogoulou, Ylipää Hellqvist and Sahlgren, 2021. openreview.net/forum?id=Ov_sMNau-PF; in-batch
    negatives by sentence-transformers.
    """

    scale: float = setting(20.0, "what cosines are multiplied by, at first; trained, by its logarithm", above=0.0)
    dropout_in: DropoutIn = setting("both", DROPOUT_IN)

    def views(self, second_column: int = 0) -> tuple[View, ...]:
        """The inputs of the encoders: the same sentences, unless options make two views of them."""
        return super().views() if self.varied else (View(),)


class TwinLearner(Learner):
    """Two encoders with the same weights at first, both trained; the second one, `model`, is kept."""

    nests = True

    def __init__(self, model: Encoder, options: Any) -> None:
        super().__init__(model, options)
        self.first = model.twin()

    def encode(self, first: Packed, second: Packed) -> tuple[Tensor, Tensor]:
        """(n, d) and (n, d) vectors of the sentences that each encoder reads, of any length.

        Without a final normalisation: products of unit vectors are between -1 and 1, where the loss of `ct` is least if
        all of them are -1.
        """
        leave_out = int(self.model.ends_normalized)
        with ExitStack() as stack:
            for encoder in {"none": (self.first, self.model), "kept": (self.first,)}.get(self.options.dropout_in, ()):
                stack.enter_context(without_dropout(encoder))
            return self.first(first, leave_out).float(), self.model(second, leave_out).float()


class TensionLearner(TwinLearner):
    """−Σ y log σ(s) + (1 − y) log (1 − σ(s)), s = f₁(a)·f₂(b), y = 1 where a = b (Carlsson et al. 2021, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | the partner of each: itself for one in 8, another sentence for the others |
    | loss | a sum | over the n pairs |

    Examples:
        >>> learner = TensionLearner(model, CT(negatives=1))
        >>> batch, partners = pack(model, ["a cat", "a dog"]), pack(model, ["a cat", "rain"])
        >>> learner([batch, partners]).count
        2
    """

    options: CT
    compares = "texts"

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of pairs: the first of every group is a sentence with itself."""
        group = self.options.negatives + 1
        if world_size() > 1 and len(views[1]) % group:
            whole = f"batch_size must be a multiple of {group * world_size()} with {world_size()} processes"
            raise SettingsError(f"ct reads pairs in groups of {group}, and a process must have whole ones: {whole}")
        a, b = self.encode(*views)
        y = (torch.arange(len(b), device=b.device) % group == 0).float()
        return Loss(F.binary_cross_entropy_with_logits((a * b).sum(-1), y, reduction="sum"), len(b))


class InBatchTensionLearner(TwinLearner):
    """−½ Σᵢ [log softmaxⱼ(e^t sᵢⱼ)ᵢ + log softmaxⱼ(e^t sⱼᵢ)ᵢ], s the cosines of f₁(xᵢ) and f₂(xⱼ), t learned.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | for the first encoder |
    | `views[1]` | the same n | for the second encoder |
    | loss | a sum | over the n sentences |

    Examples:
        >>> learner = InBatchTensionLearner(model, CTInBatch())
        >>> batch = pack(model, ["a cat sat", "dogs bark"])
        >>> learner([batch, batch]).count
        2
    """

    options: CTInBatch
    compares = "documents"

    def __init__(self, model: Encoder, options: CTInBatch) -> None:
        super().__init__(model, options)
        self.log_scale = nn.Parameter(torch.tensor(math.log(options.scale)))

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch."""
        one, other = views[0], views[-1]
        first, second = (F.normalize(vectors, dim=-1) for vectors in self.encode(one, other))
        scale = self.log_scale.exp()
        total = ranking_loss(first, [second], one, [other], scale) + ranking_loss(second, [first], other, [one], scale)
        return Loss(total / 2, len(one))


CT.method = Method(
    "ct",
    CT,
    TensionLearner,
    published=Settings(
        batch_size=16,
        learning_rate=1e-5,
        steps=50_000,
        schedule="step",
        warmup=0,
        max_length=200,
        optimizer="rmsprop",
        alpha=0.9,
        epsilon=1e-7,
        clip=0,
    ),
    defaults=Settings(batch_size=16, learning_rate=2e-4, epochs=1),
    large_learning_rate=1e-5,
)

CTInBatch.method = Method(
    "ct-inbatch",
    CTInBatch,
    InBatchTensionLearner,
    published=Settings(batch_size=16, learning_rate=5e-5, epochs=1, schedule="linear", warmup=0, max_length=75),
    large_learning_rate=5e-5,
    presets={"published": {"dropout_in": "kept"}},
)
