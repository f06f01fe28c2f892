"""Z-scores: every dimension less its mean, divided by its standard deviation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from selfsent.data.views import View
from selfsent.errors import SettingsError
from selfsent.fast.packing import Packed
from selfsent.methods.method import Learner, Method
from selfsent.methods.moments import moments_of
from selfsent.models.encoder import Encoder
from selfsent.models.heads.layers import Layers
from selfsent.settings import Settings, check_limits, setting

_FLAT = 1e-9
"""Variance, as a share of the largest, below which a dimension is constant but for rounding."""


@dataclass(frozen=True)
class Options:
    """Options of z-scores."""

    layers: Layers = setting("last", "layers whose states are averaged before pooling")

    def __post_init__(self) -> None:
        check_limits(self)


class ZScoreLearner(Learner):
    """zⱼ = (uⱼ − μⱼ) / σⱼ: a fit, without steps. A dimension that does not vary becomes 0.

    | | shape | |
    |---|---|---|
    | `prepare` | all sentences | packed, a batch at a time, once |
    | `forward` |  | is never called |

    Example:
        >>> learner = ZScoreLearner(model, Options())
        >>> texts = ["a cat sat", "dogs bark", "it rains", "wet"]
        >>> learner.prepare([[pack(model, texts)]])
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        model.average_layers(options.layers)

    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """The whole fit."""
        moments = moments_of(self.model, batches)
        variances = moments.covariance.diagonal()
        varies = variances > _FLAT * variances.max()
        if not bool(varies.any()):
            raise SettingsError("the vectors of all sentences are the same: choose another --base or --pooling")
        scale = torch.where(varies, variances, 1.0).rsqrt() * varies
        self.model.put_affine(scale.diag(), -scale * moments.mean)


ZSCORE = Method(
    name="zscore",
    title="Z-scores of every dimension",
    citation="Timkey and van Schijndel, 2021. arXiv:2109.04404",
    objective="zⱼ = (uⱼ − μⱼ) / σⱼ",
    learner=ZScoreLearner,
    options=Options,
    views=lambda options: (View(),),
    batchwise=False,
    closed_form=True,
    pooling="mean",
    published=Settings(epochs=1),
    defaults=Settings(epochs=1),
    large_learning_rate=Settings.learning_rate,
    static=Settings(epochs=1),
)
