"""Contrastive tension in the batch: each copy of the encoder must find its sentence among those of the other copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.views import View
from selfsent.fast.packing import Packed
from selfsent.methods.contrast import in_batch_cross_entropy, no_negatives, similarities
from selfsent.methods.ct import CT, DROPOUT_IN, DropoutIn, TwinLearner
from selfsent.methods.method import STATIC, Loss, Method
from selfsent.methods.two_views import ViewOptions, differ, two_views, whole_batch
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class Options(ViewOptions):
    """Options of contrastive tension with in-batch negatives."""

    similarity: Literal["cosine", "dot"] = setting("cosine", "the similarity that is scaled")
    scale: float = setting(20.0, "what similarities are multiplied by, at first", above=0.0)
    learn_scale: bool = setting(True, "the scale is trained, by its logarithm")
    dropout_in: DropoutIn = setting("both", DROPOUT_IN)


def views(options: Options) -> tuple[View, ...]:
    """What the encoders read: the same sentences, unless something makes two views of them."""
    return two_views(options) if differ(options) else (View(),)


class InBatchTensionLearner(TwinLearner):
    """−½ Σᵢ [log softmaxⱼ(e^t sᵢⱼ)ᵢ + log softmaxⱼ(e^t sⱼᵢ)ᵢ], s the similarities of f₁(xᵢ) and f₂(xⱼ), t learned.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | for the first encoder |
    | `views[1]` | the same n | for the second encoder |
    | loss | a sum | over the n sentences |

    Example:
        >>> learner = InBatchTensionLearner(model, Options())
        >>> batch = pack(model, ["a cat sat", "dogs bark"])
        >>> learner([batch, batch]).count
        2
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        self.log_scale = nn.Parameter(torch.tensor(math.log(options.scale)), requires_grad=options.learn_scale)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch."""
        one, other = views[0], views[-1]
        whole_batch(len(one))
        first, second = (vectors.float() for vectors in self.encode(one, other))
        if self.options.similarity == "cosine":
            first, second = F.normalize(first, dim=-1), F.normalize(second, dim=-1)
        scale = self.log_scale.exp()
        total = in_batch_cross_entropy(scale * similarities(first, second), no_negatives(one, other, [other]))
        total = total + in_batch_cross_entropy(scale * similarities(second, first), no_negatives(other, one, [one]))
        return Loss(total / 2, len(one))


CT_INBATCH = Method(
    name="ct-inbatch",
    title="Contrastive tension with in-batch negatives",
    citation=CT.citation + "; in-batch negatives by sentence-transformers",
    objective="cross-entropy of softmax(scale · cos(f₁(a), f₂(b))) over the batch, in both directions",
    learner=InBatchTensionLearner,
    options=Options,
    views=views,
    batchwise=True,
    pooling="mean",
    published=Settings(batch_size=16, learning_rate=5e-5, epochs=1, schedule="linear", warmup=0, max_length=75),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1),
    large_learning_rate=5e-5,
    static=STATIC,
    presets={"published": {"dropout_in": "kept"}, "dot": {"similarity": "dot", "scale": 1.0, "learn_scale": False}},
)
