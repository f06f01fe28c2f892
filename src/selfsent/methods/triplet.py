"""Triplets: a sentence is to lie nearer to a second one than to a third, by a margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor
from torch.nn import functional as F

from selfsent.data.views import View
from selfsent.fast.packing import Packed, concatenate
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.settings import Settings, check_limits, setting


@dataclass(frozen=True)
class Options:
    """Options of the triplet objective."""

    margin: float = setting(1.0, "by how much the third text must be farther away than the second", above=0.0)
    distance: Literal["euclidean", "cosine"] = setting("euclidean", "between two vectors; cosine: 1 − cos")

    def __post_init__(self) -> None:
        check_limits(self)


class TripletLearner(Learner):
    """max(‖a − p‖ − ‖a − n‖ + ε, 0), the text columns being a, p and n (Reimers and Gurevych 2019, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts | anchors |
    | `views[1]` | n texts | like them |
    | `views[2]` | n texts | unlike them |
    | loss | a sum | over the n triplets |

    Example:
        >>> learner = TripletLearner(model, Options())
        >>> triplet = [pack(model, [text]) for text in ("a cat", "a kitten", "rain")]
        >>> learner(triplet).count
        1
    """

    options: Options

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of triplets."""
        anchor, positive, negative = self.model(concatenate(views)).float().chunk(3)
        excess = self._distance(anchor, positive) - self._distance(anchor, negative) + self.options.margin
        return Loss(F.relu(excess).sum(), len(anchor))

    def _distance(self, first: Tensor, second: Tensor) -> Tensor:
        if self.options.distance == "cosine":
            return 1 - F.cosine_similarity(first, second)
        return F.pairwise_distance(first, second)


TRIPLET = Method(
    name="triplet",
    title="SBERT's triplet objective",
    citation="Reimers and Gurevych, 2019. arXiv:1908.10084",
    objective="max(‖a − p‖ − ‖a − n‖ + ε, 0), a, p and n the vectors of a row's three texts",
    learner=TripletLearner,
    options=Options,
    views=lambda options: (View(0), View(1), View(2)),
    batchwise=False,
    pooling="mean",
    published=Settings(batch_size=16, learning_rate=2e-5, epochs=1, weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=16, learning_rate=1e-4, epochs=1),
    large_learning_rate=2e-5,
    static=STATIC,
    presets={"sentence-transformers": {"margin": 5.0}},
)
