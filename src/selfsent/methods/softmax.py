"""Softmax over pairs, SBERT's objective for natural language inference: two vectors tell the class of the pair."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.views import View
from selfsent.fast.packing import Packed, concatenate
from selfsent.methods.labels import Labels, with_classes
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, check_limits, setting

HEAD = "softmax_head"


@dataclass(frozen=True)
class Options:
    """Options of the softmax objective."""

    classes: int | None = setting(None, "number of classes (default: as many as the corpus has)", minimum=2)
    product: bool = setting(False, "the classifier reads the products u∗v too, which the paper advises against")
    hidden: int = setting(
        0, "width of two linear layers before the classes, as in InferSent; 0: the classes at once", minimum=0
    )

    def __post_init__(self) -> None:
        check_limits(self)


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
        >>> learner = SoftmaxLearner(model, Options(classes=3))
        >>> pair = pack(model, ["a cat sat"]), pack(model, ["it stood"])
        >>> learner(pair, torch.tensor([2])).count
        1
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        widths = [(4 if options.product else 3) * model.embedding_size, *[options.hidden] * 2 * bool(options.hidden)]
        layers = [nn.Linear(*pair) for pair in zip(widths, [*widths[1:], options.classes or 2], strict=True)]
        self.classifier = nn.Sequential(*layers) if options.hidden else layers[0]

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of pairs; `labels` are (batch,) classes."""
        assert labels is not None
        first, second = self.model(concatenate(views)).chunk(2)
        scores = self.classifier(self._features(first, second)).float()
        return Loss(F.cross_entropy(scores, labels, reduction="sum"), len(labels))

    def _features(self, first: Tensor, second: Tensor) -> Tensor:
        parts = [first, second, (first - second).abs()]
        return torch.cat([*parts, first * second] if self.options.product else parts, dim=-1)

    def save(self, directory: Path) -> None:
        """Write the encoder, and the classifier in files of its own beside it."""
        super().save(directory)
        weights = {name: tensor.detach().contiguous() for name, tensor in self.classifier.state_dict().items()}
        save_file(weights, str(directory / f"{HEAD}.safetensors"))
        reads = ["u", "v", "|u-v|", "u*v"][: 4 if self.options.product else 3]
        (directory / f"{HEAD}.json").write_text(json.dumps({"classes": self.class_names, "reads": reads}, indent=2))


SOFTMAX = Method(
    name="softmax",
    title="SBERT's softmax objective, for pairs that fall into classes",
    citation="Reimers and Gurevych, 2019. arXiv:1908.10084",
    objective="−log softmax(W [u; v; |u − v|] + b) of the pair's class, u and v its vectors",
    learner=SoftmaxLearner,
    options=Options,
    views=lambda options: (View(0), View(1)),
    labels=lambda options: Labels("class", options.classes),
    fitted=with_classes,
    batchwise=False,
    pooling="mean",
    published=Settings(batch_size=16, learning_rate=2e-5, epochs=1, weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=16, learning_rate=1e-4, epochs=1),
    large_learning_rate=2e-5,
    static=STATIC,
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
)
