"""Methods with labels: SBERT's objectives on vectors of texts, and the cross-encoder that reads two texts as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed, concatenate
from selfsent.data.views.view import View
from selfsent.errors import SettingsError
from selfsent.methods.method import Labels, Learner, Loss, Method, MethodOptions
from selfsent.models.cross_encoder import CrossEncoder as CrossEncoderModel
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class Softmax(MethodOptions):
    """SBERT's softmax objective, for pairs that fall into classes.

    −log softmax(W [u; v; |u − v|] + b) of the pair's class, u and v its vectors.

    Reimers and Gurevych, 2019. arXiv:1908.10084.
    """

    classes: int | None = setting(None, "number of classes (default: as many as the corpus has)", minimum=2)

    def views(self) -> tuple[View, ...]:
        """Both texts."""
        return View(0), View(1)

    def labels(self) -> Labels:
        """The class of a pair."""
        return Labels("class", self.classes)

    def fitted(self, columns: int, classes: int | None = None, largest: float | None = None) -> Self:
        """The options, with the classes of the corpus."""
        return self.completed(classes=classes)


@dataclass(frozen=True)
class Cosine(MethodOptions):
    """SBERT's regression objective, for pairs with a score.

    (cos(u, v) − y / scale)², u and v the vectors of a pair of score y.

    Reimers and Gurevych, 2019. arXiv:1908.10084.
    """

    scale: float | None = setting(None, "what scores are divided by (default: the largest of the corpus)", above=0.0)

    def views(self) -> tuple[View, ...]:
        """Both texts."""
        return View(0), View(1)

    def labels(self) -> Labels:
        """The score of a pair, within the range of a cosine."""
        return Labels("score", scale=self.scale, low=-1.0, high=1.0)

    def fitted(self, columns: int, classes: int | None = None, largest: float | None = None) -> Self:
        """The options, with the largest score of the corpus for a scale."""
        return self.completed(scale=largest)


@dataclass(frozen=True)
class Triplet(MethodOptions):
    """SBERT's triplet objective.

    max(‖a − p‖ − ‖a − n‖ + ε, 0), a, p and n the vectors of a row's three texts.

    Reimers and Gurevych, 2019. arXiv:1908.10084.
    """

    margin: float = setting(1.0, "by how much the third text must be farther away than the second", above=0.0)

    def views(self) -> tuple[View, ...]:
        """The anchor, a text like it and one unlike it."""
        return View(0), View(1), View(2)


class SoftmaxLearner(Learner):
    """−log softmax(W [u; v; |u − v|] + b)ᵧ, u and v the vectors of a pair (Reimers and Gurevych 2019, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts | premises |
    | `views[1]` | n texts | hypotheses |
    | `labels` | (n,) | classes, from 0 |
    | loss | a sum | over the n pairs |

    Examples:
        >>> learner = SoftmaxLearner(model, Softmax(classes=3))
        >>> pair = pack(model, ["a cat sat"]), pack(model, ["it stood"])
        >>> learner(pair, torch.tensor([2])).count
        1
    """

    options: Softmax

    def __init__(self, model: Encoder, options: Softmax) -> None:
        super().__init__(model, options)
        self.classifier = nn.Linear(3 * model.embedding_size, options.classes or 2)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of pairs; `labels` are (batch,) classes."""
        assert labels is not None
        u, v = self.model(concatenate(views)).chunk(2)
        features = torch.cat([u, v, (u - v).abs()], dim=-1)
        return Loss(F.cross_entropy(self.classifier(features).float(), labels, reduction="sum"), len(labels))


class CosineLearner(Learner):
    """(cos(u, v) − y / scale)², u and v the vectors of a pair of score y (Reimers and Gurevych 2019, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts |  |
    | `views[1]` | n texts | the other one of each pair |
    | `labels` | (n,) | scores, from 0 to `scale` |
    | loss | a sum | over the n pairs |

    Examples:
        >>> learner = CosineLearner(model, Cosine(scale=5.0))
        >>> pair = pack(model, ["a cat sat"]), pack(model, ["it sat"])
        >>> learner(pair, torch.tensor([4.2])).count
        1
    """

    options: Cosine
    nests = True

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of pairs; `labels` are (batch,) scores."""
        assert labels is not None
        u, v = self.model(concatenate(views)).float().chunk(2)
        y = labels / (self.options.scale or 1.0)
        return Loss((F.cosine_similarity(u, v) - y).square().sum(), len(y))


class TripletLearner(Learner):
    """max(‖a − p‖ − ‖a − n‖ + ε, 0), the text columns being a, p and n (Reimers and Gurevych 2019, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts | anchors |
    | `views[1]` | n texts | like them |
    | `views[2]` | n texts | unlike them |
    | loss | a sum | over the n triplets |

    Examples:
        >>> learner = TripletLearner(model, Triplet())
        >>> triplet = [pack(model, [text]) for text in ("a cat", "a kitten", "rain")]
        >>> learner(triplet).count
        1
    """

    options: Triplet
    nests = True

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of triplets."""
        a, p, n = self.model(concatenate(views)).float().chunk(3)
        return Loss(F.triplet_margin_loss(a, p, n, self.options.margin, reduction="sum"), len(a))


Softmax.method = Method(
    "softmax",
    Softmax,
    SoftmaxLearner,
    published=Settings(batch_size=16, learning_rate=2e-5, epochs=1, weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=16, learning_rate=1e-4, epochs=1),
    supervised=True,
)

Cosine.method = Softmax.method.replace(
    name="cosine",
    learner=CosineLearner,
    options=Cosine,
    published=Softmax.method.published.replace(epochs=4),
    defaults=Settings(batch_size=16, learning_rate=5e-4, epochs=4),
)

Triplet.method = Softmax.method.replace(name="triplet", learner=TripletLearner, options=Triplet)


@dataclass(frozen=True)
class CrossEncoder(MethodOptions):
    """Cross-encoder over pairs of texts.

    cross-entropy of σ(w·h) and y / scale (or a squared error, or classes), h of [CLS] a [SEP] b [SEP].

    Devlin, Chang, Lee and Toutanova, 2019. arXiv:1810.04805.
    """

    loss: Literal["bce", "mse", "softmax"] = setting(
        "bce", "bce: cross-entropy of a sigmoid and score / scale; mse: squared error of the score; softmax: classes"
    )
    scale: float | None = setting(None, "divisor of scores (default: the largest; 1 with --loss mse)", above=0.0)
    classes: int | None = setting(None, "number of classes (default: as many as the corpus has)", minimum=2)
    both_orders: bool = setting(False, "every pair is read in both orders")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss == "softmax" and self.scale is not None:
            raise SettingsError("`scale` divides scores, and loss=softmax learns classes: leave one of them out")
        if self.loss != "softmax" and self.classes is not None:
            raise SettingsError(f"loss={self.loss} learns scores: leave out `classes`, or give loss=softmax")

    def views(self) -> tuple[View, ...]:
        """The pair as one input, perhaps in both orders."""
        return (View(0, second_column=1, side="bare"), View(1, second_column=0, side="bare"))[: 1 + self.both_orders]

    def labels(self) -> Labels:
        """Classes, or scores that a sigmoid can reach, or any scores."""
        if self.loss == "softmax":
            return Labels("class", self.classes)
        low, high = (0.0, 1.0) if self.loss == "bce" else (-math.inf, math.inf)
        return Labels("score", scale=self.scale, low=low, high=high, hint="; loss=softmax learns classes")

    def fitted(self, columns: int, classes: int | None = None, largest: float | None = None) -> Self:
        """The options, with classes or scale of the corpus; `mse` learns scores as they are."""
        if self.loss == "mse":
            return self
        return self.completed(classes=classes) if self.loss == "softmax" else self.completed(scale=largest)


class CrossEncoderLearner(Learner):
    """BCE(σ(w·h), y/scale), (w·h − y/scale)² or cross-entropy of W·h, h the vector of "[CLS] a [SEP] b [SEP]".

    Devlin et al. 2019, sections 3.2 and 4; h is led through a dense layer with tanh, the base's pooler if it has one.

    | | shape | |
    |---|---|---|
    | `views[0]` | n pairs of texts | joined as one input each, with token types |
    | `labels` | (n,) | classes, or scores from 0 to `scale` |
    | loss | a sum | over the n pairs |

    Examples:
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
        y = labels.repeat(len(views))
        if self.options.loss == "softmax":
            return Loss(F.cross_entropy(scores, y, reduction="sum"), len(y))
        loss = F.mse_loss if self.options.loss == "mse" else F.binary_cross_entropy_with_logits
        return Loss(loss(scores[:, 0], y / (self.options.scale or 1.0), reduction="sum"), len(y))

    def save(self, directory: Path) -> None:
        """Write the cross-encoder, the names of its classes in the transformer's configuration."""
        if self.options.loss == "softmax":
            names = self.class_names
            config: Any = self.model.transformer.config
            config.id2label, config.label2id = dict(enumerate(names)), {name: i for i, name in enumerate(names)}
        super().save(directory)


CrossEncoder.method = Method(
    "cross-encoder",
    CrossEncoder,
    CrossEncoderLearner,
    pooling="cls",
    published=Settings(batch_size=32, learning_rate=2e-5, epochs=3, weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=16, learning_rate=1e-4, epochs=4),
    static=None,
    presets={"published": {"loss": "mse"}},
    supervised=True,
)
