"""Estimators of mutual information between tokens and sentences, from scores of every pair of the two, as losses."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.distributed import gather

Estimator = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(tokens, sentences) float32 scores, (tokens,) own sentence, (tokens,) weights -> weighted sum over the tokens."""


def jensen_shannon(scores: Tensor, own: Tensor, weights: Tensor) -> Tensor:
    """Σᵢ wᵢ { Σⱼ [sp(sᵢⱼ) − log 2] / (B − 1) − [log 2 − sp(−sᵢ)] }, j over the other sentences, sp(x) = log(1 + eˣ).

    Zhang et al. 2020, equation 4, shifted so that scores of zero give a loss of zero (Hjelm et al. 2019); at best
    −2 log 2 a token.
    """
    positive = math.log(2) - F.softplus(-_own(scores, own))
    others = (F.softplus(scores) - math.log(2)).masked_fill(_is_own(scores, own), 0.0)
    return (weights * (others.sum(1) / (scores.shape[1] - 1) - positive)).sum()


def info_nce(scores: Tensor, own: Tensor, weights: Tensor) -> Tensor:
    """−Σᵢ wᵢ log { exp(sᵢ) / Σⱼ exp(sᵢⱼ) }, j over all sentences (van den Oord et al. 2018)."""
    return (weights * (scores.logsumexp(1) - _own(scores, own))).sum()


def donsker_varadhan(scores: Tensor, own: Tensor, weights: Tensor) -> Tensor:
    """Σᵢ wᵢ { log mean exp(s) − sᵢ }, the weighted mean over all pairs of a token and another sentence anywhere.

    Donsker and Varadhan's bound (Belghazi et al. 2018). The own pairs leave the mean after the exponential: a score of
    zero would count as one.
    """
    others = scores.masked_fill(_is_own(scores, own), -torch.inf) + weights.log()[:, None]
    total = gather(others.logsumexp((0, 1))[None]).logsumexp(0)
    pairs = gather(weights.sum()[None]).sum() * (scores.shape[1] - 1)
    return weights.sum() * (total - pairs.log()) - (weights * _own(scores, own)).sum()


ESTIMATORS: dict[str, Estimator] = {"jsd": jensen_shannon, "infonce": info_nce, "dv": donsker_varadhan}


def _own(scores: Tensor, own: Tensor) -> Tensor:
    return scores.gather(1, own[:, None])[:, 0]


def _is_own(scores: Tensor, own: Tensor) -> Tensor:
    return own[:, None] == torch.arange(scores.shape[1], device=own.device)
