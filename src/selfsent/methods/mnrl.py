"""Multiple-negatives ranking: a text must find its partner among the partners of the whole batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.distributed import gather, rank
from selfsent.methods.labels import Facts
from selfsent.methods.method import Learner, Loss, Method
from selfsent.methods.pairs import whole_batch
from selfsent.packing import Packed, concatenate
from selfsent.settings import Settings, check_limits, setting
from selfsent.views import View


@dataclass(frozen=True)
class Options:
    """Options of multiple-negatives ranking."""

    scale: float = setting(20.0, "multiplies the similarities: one over the temperature", above=0.0)
    similarity: Literal["cosine", "dot"] = setting("cosine", "of two vectors", choices=("cosine", "dot"))
    both_directions: bool = setting(False, "a partner must find its text too; the mean of both losses")
    hard_negatives: bool | None = setting(
        None, "the third text column is no partner of the first (default: where there are three)"
    )

    def __post_init__(self) -> None:
        check_limits(self)


def views(options: Options) -> tuple[View, ...]:
    """The text and its partner, and what is no partner where the corpus says so."""
    return (View(0), View(1), View(2)) if options.hard_negatives else (View(0), View(1))


def fitted(options: Options, facts: Facts) -> Options:
    """The options, with hard negatives where there is a third column and nothing was said."""
    chosen = options.hard_negatives
    return dataclasses.replace(options, hard_negatives=facts.columns > 2) if chosen is None else options


class MnrlLearner(Learner):
    """−log exp(s·cos(aᵢ, pᵢ)) / Σⱼ exp(s·cos(aᵢ, cⱼ)), c all partners pⱼ and hard negatives nⱼ of all processes.

    Henderson et al. 2017, section 4; with cosines, scale and hard negatives as in sentence-transformers.
    """

    options: Options

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; all its texts go through the encoder in one pass."""
        whole_batch(len(views[0]))
        vectors = self.model(concatenate(views)).float()
        if self.options.similarity == "cosine":
            vectors = F.normalize(vectors, dim=-1)
        text, partner, *hard = vectors.chunk(len(views))
        total = self._finding(text, torch.cat([gather(part) for part in (partner, *hard)]))
        if self.options.both_directions:
            total = (total + self._finding(partner, gather(text))) / 2
        return Loss(total, len(text))

    def _finding(self, vectors: Tensor, candidates: Tensor) -> Tensor:
        """Cross-entropy of vectors that are to find the candidates of their own places, summed."""
        own = torch.arange(len(vectors), device=vectors.device) + rank() * len(vectors)
        scores = (vectors @ candidates.T).float() * self.options.scale
        return F.cross_entropy(scores, own, reduction="sum")


MNRL = Method(
    name="mnrl",
    title="Multiple-negatives ranking",
    citation="Henderson et al., 2017. arXiv:1705.00652",
    objective="−log exp(s·cos(aᵢ, pᵢ)) / Σⱼ exp(s·cos(aᵢ, pⱼ)), p the partners of all texts of the batch",
    learner=MnrlLearner,
    options=Options,
    views=views,
    fitted=fitted,
    compares=True,
    pooling="mean",
    published=Settings(batch_size=128, learning_rate=2e-5, epochs=1, weight_decay=0.01, epsilon=1e-6, max_length=75),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1),
    large_learning_rate=2e-5,
    presets={"published": {"both_directions": True}},
)
