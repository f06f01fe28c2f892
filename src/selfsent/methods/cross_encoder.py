"""The cross-encoder: two texts read as one input, and a score or a class for both together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed, concatenate
from selfsent.data.views.view import View
from selfsent.errors import SettingsError
from selfsent.methods.method import Facts, Labels, Learner, Loss, Method, MethodOptions
from selfsent.models.cross_encoder import CrossEncoder as CrossEncoderModel
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class CrossEncoder(MethodOptions):
    """Options of the cross-encoder."""

    loss: Literal["bce", "mse", "softmax"] = setting(
        "bce",
        "bce: cross-entropy of a sigmoid and score / scale; mse: squared error of the score; softmax: classes",
    )
    scale: float | None = setting(
        None, "what scores are divided by (default: the largest of the corpus; 1 with --loss mse)", above=0.0
    )
    classes: int | None = setting(None, "number of classes (default: as many as the corpus has)", minimum=2)
    both_orders: bool = setting(False, "every pair is read in both orders")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss == "softmax" and self.scale is not None:
            raise SettingsError("--scale divides scores, and --loss softmax learns classes: leave one of them out")
        if self.loss != "softmax" and self.classes is not None:
            raise SettingsError(f"--loss {self.loss} learns scores: leave out --classes, or give --loss softmax")

    def views(self) -> tuple[View, ...]:
        """The pair as one input, perhaps in both orders."""
        return (View(0, second_column=1), View(1, second_column=0)) if self.both_orders else (View(0, second_column=1),)

    def labels(self) -> Labels:
        """Classes, or scores that a sigmoid can reach, or any scores."""
        if self.loss == "softmax":
            return Labels("class", self.classes)
        low, high = (0.0, 1.0) if self.loss == "bce" else (-math.inf, math.inf)
        return Labels("score", scale=self.scale, low=low, high=high, hint="; --loss softmax learns classes")

    def fitted(self, facts: Facts) -> Self:
        """The options, with classes or scale of the corpus; `mse` learns scores as they are."""
        if self.loss == "mse":
            return self
        return self.completed(classes=facts.classes) if self.loss == "softmax" else self.completed(scale=facts.largest)


class CrossEncoderLearner(Learner):
    """BCE(σ(w·h), y/scale), (w·h − y/scale)² or cross-entropy of W·h, h the vector of "[CLS] a [SEP] b [SEP]".

    Devlin et al. 2019, sections 3.2 and 4; h is led through a dense layer with tanh, the base's pooler if it has one.

    | | shape | |
    |---|---|---|
    | `views[0]` | n pairs of texts | joined as one input each, with token types |
    | `labels` | (n,) | classes, or scores from 0 to `scale` |
    | loss | a sum | over the n pairs |

    Example:
        >>> learner = CrossEncoderLearner(model, CrossEncoder(loss="mse"))
        >>> joined = pack(model, ["a cat sat [SEP] it slept"])
        >>> learner([joined], torch.tensor([0.5])).count
        1
    """

    model: CrossEncoderModel
    options: CrossEncoder

    def __init__(self, model: Encoder, options: CrossEncoder) -> None:
        outputs = (options.classes or 2) if options.loss == "softmax" else 1
        activation = nn.Sigmoid() if options.loss == "bce" else nn.Identity()
        super().__init__(CrossEncoderModel(model, outputs, activation), options)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of joined pairs; `labels` are (batch,) classes or scores."""
        assert labels is not None
        scores = self.model.scores(concatenate(views)).float()
        wanted = labels.repeat(len(views))
        if self.options.loss == "softmax":
            total = F.cross_entropy(scores, wanted, reduction="sum")
        else:
            wanted = wanted / (self.options.scale or 1.0)
            loss = F.mse_loss if self.options.loss == "mse" else F.binary_cross_entropy_with_logits
            total = loss(scores[:, 0], wanted, reduction="sum")
        return Loss(total, len(wanted))

    def save(self, directory: Path) -> None:
        """Write the cross-encoder, the names of its classes in the transformer's configuration."""
        if self.options.loss == "softmax":
            names = self.class_names
            config: Any = self.model.transformer.config
            config.id2label, config.label2id = dict(enumerate(names)), {name: i for i, name in enumerate(names)}
        super().save(directory)


CrossEncoder.method = Method(
    name="cross-encoder",
    title="Cross-encoder over pairs of texts",
    citation="Devlin, Chang, Lee and Toutanova, 2019. arXiv:1810.04805",
    objective="cross-entropy of σ(w·h) and y / scale (or a squared error, or classes), h of [CLS] a [SEP] b [SEP]",
    learner=CrossEncoderLearner,
    options=CrossEncoder,
    pooling="cls",
    published=Settings(batch_size=32, learning_rate=2e-5, epochs=3, weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=16, learning_rate=1e-4, epochs=4),
    static=None,
    presets={"published": {"loss": "mse"}},
    supervised=True,
)
