"""Contrastive tension: two copies of the encoder must agree on a sentence, and on nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.data.views import Partners, View
from selfsent.distributed import world_size
from selfsent.errors import SettingsError
from selfsent.fast.packing import Packed
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.methods.two_views import whole_batch
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, check_limits, setting

DropoutIn = Literal["none", "kept", "both"]
DROPOUT_IN = "which encoders train with dropout: none, the one that is kept, or both"


@dataclass(frozen=True)
class Options:
    """Options of contrastive tension."""

    negatives: int = setting(
        7, "pairs of different sentences for each pair of a sentence with itself", minimum=1, maximum=1000
    )
    anchored: bool = setting(
        False, "the negatives of a group share their first sentence; otherwise both are drawn independently"
    )
    dropout_in: DropoutIn = setting("none", DROPOUT_IN)
    reduction: Literal["mean", "sum"] = setting("mean", "of the losses of a batch's pairs")

    def __post_init__(self) -> None:
        check_limits(self)


def views(options: Options) -> tuple[View, ...]:
    """What either encoder reads; with anchors the first of every group is the one sentence the first encoder reads."""
    return (View(),) if options.anchored else (View(), View(partners=Partners(options.negatives)))


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
            return self.both(
                lambda: self.first(first, leave_out),
                lambda: self.model(second, leave_out),
                random=self.options.dropout_in == "both",
            )


class TensionLearner(TwinLearner):
    """−Σ y log σ(s) + (1 − y) log (1 − σ(s)), s = f₁(a)·f₂(b), y = 1 where a = b (Carlsson et al. 2021, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences |  |
    | `views[1]` | n sentences | the partner of each: itself for one in 8, another sentence for the others |
    | loss | a sum | over the n pairs |

    Example:
        >>> learner = TensionLearner(model, Options(negatives=1))
        >>> batch, partners = pack(model, ["a cat", "a dog"]), pack(model, ["a cat", "rain"])
        >>> learner([batch, partners]).count
        2
    """

    options: Options

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of pairs: the first of every group is a sentence with itself."""
        right = views[-1]
        whole_batch(len(right))
        group = self.options.negatives + 1
        if world_size() > 1 and len(right) % group:
            raise SettingsError(
                f"ct reads pairs in groups of {group}, and a process must have whole ones: --batch-size must be a"
                f" multiple of {group * world_size()} with {world_size()} processes"
            )
        place = torch.arange(len(right), device=right.device)
        left = right.take(range(0, len(right), group)) if self.options.anchored else views[0]
        a, b = self.encode(left, right)
        if self.options.anchored:
            a = a.repeat_interleave(group, dim=0)[: len(b)]
        scores = (a.float() * b.float()).sum(-1)
        total = F.binary_cross_entropy_with_logits(scores, (place % group == 0).float(), reduction="sum")
        return Loss(total, len(right) if self.options.reduction == "mean" else 1 / world_size())


CT = Method(
    name="ct",
    title="Contrastive tension",
    citation="Carlsson, Gyllensten, Gogoulou, Ylipää Hellqvist and Sahlgren, 2021. openreview.net/forum?id=Ov_sMNau-PF",
    objective="binary cross-entropy of σ(f₁(a)·f₂(b)): is b the same sentence as a, or one drawn at random?",
    learner=TensionLearner,
    options=Options,
    views=views,
    batchwise=True,
    by_document=False,
    pooling="mean",
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
    static=STATIC,
    presets={
        "original": {},
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
