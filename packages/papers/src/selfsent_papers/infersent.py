"""InferSent: a classifier of labelled pairs over a bidirectional network with max pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed, concatenate
from selfsent.methods.method import Learner, Loss, Method
from selfsent.methods.supervised import Softmax
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class InferSent(Softmax):
    """InferSent, for pairs that fall into classes.

    −log softmax(W₃ W₂ W₁ [u; v; |u − v|; u∗v]) of the pair's class, with biases, u and v the maxima of BiLSTM states.

    Conneau et al., 2017. arXiv:1705.02364.
    """

    hidden: int = setting(512, "width of the two layers before the classes", minimum=1)


class InferSentLearner(Learner):
    """−log softmax(W₃(W₂(W₁ f + b₁) + b₂) + b₃)ᵧ, f = [u; v; |u − v|; u∗v] (Conneau et al. 2017, section 3.1).

    Between the layers there is nothing, as in the authors' code.

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts | premises |
    | `views[1]` | n texts | hypotheses |
    | `labels` | (n,) | classes, from 0 |
    | loss | a sum | over the n pairs |

    Examples:
        >>> learner = InferSentLearner(model, InferSent(classes=3))
        >>> pair = pack(model, ["a cat sat"]), pack(model, ["it stood"])
        >>> learner(pair, torch.tensor([2])).count
        1
    """

    options: InferSent

    def __init__(self, model: Encoder, options: InferSent) -> None:
        super().__init__(model, options)
        widths = (4 * model.embedding_size, options.hidden, options.hidden, options.classes or 2)
        self.classifier = nn.Sequential(*(nn.Linear(*pair) for pair in pairwise(widths)))

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of pairs; `labels` are (batch,) classes."""
        assert labels is not None
        u, v = self.model(concatenate(views)).chunk(2)
        features = torch.cat([u, v, (u - v).abs(), u * v], dim=-1)
        return Loss(F.cross_entropy(self.classifier(features).float(), labels, reduction="sum"), len(labels))


InferSent.method = Method("infersent", InferSent, InferSentLearner).replace(
    pooling="max",
    # Theirs falls by 1 % a pass, and to a fifth when the accuracy on held-out pairs falls.
    published=Settings(batch_size=64, learning_rate=0.1, epochs=20, warmup=0, optimizer="sgd", clip=5.0),
    large_learning_rate=5e-4,
    default_base="bilstm:512",
    supervised=True,
    compared=False,
)
