"""Two encoders: contrastive tension, where they must agree on a sentence; Quick-Thoughts, where on its context."""

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
from selfsent.methods.contrast import POSITIVES, Positives, ViewOptions, ranking_loss
from selfsent.methods.method import OF_DOCUMENTS, Learner, Loss, Method, MethodOptions
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

DropoutIn = Literal["none", "kept", "both"]
DROPOUT_IN = "which encoders train with dropout: none, the one that is kept, or both"


@dataclass(frozen=True)
class CT(MethodOptions):
    """Options of contrastive tension."""

    negatives: int = setting(
        7, "pairs of different sentences for each pair of a sentence with itself", minimum=1, maximum=1000
    )
    anchored: bool = setting(
        False, "the negatives of a group share their first sentence; otherwise both are drawn independently"
    )
    dropout_in: DropoutIn = setting("none", DROPOUT_IN)
    reduction: Literal["mean", "sum"] = setting("mean", "of the losses of a batch's pairs")

    def views(self) -> tuple[View, ...]:
        """What either encoder reads; with anchors the first encoder reads the first sentence of every group."""
        return (View(),) if self.anchored else (View(), View(sampler=NegativeSampler(self.negatives)))


@dataclass(frozen=True)
class CTInBatch(ViewOptions):
    """Options of contrastive tension with in-batch negatives."""

    similarity: Literal["cosine", "dot"] = setting("cosine", "the similarity that is scaled")
    scale: float = setting(20.0, "what similarities are multiplied by, at first", above=0.0)
    learn_scale: bool = setting(True, "the scale is trained, by its logarithm")
    dropout_in: DropoutIn = setting("both", DROPOUT_IN)

    def views(self) -> tuple[View, ...]:
        """What the encoders read: the same sentences, unless something makes two views of them."""
        return self.pair() if self.varied else (View(),)


@dataclass(frozen=True)
class QuickThoughts(ViewOptions):
    """Options of Quick-Thoughts."""

    positives: Positives = setting("neighbours", POSITIVES)
    scale: float = setting(1.0, "multiplies the inner products", above=0.0)
    dropout_in: DropoutIn = setting("both", DROPOUT_IN)


@dataclass(frozen=True)
class InverseCloze(QuickThoughts):
    """Options of the inverse cloze task: those of Quick-Thoughts, with surroundings in place of a neighbour."""

    positives: Positives = setting("surroundings", POSITIVES)
    within: int = setting(5, "sentences of the passage before and behind", minimum=1)


class TwinLearner(Learner):
    """Two encoders with the same weights at first, both trained; the second one, `model`, is kept."""

    def __init__(self, model: Encoder, options: Any) -> None:
        super().__init__(model, options)
        self.first = model.twin()

    def encode(self, first: Packed, second: Packed) -> tuple[Tensor, Tensor]:
        """(n, d) and (m, d) vectors of the sentences that each encoder reads, of any length.

        Products of vectors of length 1 lie between -1 and 1, where the loss of `ct` is least if all of them are -1.
        """
        leave_out = int(self.model.ends_normalized)
        still = {"none": (self.first, self.model), "kept": (self.first,), "both": ()}[self.options.dropout_in]
        with ExitStack() as stack:
            for encoder in still:
                stack.enter_context(without_dropout(encoder))
            one, other = self.both(
                lambda: self.first(first, leave_out),
                lambda: self.model(second, leave_out),
                random=self.options.dropout_in == "both",
            )
        return one.float(), other.float()


class TensionLearner(TwinLearner):
    """−Σ y log σ(s) + (1 − y) log (1 − σ(s)), s = f₁(a)·f₂(b), y = 1 where a = b (Carlsson et al. 2021, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | the partner of each: itself for one in 8, another sentence for the others |
    | loss | a sum | over the n pairs |

    Example:
        >>> learner = TensionLearner(model, CT(negatives=1))
        >>> batch, partners = pack(model, ["a cat", "a dog"]), pack(model, ["a cat", "rain"])
        >>> learner([batch, partners]).count
        2
    """

    options: CT
    compares = "texts"

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of pairs: the first of every group is a sentence with itself."""
        left, right = views[0], views[-1]
        group = self.options.negatives + 1
        if world_size() > 1 and len(right) % group:
            raise SettingsError(
                f"ct reads pairs in groups of {group}, and a process must have whole ones: --batch-size must be a"
                f" multiple of {group * world_size()} with {world_size()} processes"
            )
        if self.options.anchored:
            left = right.take(range(0, len(right), group))
        a, b = self.encode(left, right)
        if self.options.anchored:
            a = a.repeat_interleave(group, dim=0)[: len(b)]
        same = torch.arange(len(right), device=right.device) % group == 0
        total = F.binary_cross_entropy_with_logits((a * b).sum(-1), same.float(), reduction="sum")
        return Loss(total, len(right) if self.options.reduction == "mean" else 1 / world_size())


class InBatchTensionLearner(TwinLearner):
    """−½ Σᵢ [log softmaxⱼ(e^t sᵢⱼ)ᵢ + log softmaxⱼ(e^t sⱼᵢ)ᵢ], s the similarities of f₁(xᵢ) and f₂(xⱼ), t learned.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | for the first encoder |
    | `views[1]` | the same n | for the second encoder |
    | loss | a sum | over the n sentences |

    Example:
        >>> learner = InBatchTensionLearner(model, CTInBatch())
        >>> batch = pack(model, ["a cat sat", "dogs bark"])
        >>> learner([batch, batch]).count
        2
    """

    options: CTInBatch
    compares = "documents"

    def __init__(self, model: Encoder, options: CTInBatch) -> None:
        super().__init__(model, options)
        self.log_scale = nn.Parameter(torch.tensor(math.log(options.scale)), requires_grad=options.learn_scale)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch."""
        one, other = views[0], views[-1]
        first, second = self.encode(one, other)
        if self.options.similarity == "cosine":
            first, second = F.normalize(first, dim=-1), F.normalize(second, dim=-1)
        scale = self.log_scale.exp()
        total = ranking_loss(first, [second], one, [other], scale) + ranking_loss(second, [first], other, [one], scale)
        return Loss(total / 2, len(one))


class DualEncoderLearner(TwinLearner):
    """−log exp(f(s)·g(c)) / Σ exp(f(s)·g(c′)), c a neighbour of the sentence s, c′ those of all sentences of the batch.

    Logeswaran and Lee 2018, section 3. f and g have the same weights at first; f, which reads the sentence, is kept.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | what stands beside each in its document, or around it (inverse cloze) |
    | loss | a sum | over the n sentences |

    Example:
        >>> learner = DualEncoderLearner(model, QuickThoughts())
        >>> batch = pack(model, ["a cat sat", "dogs bark"]), pack(model, ["it slept", "loudly"])
        >>> learner(batch).count
        2
    """

    options: QuickThoughts
    compares = "documents"

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences and what stands beside them."""
        sentences, contexts = views
        context_vectors, vectors = self.encode(contexts, sentences)
        total = ranking_loss(vectors, [context_vectors], sentences, [contexts], self.options.scale)
        return Loss(total, len(sentences))


CT.method = Method(
    name="ct",
    title="Contrastive tension",
    citation="Carlsson, Gyllensten, Gogoulou, Ylipää Hellqvist and Sahlgren, 2021. openreview.net/forum?id=Ov_sMNau-PF",
    objective="binary cross-entropy of σ(f₁(a)·f₂(b)): is b the same sentence as a, or one drawn at random?",
    learner=TensionLearner,
    options=CT,
    published=Settings(
        batch_size=16,
        learning_rate=1e-5,
        steps=50_000,
        schedule="stairs",
        warmup=0,
        optimizer="rmsprop",
        smoothing=0.9,
        epsilon=1e-7,
        clip=0,
        max_length=200,
    ),
    defaults=Settings(batch_size=16, learning_rate=2e-4, epochs=1),
    large_learning_rate=1e-5,
    presets={
        "faithful": {},
        "sentence-transformers": {
            "dropout_in": "kept",
            "reduction": "sum",
            "schedule": "linear",
            "epochs": 1.0,
            "smoothing": 0.99,
            "epsilon": 1e-8,
            "clip": 1.0,
            "max_length": 75,
        },
    },
)

CTInBatch.method = Method(
    name="ct-inbatch",
    title="Contrastive tension with in-batch negatives",
    citation=CT.method.citation + "; in-batch negatives by sentence-transformers",
    objective="cross-entropy of softmax(scale · cos(f₁(a), f₂(b))) over the batch, in both directions",
    learner=InBatchTensionLearner,
    options=CTInBatch,
    published=Settings(batch_size=16, learning_rate=5e-5, epochs=1, schedule="linear", warmup=0, max_length=75),
    large_learning_rate=5e-5,
    presets={"published": {"dropout_in": "kept"}, "dot": {"similarity": "dot", "scale": 1.0, "learn_scale": False}},
)

QuickThoughts.method = Method(
    name="quick-thoughts",
    title="Quick-Thoughts",
    citation="Logeswaran and Lee, 2018. arXiv:1803.02893",
    objective="−log exp(f(s)·g(c)) / Σ exp(f(s)·g(c′)), c the sentence beside s, c′ those of the batch",
    learner=DualEncoderLearner,
    options=QuickThoughts,
    published=Settings(
        batch_size=400, learning_rate=5e-4, epochs=1, schedule="constant", warmup=0, clip=5.0, max_length=32
    ),
    defaults=Settings(batch_size=64, learning_rate=2e-4, epochs=1, max_length=64),
    large_learning_rate=1e-5,
    aimed_at=OF_DOCUMENTS,
    compared=False,
)

InverseCloze.method = Method(
    name="inverse-cloze",
    title="Inverse cloze task",
    citation="Lee, Chang and Toutanova, 2019. arXiv:1906.00300",
    objective="−log exp(f(s)·g(p)) / Σ exp(f(s)·g(p′)), p the passage around s, mostly without s",
    learner=DualEncoderLearner,
    options=InverseCloze,
    pooling="cls",
    published=Settings(
        batch_size=4096, learning_rate=1e-4, steps=100_000, warmup=10_000, weight_decay=0.01, max_length=288
    ),
    defaults=QuickThoughts.method.defaults.but(max_length=128),
    large_learning_rate=1e-5,
    aimed_at=OF_DOCUMENTS,
    compared=False,
)
