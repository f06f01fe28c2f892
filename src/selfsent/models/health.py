"""Health of the embedding space: figures that show a collapse long before a score does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.data.packed import Packed
from selfsent.models.cross_encoder import CrossEncoder
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder

SENTENCES = 128
"""Maximum number of sentences in a probe."""


@dataclass(frozen=True)
class Health:
    """Distribution of the vectors of some sentences on the sphere.

    Args:
        mean_cosine: mean cosine of different sentences; near 1 when all point one way.
        effective_rank: exponential of the entropy of the singular values' shares (Roy and Vetterli 2007): dimensions
            in use.
        uniformity: log mean exp(−2‖a − b‖²) over different sentences (Wang and Isola 2020); lower is more uniform.
        alignment: mean ‖a − a′‖² of a sentence seen twice; None where the method has no second view of the same
            length.
        score_deviation: standard deviation of the scores of pairs, of several outputs the largest; None for a model
            that makes vectors.
    """

    mean_cosine: float
    effective_rank: float
    uniformity: float
    alignment: float | None = None
    score_deviation: float | None = None

    def collapsed(self, start: Health) -> bool:
        """Whether the sentences now point one way, and did not when the run began."""
        spread, before = 1 - self.mean_cosine, 1 - start.mean_cosine
        return not (spread > 0.005 or spread > 0.05 * before)

    def scores_alike(self, start: Health) -> bool:
        """Whether all pairs now get one score, and did not when the run began."""
        now, before = self.score_deviation, start.score_deviation
        return now is not None and before is not None and now < 1e-3 < before

    def fault(self, start: Health | None) -> str:
        """Reason to stop a run, given its health at the start, if known; empty where nothing is wrong."""
        if not math.isfinite(self.mean_cosine):
            return "the embeddings are not finite"
        if start is not None and self.collapsed(start):
            return f"the embeddings are collapsing to one point (mean cosine {self.mean_cosine:.4f})"
        return "all pairs get the same score" if start is not None and self.scores_alike(start) else ""

    def to_json(self) -> dict[str, float]:
        """The known figures by name."""
        return {name: round(value, 6) for name, value in asdict(self).items() if value is not None}


def measure(vectors: Tensor, again: Tensor | None = None) -> Health:
    """Health of (n, d) vectors; `again`, (n, d), are from a second view of the sentences."""
    unit = F.normalize(vectors.float(), dim=-1)
    if not bool(torch.isfinite(unit).all()):
        return Health(math.nan, math.nan, math.nan)
    n = len(unit)
    cosines = unit @ unit.T
    different = ~torch.eye(n, dtype=torch.bool, device=unit.device)
    singular = torch.linalg.svdvals(unit - unit.mean(0))
    share = singular / singular.sum().clamp_min(1e-12)
    entropy = -(share * share.clamp_min(1e-12).log()).sum()
    return Health(
        float(cosines[different].mean()),
        float(entropy.exp()),
        float((-2 * (2 - 2 * cosines[different])).exp().mean().log()),
        None if again is None else float((unit - F.normalize(again.float(), dim=-1)).square().sum(-1).mean()),
    )


@torch.no_grad()
def probe(model: Encoder, views: Sequence[Packed], precision: AbstractContextManager[Any] | None = None) -> Health:
    """Health of the encoder on a fixed batch, without dropout; alignment where there are two views.

    Args:
        model: the encoder.
        views: one or more views of the batch, of which two are read.
        precision: autocast for the vectors; float32 by default. The figures are float32, and so are the scores of
            pairs: bfloat16 would round their differences away.
    """
    with without_dropout(model):
        with precision or nullcontext():
            vectors = [model(view) for view in views[:2]]
        health = measure(vectors[0], vectors[1] if len(vectors) > 1 else None)
        if isinstance(model, CrossEncoder):
            scores = model.activation(model.scores(views[0]).float())
            health = replace(health, score_deviation=float(scores.std(0).max()))
    return health
