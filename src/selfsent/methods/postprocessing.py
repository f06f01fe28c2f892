"""Maps above a frozen encoder: whitening, z-scores and BERT-flow."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple, Self, cast

import torch
from torch import Tensor

from selfsent.data.packed import Packed
from selfsent.data.views.view import View
from selfsent.distributed import gather
from selfsent.errors import SettingsError
from selfsent.methods.method import ONE_PASS, Learner, Loss, Method, MethodOptions
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.models.heads.layers import Layers
from selfsent.settings import Settings, setting

logger = logging.getLogger(__name__)

ENOUGH = 1 << 16
"""Sentences that whitening is fitted on where it follows a training: 85 for each dimension of a large encoder.

In part, a thousand are nearly as good: docs/log/methods.md."""
_FLAT = 1e-9
"""Variance, as a share of the largest, below which a direction holds nothing but the rounding errors of float32."""


@dataclass(frozen=True)
class ZScore(MethodOptions):
    """Z-scores of every dimension.

    zⱼ = (uⱼ − μⱼ) / σⱼ.

    Timkey and van Schijndel, 2021. arXiv:2109.04404.
    """

    layers: Layers = setting("last", "layers to average before pooling")


@dataclass(frozen=True)
class Whitening(MethodOptions):
    """Whitening sentence representations.

    z = (u − μ) U Λ^(−s/2), Σ = U Λ Uᵀ the covariance of the vectors u.

    Su, Cao, Liu and Ou, 2021. arXiv:2103.15316.
    """

    strength: float = setting(1.0, "s: 1 makes all directions equally wide, 0 none", minimum=0.0, maximum=1.0)
    dimensions: int = setting(0, "principal directions kept; 0 keeps all that have any variance", minimum=0)
    ridge: float = setting(0.0, "share of the mean eigenvalue that is added to each", minimum=0.0)
    layers: Layers = setting("last", "layers to average before pooling")


class Moments(NamedTuple):
    """Number, mean μ and scatter matrix of vectors, in float64."""

    number: float
    mean: Tensor
    scatter: Tensor

    @property
    def covariance(self) -> Tensor:
        """(d, d) covariance of the vectors, divided by their number."""
        return self.scatter / max(self.number, 1.0)

    def merged(self, other: Moments) -> Moments:
        """The moments of both sets of vectors, without cancellation (Chan et al. 1983, equation 2.1)."""
        number, shift = self.number + other.number, other.mean - self.mean
        share = other.number / max(number, 1.0)
        scatter = self.scatter + other.scatter + torch.outer(shift, shift) * (self.number * share)
        return Moments(number, self.mean + shift * share, scatter)


@torch.no_grad()
def moments_of(model: Encoder, batches: Iterable[Sequence[Packed]]) -> Moments:
    """Mean and covariance of the vectors of all sentences, over all processes."""
    size, zeros = model.embedding_size, partial(torch.zeros, dtype=torch.float64, device=model.device)
    moments = Moments(0.0, zeros(size), zeros(size, size))
    with without_dropout(model):
        for view in (view for views in batches for view in views):
            vectors = model(view).double()
            centred = vectors - (mean := vectors.mean(0))
            moments = moments.merged(Moments(len(vectors), mean, centred.T @ centred))
    counts = gather(moments.mean.new_tensor([moments.number])).tolist()
    return reduce(Moments.merged, map(Moments, counts, gather(moments.mean[None]), gather(moments.scatter[None])))


def whitening_map(moments: Moments, options: Whitening) -> tuple[Tensor, Tensor]:
    """W and −Wμ of z = W(u − μ), W = Λ^(−s/2)ᵀUᵀ from Σ = UΛUᵀ, largest variance first.

    With strength s = 1 this is algorithm 1 of Su et al. 2021.

    Args:
        moments: mean μ and covariance Σ of the sentences' vectors u.
        options: the strength, how many directions to keep, and the ridge on Λ.

    Returns:
        (k, d) and (k,), float64.

    Raises:
        SettingsError: there are not as many directions with variance as `dimensions`.
    """
    variances, directions = torch.linalg.eigh(moments.covariance)
    variances, directions = variances.flip(0).clamp_min(0.0), directions.flip(1)
    variances = variances + options.ridge * variances.mean()
    usable = int((variances > _FLAT * variances[0]).sum())
    kept = options.dimensions or usable
    if usable == 0 or kept > usable:
        vary = f"vary in {usable} of {len(variances)} directions, not in {kept or 1}"
        advice = "lower `dimensions`, give ridge=0.01, or give more sentences"
        raise SettingsError(f"the {int(moments.number)} sentences {vary}: {advice}")
    if kept < len(variances) and not options.dimensions:
        logger.warning("the sentences vary in %d of %d directions: only these are kept", kept, len(variances))
    weight = (directions[:, :kept] * variances[:kept] ** (-options.strength / 2)).T
    return weight, -weight @ moments.mean


def at_the_end(strength: float) -> Whitening:
    """Options for whitening a trained encoder: full as published; partial with a ridge, which keeps every direction."""
    return Whitening(strength=strength, ridge=0.1 if strength < 1 else 0.0)


def whitened(strength: float) -> str:
    """End of a run's summary: how its result is whitened; empty where it is not."""
    partly = f" with strength {strength:g}" if strength < 1 else ""
    return f", whitened at the end{partly}" if strength else ""


def whiten(
    model: Encoder, batches: Iterable[Sequence[Packed]], options: Whitening | None = None, linear: bool = False
) -> None:
    """Fit whitening on the vectors of sentences, and append it to the encoder.

    Args:
        model: the encoder.
        batches: every sentence once.
        options: by default, the identity as covariance, all directions and no ridge.
        linear: take off the mean's direction, and not the mean, which would weigh more on shorter vectors.
    """
    moments = moments_of(model, batches)
    weight, bias = whitening_map(moments, options or Whitening())
    if linear:
        weight += torch.outer(bias, moments.mean / moments.mean.square().sum().clamp_min(_FLAT))
        bias.zero_()
    model.put_affine(weight, bias)


class WhiteningLearner(Learner):
    """z = (u − μ) U Λ^(−s/2): a fit, without steps (Su, Cao, Liu and Ou 2021, section 3).

    | | shape | |
    |---|---|---|
    | `prepare` | all sentences | packed, a batch at a time, once |
    | `forward` |  | is never called |

    Examples:
        >>> learner = WhiteningLearner(model, Whitening())
        >>> texts = ["a cat sat", "dogs bark", "it rains", "wet"]
        >>> learner.prepare([[pack(model, texts)]])
    """

    options: Any

    def __init__(self, model: Encoder, options: Whitening | ZScore) -> None:
        super().__init__(model, options)
        model.average_layers(options.layers)

    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """The whole fit; in part, as `--whiten` does."""
        whiten(self.model, batches, self.options, linear=self.model.is_static and self.options.strength < 1)


class ZScoreLearner(WhiteningLearner):
    """zⱼ = (uⱼ − μⱼ) / σⱼ: a fit, without steps. A dimension that does not vary becomes 0.

    | | shape | |
    |---|---|---|
    | `prepare` | all sentences | packed, a batch at a time, once |
    | `forward` |  | is never called |

    Examples:
        >>> learner = ZScoreLearner(model, ZScore())
        >>> texts = ["a cat sat", "dogs bark", "it rains", "wet"]
        >>> learner.prepare([[pack(model, texts)]])
    """

    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """The whole fit."""
        moments = moments_of(self.model, batches)
        variances = moments.covariance.diagonal()
        varies = variances > _FLAT * variances.max()
        if not bool(varies.any()):
            raise SettingsError("the vectors of all sentences are the same: choose another `base` or `pooling`")
        scale = torch.where(varies, variances, 1.0).rsqrt() * varies
        self.model.put_affine(scale.diag(), -scale * moments.mean)


Whitening.method = Method(
    "whitening",
    Whitening,
    WhiteningLearner,
    defaults=ONE_PASS,
    large_learning_rate=ONE_PASS.learning_rate,
    static=ONE_PASS,
    presets={"published": {"dimensions": 256, "layers": "first+last"}},
)

ZScore.method = Whitening.method.replace(name="zscore", options=ZScore, learner=ZScoreLearner, presets={})


@dataclass(frozen=True)
class Flow(MethodOptions):
    """BERT-flow: a normalising flow above a frozen encoder.

    −(log N(f(u); 0, I) + log |det ∂f/∂u|) / (d ln 2), u the vector of the frozen encoder.

    Li, Zhou, He, Wang, Yang and Li, 2020. arXiv:2011.05864.
    """

    layers: Layers = setting("last", "layers to average before pooling")
    levels: int = setting(
        3, "levels of the flow; after each but the last, half of the dimensions is done", minimum=1, flags=()
    )
    depth: int = setting(3, "steps in a level", minimum=1)
    width: int = setting(32, "hidden units of the couplings", minimum=1)
    initial: int = setting(4096, "sentences that set the flow's initial mean and spread", minimum=2)
    noisy: bool = setting(False, "leave the frozen encoder's dropout on, as the authors' code does")

    def views(self) -> tuple[View, ...]:
        """The sentence, encoded once before training unless dropout is on."""
        return (View(precomputed=not self.noisy),)


class FlowLearner(Learner):
    """−(log N(f(u); 0, I) + log |det ∂f/∂u|) / (d ln 2), u the frozen encoder's vector (Li et al. 2020, equation 4).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | encoded once by the frozen encoder |
    | loss | a sum | over the n sentences |

    Examples:
        >>> learner = FlowLearner(model, Flow(levels=1, depth=1))
        >>> batch = pack(model, ["a cat sat", "dogs bark"])
        >>> learner.features(batch).shape[0]
        2
    """

    options: Flow

    def __init__(self, model: Encoder, options: Flow) -> None:
        super().__init__(model, options)
        from selfsent.models.heads.flow import Flow

        model.average_layers(options.layers)
        model.requires_grad_(False)
        self.size = model.embedding_size
        flow = Flow(self.size, options.levels, options.depth, options.width)
        model.sentence_transformer.append(flow.to(model.device))

    @property
    def flow(self) -> Any:
        """The map, which is the model's last module."""
        return self.model.sentence_transformer[-1]

    def train(self, mode: bool = True) -> Self:
        """Only the flow is trained: the encoder has no dropout, unless `noisy`."""
        super().train(mode)
        self.model.train(mode and self.options.noisy)
        return self

    @torch.no_grad()
    def features(self, packed: Packed) -> Tensor:
        """(n, d) vectors of the frozen encoder, without the flow."""
        return cast(Tensor, self.model(packed, leave_out=1)).float()

    def _vectors(self, packed: Packed) -> Tensor:
        return self.features(packed) if packed.vectors is None else packed.vectors

    @torch.no_grad()
    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """Set every ActNorm by the first sentences, so that the flow begins as the z-score of each dimension."""
        first: list[Tensor] = []
        for (view,) in batches:
            first.append(self._vectors(view))
            if sum(map(len, first)) >= self.options.initial:
                break
        # A process without a share of its own gets the first process' flow when the learner is wrapped.
        if first:
            self.flow.start(torch.cat(first)[: self.options.initial])

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """Bits per dimension of one batch."""
        likelihoods = self.flow.log_likelihood(self._vectors(views[0]))
        return Loss(-likelihoods.sum() / (self.size * math.log(2)), len(views[0]))

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """Everything decays but the coupling's biases, the ActNorms too, as in the authors' code."""
        named = list(self.flow.named_parameters())
        return [
            {"params": [each for name, each in named if name.endswith("bias") is biases], "weight_decay": decay}
            for biases, decay in ((False, settings.weight_decay), (True, 0.0))
        ]


_LAYERS = {"layers": "first+last"}
_PUBLISHED = Settings(
    batch_size=64, learning_rate=1e-3, epochs=1, schedule="constant", warmup=0, max_length=64
).replace(weight_decay=0.01, epsilon=1e-6)

Flow.method = Method(
    "flow",
    Flow,
    FlowLearner,
    published=_PUBLISHED,
    defaults=_PUBLISHED.replace(max_length=128),
    large_learning_rate=1e-3,
    static=_PUBLISHED.replace(max_length=128),
    presets={"published": _LAYERS, "faithful": {**_LAYERS, "noisy": True, "initial": 64}},
)
