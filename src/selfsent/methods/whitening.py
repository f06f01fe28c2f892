"""Whitening and z-scores: the sentences' vectors get mean zero, and the identity as covariance, or unit variances."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from selfsent.data.packed import Packed
from selfsent.distributed import gather
from selfsent.errors import SettingsError
from selfsent.methods.method import ONE_PASS, Learner, Method, MethodOptions
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.models.heads.layers import Layers
from selfsent.settings import setting

logger = logging.getLogger(__name__)

ENOUGH = 1 << 16
"""Sentences that whitening is fitted on where it follows a training: 85 for each dimension of a large encoder.

In part, a thousand are nearly as good: docs/log/methods.md."""
_FLAT = 1e-9
"""Variance, as a share of the largest, below which a direction holds nothing but the rounding errors of float32."""


@dataclass(frozen=True)
class ZScore(MethodOptions):
    """Options of z-scores."""

    layers: Layers = setting("last", "layers whose states are averaged before pooling")


@dataclass(frozen=True)
class Whitening(MethodOptions):
    """Options of whitening."""

    strength: float = setting(
        1.0, "s: 1 makes all directions equally wide, 0 only takes the mean off", minimum=0.0, maximum=1.0
    )
    dimensions: int = setting(0, "principal directions kept; 0 keeps all that have any variance", minimum=0)
    ridge: float = setting(
        0.0, "share of the mean eigenvalue that is added to each, to calm those of few sentences", minimum=0.0
    )
    layers: Layers = setting("last", "layers whose states are averaged before pooling")


class Moments:
    """Count, mean and scatter matrix, merged part by part without cancellation (Chan et al. 1983, equation 2.1).

    Args:
        size: length of the vectors.
        device: where they are.
    """

    def __init__(self, size: int, device: torch.device | str = "cpu") -> None:
        self.count = 0.0
        self.mean = torch.zeros(size, dtype=torch.float64, device=device)
        self.scatter = torch.zeros(size, size, dtype=torch.float64, device=device)

    @property
    def covariance(self) -> Tensor:
        """(d, d) covariance of the vectors so far, divided by their count."""
        return self.scatter / max(self.count, 1.0)

    def add(self, vectors: Tensor) -> None:
        """Take in (n, d) vectors."""
        vectors = vectors.double()
        mean = vectors.mean(0)
        centred = vectors - mean
        self._merge(len(vectors), mean, centred.T @ centred)

    def _merge(self, count: float, mean: Tensor, scatter: Tensor) -> None:
        if not count:
            return
        total, shift = self.count + count, mean - self.mean
        self.scatter += scatter + torch.outer(shift, shift) * (self.count * count / total)
        self.mean += shift * (count / total)
        self.count = total

    def over_processes(self) -> Moments:
        """The moments of what all processes took in, the same on each."""
        together = Moments(len(self.mean), self.mean.device)
        counts = gather(self.mean.new_tensor([self.count])).tolist()
        for count, mean, scatter in zip(counts, gather(self.mean[None]), gather(self.scatter[None]), strict=True):
            together._merge(count, mean, scatter)
        return together


@torch.no_grad()
def moments_of(model: Encoder, batches: Iterable[Sequence[Packed]]) -> Moments:
    """Mean and covariance of the vectors of all sentences, over all processes."""
    moments = Moments(model.embedding_size, model.device)
    with without_dropout(model):
        for view in (view for views in batches for view in views):
            moments.add(model(view))
    return moments.over_processes()


def whitening_map(moments: Moments, options: Whitening) -> tuple[Tensor, Tensor]:
    """W and −Wμ of z = W(u − μ), W = Λ^(−s/2)ᵀUᵀ from Σ = UΛUᵀ, largest variance first.

    With strength s = 1 this is algorithm 1 of Su et al. 2021.

    Args:
        moments: mean μ and covariance Σ of the sentences' vectors u.
        options: the strength, how many directions to keep, and the ridge on Λ.

    Returns:
        (k, d) and (k,), float64.

    Raises:
        SettingsError: there are not as many directions with variance as were asked for.
    """
    variances, directions = torch.linalg.eigh(moments.covariance)
    variances, directions = variances.flip(0).clamp_min(0.0), directions.flip(1)
    variances = variances + options.ridge * variances.mean()
    usable = int((variances > _FLAT * variances[0]).sum())
    kept = options.dimensions or usable
    if usable == 0 or kept > usable:
        raise SettingsError(
            f"the {int(moments.count)} sentences vary in {usable} of {len(variances)} directions, not in {kept or 1}:"
            " lower --dimensions, give --ridge 0.01, or give more sentences"
        )
    if kept < len(variances) and not options.dimensions:
        logger.warning("the sentences vary in %d of %d directions: only these are kept", kept, len(variances))
    weight = (directions[:, :kept] * variances[:kept] ** (-options.strength / 2)).T
    return weight, -weight @ moments.mean


def at_the_end(strength: float) -> Whitening:
    """How a trained encoder is whitened: in full as published; in part with a ridge, so that no direction is lost."""
    return Whitening(strength=strength, ridge=0.1 if strength < 1 else 0.0)


def whitened(strength: float) -> str:
    """End of a run's summary: how its result is whitened; empty where it is not."""
    partly = f" with strength {strength:g}" if strength < 1 else ""
    return f", whitened at the end{partly}" if strength else ""


def whiten(model: Encoder, batches: Iterable[Sequence[Packed]], options: Whitening | None = None) -> None:
    """Fit whitening on the vectors of sentences, and put it behind the encoder's last module.

    Args:
        model: the encoder.
        batches: every sentence once.
        options: by default, the identity as covariance, all directions and no ridge.
    """
    weight, bias = whitening_map(moments_of(model, batches), options or Whitening())
    model.put_affine(weight, bias)


class LayersLearner(Learner):
    """A closed-form learner, of the mean of some layers."""

    def __init__(self, model: Encoder, options: Whitening | ZScore) -> None:
        super().__init__(model, options)
        model.average_layers(options.layers)


class WhiteningLearner(LayersLearner):
    """z = (u − μ) U Λ^(−s/2): a fit, without steps (Su, Cao, Liu and Ou 2021, section 3).

    | | shape | |
    |---|---|---|
    | `prepare` | all sentences | packed, a batch at a time, once |
    | `forward` |  | is never called |

    Example:
        >>> learner = WhiteningLearner(model, Whitening())
        >>> texts = ["a cat sat", "dogs bark", "it rains", "wet"]
        >>> learner.prepare([[pack(model, texts)]])
    """

    options: Whitening

    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """The whole fit."""
        whiten(self.model, batches, self.options)


class ZScoreLearner(LayersLearner):
    """zⱼ = (uⱼ − μⱼ) / σⱼ: a fit, without steps. A dimension that does not vary becomes 0.

    | | shape | |
    |---|---|---|
    | `prepare` | all sentences | packed, a batch at a time, once |
    | `forward` |  | is never called |

    Example:
        >>> learner = ZScoreLearner(model, ZScore())
        >>> texts = ["a cat sat", "dogs bark", "it rains", "wet"]
        >>> learner.prepare([[pack(model, texts)]])
    """

    options: ZScore

    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """The whole fit."""
        moments = moments_of(self.model, batches)
        variances = moments.covariance.diagonal()
        varies = variances > _FLAT * variances.max()
        if not bool(varies.any()):
            raise SettingsError("the vectors of all sentences are the same: choose another --base or --pooling")
        scale = torch.where(varies, variances, 1.0).rsqrt() * varies
        self.model.put_affine(scale.diag(), -scale * moments.mean)


Whitening.method = Method(
    name="whitening",
    title="Whitening sentence representations",
    citation="Su, Cao, Liu and Ou, 2021. arXiv:2103.15316",
    objective="z = (u − μ) U Λ^(−s/2), Σ = U Λ Uᵀ the covariance of the vectors u",
    learner=WhiteningLearner,
    options=Whitening,
    defaults=ONE_PASS,
    large_learning_rate=ONE_PASS.learning_rate,
    static=ONE_PASS,
    aimed_at=("spectrum",),
    presets={"published": {"dimensions": 256, "layers": "first+last"}},
)

ZScore.method = Method(
    name="zscore",
    title="Z-scores of every dimension",
    citation="Timkey and van Schijndel, 2021. arXiv:2109.04404",
    objective="zⱼ = (uⱼ − μⱼ) / σⱼ",
    learner=ZScoreLearner,
    options=ZScore,
    defaults=ONE_PASS,
    large_learning_rate=ONE_PASS.learning_rate,
    static=ONE_PASS,
    aimed_at=("spectrum",),
)
