"""SBERT's objectives: what is known of two or three texts is fitted to their vectors (Reimers and Gurevych 2019)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed, concatenate
from selfsent.data.views.view import View
from selfsent.methods.method import Facts, Labels, Learner, Loss, Method, MethodOptions
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

HEAD = "softmax_head"


@dataclass(frozen=True)
class Softmax(MethodOptions):
    """Options of the softmax objective."""

    classes: int | None = setting(None, "number of classes (default: as many as the corpus has)", minimum=2)
    product: bool = setting(False, "the classifier reads the products u∗v too, which the paper advises against")
    hidden: int = setting(
        0, "width of two linear layers before the classes, as in InferSent; 0: the classes at once", minimum=0
    )

    def views(self) -> tuple[View, ...]:
        """Both texts."""
        return View(0), View(1)

    def labels(self) -> Labels:
        """The class of a pair."""
        return Labels("class", self.classes)

    def fitted(self, facts: Facts) -> Self:
        """The options, with the classes of the corpus."""
        return self.completed(classes=facts.classes)


@dataclass(frozen=True)
class Cosine(MethodOptions):
    """Options of cosine regression."""

    scale: float | None = setting(None, "what scores are divided by (default: the largest of the corpus)", above=0.0)

    def views(self) -> tuple[View, ...]:
        """Both texts."""
        return View(0), View(1)

    def labels(self) -> Labels:
        """The score of a pair, within the range of a cosine."""
        return Labels("score", scale=self.scale, low=-1.0, high=1.0)

    def fitted(self, facts: Facts) -> Self:
        """The options, with the largest score of the corpus for a scale."""
        return self.completed(scale=facts.largest)


@dataclass(frozen=True)
class Triplet(MethodOptions):
    """Options of the triplet objective."""

    margin: float = setting(1.0, "by how much the third text must be farther away than the second", above=0.0)
    distance: Literal["euclidean", "cosine"] = setting("euclidean", "between two vectors; cosine: 1 − cos")

    def views(self) -> tuple[View, ...]:
        """The anchor, a text like it and one unlike it."""
        return View(0), View(1), View(2)


class SoftmaxLearner(Learner):
    """−log softmax(W [u; v; |u − v|] + b)ᵧ, u and v the vectors of a pair (Reimers and Gurevych 2019, section 3).

    With `product` and `hidden` it is that of InferSent (Conneau et al. 2017, section 3.1): [u; v; |u − v|; u∗v], and
    three linear layers, between which there is nothing in their code.

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts | premises |
    | `views[1]` | n texts | hypotheses |
    | `labels` | (n,) | classes, from 0 |
    | loss | a sum | over the n pairs |

    Example:
        >>> learner = SoftmaxLearner(model, Softmax(classes=3))
        >>> pair = pack(model, ["a cat sat"]), pack(model, ["it stood"])
        >>> learner(pair, torch.tensor([2])).count
        1
    """

    options: Softmax

    def __init__(self, model: Encoder, options: Softmax) -> None:
        super().__init__(model, options)
        widths = [(4 if options.product else 3) * model.embedding_size, *[options.hidden] * 2 * bool(options.hidden)]
        layers = [nn.Linear(*pair) for pair in zip(widths, [*widths[1:], options.classes or 2], strict=True)]
        self.classifier = nn.Sequential(*layers) if options.hidden else layers[0]

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of pairs; `labels` are (batch,) classes."""
        assert labels is not None
        u, v = self.model(concatenate(views)).chunk(2)
        features = torch.cat([u, v, (u - v).abs(), *([u * v] if self.options.product else [])], dim=-1)
        return Loss(F.cross_entropy(self.classifier(features).float(), labels, reduction="sum"), len(labels))

    def save(self, directory: Path) -> None:
        """Write the encoder, and the classifier in files of its own beside it."""
        super().save(directory)
        weights = {name: tensor.detach().contiguous() for name, tensor in self.classifier.state_dict().items()}
        save_file(weights, str(directory / f"{HEAD}.safetensors"))
        reads = ["u", "v", "|u-v|", "u*v"][: 4 if self.options.product else 3]
        (directory / f"{HEAD}.json").write_text(json.dumps({"classes": self.class_names, "reads": reads}, indent=2))


class CosineLearner(Learner):
    """(cos(u, v) − y / scale)², u and v the vectors of a pair of score y (Reimers and Gurevych 2019, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts |  |
    | `views[1]` | n texts | the other one of each pair |
    | `labels` | (n,) | scores, from 0 to `scale` |
    | loss | a sum | over the n pairs |

    Example:
        >>> learner = CosineLearner(model, Cosine(scale=5.0))
        >>> pair = pack(model, ["a cat sat"]), pack(model, ["it sat"])
        >>> learner(pair, torch.tensor([4.2])).count
        1
    """

    options: Cosine

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of pairs; `labels` are (batch,) scores."""
        assert labels is not None
        first, second = self.model(concatenate(views)).float().chunk(2)
        wanted = labels / (self.options.scale or 1.0)
        return Loss((F.cosine_similarity(first, second) - wanted).square().sum(), len(labels))


class TripletLearner(Learner):
    """max(‖a − p‖ − ‖a − n‖ + ε, 0), the text columns being a, p and n (Reimers and Gurevych 2019, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts | anchors |
    | `views[1]` | n texts | like them |
    | `views[2]` | n texts | unlike them |
    | loss | a sum | over the n triplets |

    Example:
        >>> learner = TripletLearner(model, Triplet())
        >>> triplet = [pack(model, [text]) for text in ("a cat", "a kitten", "rain")]
        >>> learner(triplet).count
        1
    """

    options: Triplet

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of triplets."""
        anchor, positive, negative = self.model(concatenate(views)).float().chunk(3)
        excess = self._distance(anchor, positive) - self._distance(anchor, negative) + self.options.margin
        return Loss(F.relu(excess).sum(), len(anchor))

    def _distance(self, first: Tensor, second: Tensor) -> Tensor:
        if self.options.distance == "cosine":
            return 1 - F.cosine_similarity(first, second)
        return F.pairwise_distance(first, second)


Softmax.method = Method(
    name="softmax",
    title="SBERT's softmax objective, for pairs that fall into classes",
    citation="Reimers and Gurevych, 2019. arXiv:1908.10084",
    objective="−log softmax(W [u; v; |u − v|] + b) of the pair's class, u and v its vectors",
    learner=SoftmaxLearner,
    options=Softmax,
    published=Settings(batch_size=16, learning_rate=2e-5, epochs=1, weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=16, learning_rate=1e-4, epochs=1),
    presets={
        # Conneau, Kiela, Schwenk, Barrault and Bordes, 2017. arXiv:1705.02364. Their rate falls by the accuracy on
        # held-out pairs; on a line here.
        "infersent": {
            "product": True,
            "hidden": 512,
            "batch_size": 64,
            "optimizer": "sgd",
            "learning_rate": 0.1,
            "epochs": 20,
            "clip": 5.0,
            "weight_decay": 0.0,
            "warmup": 0,
        }
    },
    supervised=True,
)

Cosine.method = Method(
    name="cosine",
    title="SBERT's regression objective, for pairs with a score",
    citation=Softmax.method.citation,
    objective="(cos(u, v) − y / scale)², u and v the vectors of a pair of score y",
    learner=CosineLearner,
    options=Cosine,
    published=Softmax.method.published.but(epochs=4),
    defaults=Settings(batch_size=16, learning_rate=5e-4, epochs=4),
    supervised=True,
)

Triplet.method = Method(
    name="triplet",
    title="SBERT's triplet objective",
    citation=Softmax.method.citation,
    objective="max(‖a − p‖ − ‖a − n‖ + ε, 0), a, p and n the vectors of a row's three texts",
    learner=TripletLearner,
    options=Triplet,
    published=Softmax.method.published,
    defaults=Softmax.method.defaults,
    presets={"sentence-transformers": {"margin": 5.0}},
    supervised=True,
)
