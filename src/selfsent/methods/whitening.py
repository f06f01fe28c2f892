"""Whitening: a linear map after which the sentences' vectors have mean zero and the identity as covariance."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from selfsent.data.views import View
from selfsent.errors import SettingsError
from selfsent.fast.packing import Packed
from selfsent.methods.method import Learner, Method
from selfsent.methods.moments import Moments, moments_of
from selfsent.models.encoder import Encoder
from selfsent.models.heads.layers import Layers
from selfsent.settings import Settings, check_limits, setting

logger = logging.getLogger(__name__)

ENOUGH = 1 << 16
"""Sentences that whitening is fitted on where it follows a training: 85 for each dimension of a large encoder.

In part, a thousand are nearly as good: docs/log/methods.md."""
_FLAT = 1e-9
"""Variance, as a share of the largest, below which a direction holds nothing but the rounding errors of float32."""


@dataclass(frozen=True)
class Options:
    """Options of whitening."""

    strength: float = setting(
        1.0, "s: 1 makes all directions equally wide, 0 only takes the mean off", minimum=0.0, maximum=1.0
    )
    dimensions: int = setting(0, "principal directions kept; 0 keeps all that have any variance", minimum=0)
    ridge: float = setting(
        0.0, "share of the mean eigenvalue that is added to each, to calm those of few sentences", minimum=0.0
    )

    layers: Layers = setting("last", "layers whose states are averaged before pooling")

    def __post_init__(self) -> None:
        check_limits(self)


def whitening_map(moments: Moments, options: Options) -> tuple[Tensor, Tensor]:
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


def at_the_end(strength: float) -> Options:
    """How a trained encoder is whitened: in full as published; in part with a ridge, so that no direction is lost."""
    return Options(strength=strength, ridge=0.1 if strength < 1 else 0.0)


def whitened(strength: float) -> str:
    """What is said of a run whose result is whitened, to be put behind it; nothing where it is not."""
    partly = f" with strength {strength:g}" if strength < 1 else ""
    return f", whitened at the end{partly}" if strength else ""


def whiten(model: Encoder, batches: Iterable[Sequence[Packed]], options: Options | None = None) -> None:
    """Fit whitening on the vectors of sentences, and put it behind the encoder's last module.

    Args:
        model: the encoder.
        batches: every sentence once.
        options: by default, the identity as covariance, all directions and no ridge.
    """
    weight, bias = whitening_map(moments_of(model, batches), options or Options())
    model.put_affine(weight, bias)


class WhiteningLearner(Learner):
    """z = (u − μ) U Λ^(−s/2): a fit, without steps (Su, Cao, Liu and Ou 2021, section 3).

    | | shape | |
    |---|---|---|
    | `prepare` | all sentences | packed, a batch at a time, once |
    | `forward` |  | is never called |

    Example:
        >>> learner = WhiteningLearner(model, Options())
        >>> texts = ["a cat sat", "dogs bark", "it rains", "wet"]
        >>> learner.prepare([[pack(model, texts)]])
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        model.average_layers(options.layers)

    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """The whole fit."""
        whiten(self.model, batches, self.options)


WHITENING = Method(
    name="whitening",
    title="Whitening sentence representations",
    citation="Su, Cao, Liu and Ou, 2021. arXiv:2103.15316",
    objective="z = (u − μ) U Λ^(−s/2), Σ = U Λ Uᵀ the covariance of the vectors u",
    learner=WhiteningLearner,
    options=Options,
    views=lambda options: (View(),),
    batchwise=False,
    closed_form=True,
    pooling="mean",
    published=Settings(epochs=1),
    defaults=Settings(epochs=1),
    large_learning_rate=Settings.learning_rate,
    static=Settings(epochs=1),
    presets={"published": {"dimensions": 256, "layers": "first+last"}},
)
