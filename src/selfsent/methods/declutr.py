"""DeCLUTR: a span must find the mean of other spans near it in its document, beside masked language modelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from selfsent.data.packed import Packed, concatenate
from selfsent.data.views.noise import MaskTokens
from selfsent.data.views.positives import Span
from selfsent.data.views.view import View
from selfsent.methods.contrast import nt_xent
from selfsent.methods.method import OF_DOCUMENTS, Learner, Loss, Method, MethodOptions
from selfsent.methods.mlm import added_loss
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

LONG, SHORT = (4.0, 2.0), (2.0, 4.0)
"""Exponents of the beta distributions from which the lengths of anchors and of positives are drawn."""


@dataclass(frozen=True)
class DeCLUTR(MethodOptions):
    """Options of DeCLUTR."""

    span: int = setting(5, "sentences in a span at most", minimum=1)
    spans: int = setting(2, "positives of an anchor, whose vectors are averaged", minimum=1)
    temperature: float = setting(0.05, "divides the cosines", above=0.0)
    mlm_weight: float = setting(1.0, "weight of the masked-language-model loss on the anchors", minimum=0.0)

    def views(self) -> tuple[View, ...]:
        """The anchor, masked for the masked-language-model loss, and its positives."""
        anchor = Span("anchor", longest=self.span, overlap=True, anchor_skew=LONG)
        positives = (replace(anchor, part="positive", skew=SHORT, number=number) for number in range(self.spans))
        masked = MaskTokens() if self.mlm_weight else None
        return (View(noise=masked, passage=anchor), *(View(passage=positive) for positive in positives))

    @property
    def predicts_words(self) -> bool:
        """Whether there is a masked-language-model loss."""
        return self.mlm_weight > 0


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
        >>> learner = SpansLearner(model, DeCLUTR(mlm_weight=0.0))
        >>> batch = [pack(model, texts) for texts in (["a cat", "rain"], ["it sat", "wet"], ["it ran", "drops"])]
        >>> learner(batch).count
        2
    """

    options: DeCLUTR
    compares = "documents"

    def __init__(self, model: Encoder, options: DeCLUTR) -> None:
        super().__init__(model, options)
        if options.mlm_weight:
            model.require_head("the masked-language-model loss")

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of anchors and their positives."""
        chosen, masked = self.options, views[0]
        states = self.model.states(masked)
        anchors = (self.model(masked) if self.model.token_modules else self.model.pool(states, masked)).float()
        positives = torch.stack(self.model(concatenate(views[1:])).float().chunk(chosen.spans)).mean(0)
        total = nt_xent(anchors, positives, anchors, positives, chosen.temperature, views) / 2
        if chosen.mlm_weight:
            total = total + added_loss(self, states, masked, len(anchors))
        return Loss(total, len(anchors))


DeCLUTR.method = Method(
    name="declutr",
    title="DeCLUTR: deep contrastive learning for unsupervised textual representations",
    citation="Giorgi, Nitski, Wang and Bader, 2021. arXiv:2006.03659",
    objective="NT-Xent of a span and the mean of spans near it, and cross-entropy at masked positions",
    learner=SpansLearner,
    options=DeCLUTR,
    # Two anchors of each of sixteen documents; the configuration of the authors' code has four documents a GPU.
    published=Settings(
        batch_size=32, learning_rate=5e-5, epochs=1, warmup=0.1, weight_decay=0.1, epsilon=1e-6, max_length=512
    ),
    static=None,
    aimed_at=OF_DOCUMENTS,
    compared=False,
)
