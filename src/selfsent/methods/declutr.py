"""DeCLUTR: a span must find the mean of other spans near it in its document, beside masked language modelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from selfsent.data.views import MaskTokens, Span, View
from selfsent.distributed import mean_over_processes
from selfsent.fast.packing import Packed, concatenate
from selfsent.methods.contrast import nt_xent
from selfsent.methods.method import Learner, Loss, Method
from selfsent.methods.mlm import masked_loss
from selfsent.methods.two_views import whole_batch
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, check_limits, setting

LONG, SHORT = (4.0, 2.0), (2.0, 4.0)
"""Exponents of the beta distributions from which the lengths of anchors and of positives are drawn."""


@dataclass(frozen=True)
class Options:
    """Options of DeCLUTR."""

    span: int = setting(5, "sentences in a span at most", minimum=1)
    spans: int = setting(2, "positives of an anchor, whose vectors are averaged", minimum=1)
    temperature: float = setting(0.05, "divides the cosines", above=0.0)
    mlm_weight: float = setting(1.0, "weight of the masked-language-model loss on the anchors", minimum=0.0)

    def __post_init__(self) -> None:
        check_limits(self)


def views(options: Options) -> tuple[View, ...]:
    """The anchor, masked where the masked-language-model loss is on, and its positives."""
    anchor = Span("anchor", longest=options.span, overlap=True, anchor_skew=LONG)
    positives = (
        Span("positive", longest=options.span, overlap=True, skew=SHORT, anchor_skew=LONG, number=number)
        for number in range(options.spans)
    )
    masked = MaskTokens() if options.mlm_weight else None
    return (View(noise=masked, passage=anchor), *(View(passage=positive) for positive in positives))


class SpansLearner(Learner):
    """NT-Xent of anchors and the means of their positives, and the loss of masked tokens (Giorgi et al. 2021, eq. 1-3).

    As in the authors' code, the anchors are read once, with their masks: their states give both the vectors and the
    words.

    | | shape | |
    |---|---|---|
    | `views[0]` | n spans of text | anchors, with words to predict as `targets` |
    | `views[1:]` | n spans each | positives from near the anchors; their vectors are averaged |
    | loss | a sum | over the n anchors |

    Example:
        >>> learner = SpansLearner(model, Options(mlm_weight=0.0))
        >>> batch = [pack(model, texts) for texts in (["a cat", "rain"], ["it sat", "wet"], ["it ran", "drops"])]
        >>> learner(batch).count
        2
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        if options.mlm_weight:
            model.require_head("the masked-language-model loss")

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of anchors and their positives."""
        whole_batch(len(views[0]))
        chosen, masked = self.options, views[0]
        states = self.model.states(masked)
        anchors = (self.model(masked) if self.model.token_modules else self.model.pool(states, masked)).float()
        positives = torch.stack(self.model(concatenate(views[1:])).float().chunk(chosen.spans)).mean(0)
        total = nt_xent(anchors, positives, anchors, positives, chosen.temperature, views) / 2
        if chosen.mlm_weight:
            words = masked_loss(self.model.require_head("declutr"), states, masked)
            weight = chosen.mlm_weight * len(anchors) / (mean_over_processes(words.count, total.device) or 1)
            total = total + weight * words.total
        return Loss(total, len(anchors))


DECLUTR = Method(
    name="declutr",
    title="DeCLUTR: deep contrastive learning for unsupervised textual representations",
    citation="Giorgi, Nitski, Wang and Bader, 2021. arXiv:2006.03659",
    objective="NT-Xent of a span and the mean of spans near it, and cross-entropy at masked positions",
    learner=SpansLearner,
    options=Options,
    views=views,
    batchwise=True,
    pooling="mean",
    # Two anchors of each of sixteen documents; the configuration of the authors' code has four documents a GPU.
    published=Settings(
        batch_size=32, learning_rate=5e-5, epochs=1, warmup=0.1, weight_decay=0.1, epsilon=1e-6, max_length=512
    ),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1, max_length=128),
    large_learning_rate=2e-5,
    predicts_words=lambda options: options.mlm_weight > 0,
)
