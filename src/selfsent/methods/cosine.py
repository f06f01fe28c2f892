"""Cosine regression, SBERT's objective for scored pairs: the cosine of two sentences is to be their score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from selfsent.data.views import View
from selfsent.fast.packing import Packed, concatenate
from selfsent.methods.labels import Labels, with_scale
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.settings import Settings, check_limits, setting


@dataclass(frozen=True)
class Options:
    """Options of cosine regression."""

    scale: float | None = setting(None, "what scores are divided by (default: the largest of the corpus)", above=0.0)

    def __post_init__(self) -> None:
        check_limits(self)


class CosineLearner(Learner):
    """(cos(u, v) − y / scale)², u and v the vectors of a pair of score y (Reimers and Gurevych 2019, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts |  |
    | `views[1]` | n texts | the other one of each pair |
    | `labels` | (n,) | scores, from 0 to `scale` |
    | loss | a sum | over the n pairs |

    Example:
        >>> learner = CosineLearner(model, Options(scale=5.0))
        >>> pair = pack(model, ["a cat sat"]), pack(model, ["it sat"])
        >>> learner(pair, torch.tensor([4.2])).count
        1
    """

    options: Options

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of pairs; `labels` are (batch,) scores."""
        assert labels is not None
        first, second = self.model(concatenate(views)).float().chunk(2)
        wanted = labels / (self.options.scale or 1.0)
        return Loss((F.cosine_similarity(first, second) - wanted).square().sum(), len(labels))


COSINE = Method(
    name="cosine",
    title="SBERT's regression objective, for pairs with a score",
    citation="Reimers and Gurevych, 2019. arXiv:1908.10084",
    objective="(cos(u, v) − y / scale)², u and v the vectors of a pair of score y",
    learner=CosineLearner,
    options=Options,
    views=lambda options: (View(0), View(1)),
    labels=lambda options: Labels("score", scale=options.scale, low=-1.0, high=1.0),
    fitted=with_scale,
    batchwise=False,
    pooling="mean",
    published=Settings(batch_size=16, learning_rate=2e-5, epochs=4, weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=16, learning_rate=5e-4, epochs=4),
    large_learning_rate=2e-5,
    static=STATIC,
)
