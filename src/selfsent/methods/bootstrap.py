"""BSL: from one view of a sentence, predict what a slowly moving copy of the encoder makes of the other view."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.fast.packing import Packed, concatenate
from selfsent.foreign.torch import move_all
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.methods.predictor import Predictor
from selfsent.methods.two_views import PairOptions, pair_of_views, require_difference, varied, whole_batch
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

_PREDICTOR_RATE = "learning rate of the predictor, as a multiple of the encoder's"


@dataclass(frozen=True)
class NetworkOptions(PairOptions):
    """Options of the two networks and the predictor, whatever the loss."""

    momentum: float = setting(0.999, "share of the target that stays in each step", minimum=0.0, maximum=1.0)
    momentum_schedule: Literal["constant", "cosine"] = setting(
        "constant", "cosine: the momentum rises to 1 along half a cosine"
    )
    width: int = setting(8, "width of the predictor, as a multiple of the vector's; 0: no predictor", minimum=0)
    chained: int = setting(1, "predictors in a row", minimum=1)
    norms: Literal["both", "first"] = setting("both", "batch norm behind both inner layers of a predictor or the first")
    predictor_rate: float = setting(1.0, _PREDICTOR_RATE, above=0.0)
    target_dropout: bool = setting(False, "dropout in the target network too")


@dataclass(frozen=True)
class Options(NetworkOptions):
    """Options of BSL."""

    predictor_rate: float = setting(10.0, _PREDICTOR_RATE, above=0.0)
    loss: Literal["distance", "cosine"] = setting(
        "distance", "distance: 2 − 2 cos, summed over both directions; cosine: −cos/2"
    )


class TwoNetworks(Learner, ABC):
    """An online network with a predictor, and a target network that follows it."""

    options: NetworkOptions

    def __init__(self, model: Encoder, options: NetworkOptions) -> None:
        super().__init__(model, options)
        require_difference(model, options)
        self.target = model.twin().requires_grad_(False)
        self.predictor = Predictor(model.embedding_size, options.width, options.chained, options.norms == "first")
        self.train()

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; both views go through each network in one pass, through the predictor one by one."""
        whole_batch(len(views[0]))
        both = concatenate(views)
        online, target = self.both(
            lambda: self.model(both), torch.no_grad()(lambda: self.target(both)), random=self.options.target_dropout
        )
        first, second = (self.predictor(vectors).float() for vectors in online.chunk(2))
        return self.compare(views, first, second, *target.float().chunk(2))

    def train(self, mode: bool = True) -> Self:
        """The target network has dropout only where that is wanted."""
        super().train(mode)
        self.target.train(mode and self.options.target_dropout)
        return self

    @abstractmethod
    def compare(
        self, views: Sequence[Packed], first: Tensor, second: Tensor, first_target: Tensor, second_target: Tensor
    ) -> Loss:
        """The loss of (n, d) predictions z₁, z₂ and (n, d) targets h₁, h₂ of both views."""

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """As ever, and the predictor, which starts from nothing, at a rate of its own."""
        rate = self.options.predictor_rate * settings.learning_rate
        return self.with_rate(super().parameter_groups(settings), self.predictor.parameters(), rate)

    @property
    def momentum(self) -> float:
        """δ at this point of the run."""
        if self.options.momentum_schedule == "constant":
            return self.options.momentum
        return 1 - (1 - self.options.momentum) * (1 + math.cos(math.pi * self.progress)) / 2

    @torch.no_grad()
    def after_step(self) -> None:
        """ξ ← δ ξ + (1 − δ) θ."""
        slow = list(self.target.sentence_transformer.parameters())
        fast = list(self.model.sentence_transformer.parameters())
        move_all(slow, fast, 1 - self.momentum)


class BootstrapLearner(TwoNetworks):
    """‖z₁ − h₂‖² + ‖z₂ − h₁‖², all of length one, z = p(f(x)) and h = f′(x) (Zhang et al. 2021, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | one look at them |
    | `views[1]` | the same n | another look: noise, dropout, a translation |
    | loss | a sum | over the n sentences |

    Example:
        >>> learner = BootstrapLearner(model, Options(momentum=0.99))
        >>> one, other = pack(model, ["a cat", "dogs"]), pack(model, ["cat sat", "bark"])
        >>> learner([one, other]).count
        2
    """

    options: Options

    def compare(
        self, views: Sequence[Packed], first: Tensor, second: Tensor, first_target: Tensor, second_target: Tensor
    ) -> Loss:
        """The loss of (n, d) predictions z₁, z₂ and (n, d) targets h₁, h₂."""
        cosines = F.cosine_similarity(first, second_target) + F.cosine_similarity(second, first_target)
        each = 4 - 2 * cosines if self.options.loss == "distance" else -cosines / 2
        return Loss(each.sum(), len(first))


PAPER = {"loss": "cosine", "predictor_rate": 1.0}
CODE = {
    "predictor_rate": 1.0,
    "width": 10,
    "chained": 3,
    "norms": "first",
    "target_dropout": True,
    "learning_rate": 1e-4,
    "weight_decay": 0.0,
    "max_length": 64,
}
"""What the authors' code does otherwise than their paper."""

BOOTSTRAP = Method(
    name="bootstrap",
    title="BSL: bootstrapped sentence representation learning",
    citation="Zhang, He, Liu, Bing and Li, 2021. aclanthology.org/2021.acl-long.402",
    objective="‖p(f(x)) − f′(x′)‖², all of length one, x and x′ two views of a sentence, f′ a moving average of f",
    learner=BootstrapLearner,
    options=Options,
    views=pair_of_views,
    batchwise=True,
    in_batch_negatives=False,
    pooling="mean",
    published=Settings(batch_size=64, learning_rate=5e-4, epochs=1, schedule="linear", weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=64, learning_rate=3e-4, epochs=1),
    large_learning_rate=5e-5,
    static=STATIC,
    suits_static=varied,
    presets={"published": PAPER, "paper": PAPER, "code": CODE, "faithful": CODE},
)
