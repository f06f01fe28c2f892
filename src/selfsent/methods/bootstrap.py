"""BSL: from one view of a sentence, predict a slowly moving copy's vector of the other view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed, concatenate
from selfsent.distributed import gather, world_size
from selfsent.foreign.torch import move_all
from selfsent.methods.contrast import nt_xent
from selfsent.methods.method import Compares, Learner, Loss, Method
from selfsent.methods.positives import PairOptions
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting

_PREDICTOR_RATE = "learning rate of the predictor, as a multiple of the encoder's"


@dataclass(frozen=True)
class NetworkOptions(PairOptions):
    """Options of the two networks and the predictor, whatever the loss."""

    momentum: float = setting(0.999, "share of the target that stays in each step", minimum=0.0, maximum=1.0)
    width: int = setting(8, "width of the predictor, as a multiple of the vector's; 0: no predictor", minimum=0)
    chained: int = setting(1, "predictors in a row", minimum=1)
    norms: Literal["both", "first"] = setting("both", "batch norm after both inner layers of a predictor or the first")
    predictor_rate: float = setting(1.0, _PREDICTOR_RATE, above=0.0)
    target_dropout: bool = setting(False, "dropout in the target network too")


@dataclass(frozen=True)
class Bootstrap(NetworkOptions):
    """BSL: bootstrapped sentence representation learning.

    ‖p(f(x)) − f′(x′)‖², all of length one, x and x′ two views of a sentence, f′ a moving average of f.

    Zhang, He, Liu, Bing and Li, 2021. aclanthology.org/2021.acl-long.402.
    """

    predictor_rate: float = setting(10.0, _PREDICTOR_RATE, above=0.0)
    loss: Literal["distance", "cosine"] = setting("distance", "distance: 2 − 2 cos of both directions; cosine: −cos/2")


@dataclass(frozen=True)
class NTXent(NetworkOptions):
    """NT-Xent, the contrastive ablation of BSL.

    −log exp(cos(z, h′)/τ) / Σ exp(cos(z, h)/τ), h the 2n views of the batch less the one z is made from.

    Chen, Kornblith, Norouzi and Hinton, 2020. arXiv:2002.05709; aclanthology.org/2021.acl-long.402.
    """

    temperature: float = setting(0.05, "divides the cosines", above=0.0)


class BatchNorm(nn.Module):
    """Batch norm over the rows of all processes, in float32.

    It keeps no running statistics: a predictor is used in training only. (torch's synchronised one runs on CUDA alone.)
    """

    def __init__(self, size: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))
        self.epsilon = epsilon

    def forward(self, rows: Tensor) -> Tensor:
        """(n, d) to (n, d); every process has as many rows."""
        rows = rows.float()
        total = len(rows) * world_size()
        centred = rows - gather(rows.sum(0, keepdim=True)).sum(0) / total
        variance = gather(centred.square().sum(0, keepdim=True)).sum(0) / total
        return centred * (variance + self.epsilon).rsqrt() * self.weight + self.bias


class Predictor(nn.Sequential):
    """d → kd → kd → d, with batch norm and ReLU between (Zhang et al. 2021, section 3), perhaps several in a row.

    Args:
        size: d.
        width: k; with 0 there is no predictor at all.
        chained: number of predictors in a row.
        first_only: batch norm after the first linear layer only, as in the authors' code.
    """

    def __init__(self, size: int, width: int = 8, chained: int = 1, first_only: bool = False) -> None:
        layers: list[nn.Module] = []
        inner = width * size
        for _ in range(chained if width else 0):
            second = [nn.Linear(inner, inner), *([] if first_only else [BatchNorm(inner)]), nn.ReLU()]
            layers += [nn.Linear(size, inner), BatchNorm(inner), nn.ReLU(), *second, nn.Linear(inner, size)]
        super().__init__(*layers)


class BootstrapLearner(Learner):
    """‖z₁ − h₂‖² + ‖z₂ − h₁‖², all of length one, z = p(f(x)) and h = f′(x) (Zhang et al. 2021, section 3).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | one look at them |
    | `views[1]` | the same n | another look: noise, dropout, a translation |
    | loss | a sum | over the n sentences |

    Examples:
        >>> learner = BootstrapLearner(model, Bootstrap(momentum=0.99))
        >>> one, other = pack(model, ["a cat", "dogs"]), pack(model, ["cat sat", "bark"])
        >>> learner([one, other]).count
        2
    """

    options: Any
    compares: ClassVar[Compares] = "batch"

    def __init__(self, model: Encoder, options: NetworkOptions) -> None:
        super().__init__(model, options)
        self.target = model.twin().requires_grad_(False)
        self.predictor = Predictor(model.embedding_size, options.width, options.chained, options.norms == "first")
        self.train()

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; both views go through each network in one pass, through the predictor one by one."""
        both = concatenate(views)
        online = self.model(both)
        with torch.no_grad():
            target = self.target(both)
        z = [self.predictor(vectors).float() for vectors in online.chunk(2)]
        return self.compare(views, z, target.float().chunk(2))

    def compare(self, views: Sequence[Packed], z: Sequence[Tensor], h: Sequence[Tensor]) -> Loss:
        """The loss of (n, d) predictions z₁, z₂ and (n, d) targets h₁, h₂."""
        cosines = F.cosine_similarity(z[0], h[1]) + F.cosine_similarity(z[1], h[0])
        each = 4 - 2 * cosines if self.options.loss == "distance" else -cosines / 2
        return Loss(each.sum(), len(each))

    def train(self, mode: bool = True) -> Self:
        """The target network has dropout by option only."""
        super().train(mode)
        self.target.train(mode and self.options.target_dropout)
        return self

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """The default groups, and the predictor, which is untrained, at its own rate."""
        rate = self.options.predictor_rate * settings.learning_rate
        return self.at_rate(rate, self.predictor, super().parameter_groups(settings))

    @torch.no_grad()
    def after_step(self) -> None:
        """ξ ← δ ξ + (1 − δ) θ."""
        both = (encoder.sentence_transformer.parameters() for encoder in (self.target, self.model))
        slow, fast = zip(*(pair for pair in zip(*both, strict=True) if pair[0] is not pair[1]), strict=True)
        move_all(slow, fast, 1 - self.options.momentum)


class NtxentLearner(BootstrapLearner):
    """−log exp(cos(z, h′)/τ) / Σ exp(cos(z, h)/τ), summed over both views of every sentence (Chen et al. 2020, eq. 1).

    Everything but the loss is BSL's: the predictions z of the online network are compared with what the target network
    makes of all 2n views, less the view that z itself was made from.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | one look at them |
    | `views[1]` | the same n | another look |
    | loss | a sum | over the 2n looks |

    Examples:
        >>> learner = NtxentLearner(model, NTXent())
        >>> one, other = pack(model, ["a cat", "dogs"]), pack(model, ["cat sat", "bark"])
        >>> learner([one, other]).count
        4
    """

    compares = "documents"

    def compare(self, views: Sequence[Packed], z: Sequence[Tensor], h: Sequence[Tensor]) -> Loss:
        """The loss of (n, d) predictions z₁, z₂ and (n, d) targets h₁, h₂: one positive and 2(n − 1) negatives each."""
        return Loss(nt_xent(z, h, self.options.temperature, views), 2 * len(z[0]))


_FAITHFUL = {
    **{"predictor_rate": 1.0, "width": 10, "chained": 3, "norms": "first", "target_dropout": True},
    **{"learning_rate": 1e-4, "weight_decay": 0.0, "max_length": 64},
}
"""Differences of the authors' code to their paper."""

Bootstrap.method = Method(
    "bootstrap",
    Bootstrap,
    BootstrapLearner,
    published=Settings(batch_size=64, learning_rate=5e-4, epochs=1, schedule="linear", weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=64, learning_rate=3e-4, epochs=1),
    large_learning_rate=5e-5,
    presets={"published": {"loss": "cosine", "predictor_rate": 1.0}, "faithful": _FAITHFUL},
)

NTXent.method = Bootstrap.method.replace(
    name="ntxent",
    learner=NtxentLearner,
    options=NTXent,
    defaults=Bootstrap.method.defaults.replace(learning_rate=5e-4),
    presets={"faithful": _FAITHFUL},
)
