"""Ranking: a text must find its partner (given, or beside it in its document) among the partners of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.data.packed import Packed, concatenate
from selfsent.data.views.view import View
from selfsent.errors import SettingsError
from selfsent.methods.contrast import POSITIVES, Positives, ViewOptions, ranking_loss, similarity_loss
from selfsent.methods.method import OF_DOCUMENTS, Facts, Learner, Loss, Method
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class MNRL(ViewOptions):
    """Options of multiple-negatives ranking."""

    positives: Positives = setting(
        "itself",
        "the partner of a text. itself: the second text column; with one column, neighbours: a neighbour in its"
        " document, or several in a row with --span; surroundings: what stands around it, without it",
    )

    scale: float = setting(20.0, "multiplies the similarities: one over the temperature", above=0.0)
    similarity: Literal["cosine", "dot"] = setting("cosine", "how two vectors are compared")
    both_directions: bool = setting(False, "a partner must find its text too; the mean of both losses")
    keep_base: float = setting(
        0.0,
        "weight of a loss that keeps the similarities of a batch near those of the base; neighbours and cropping take 1"
        " where the base is a sentence encoder already",
        minimum=0.0,
    )
    hard_negatives: bool | None = setting(
        None, "the third text column is a wrong partner of the first (default: where there are three)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.positives != "itself" and self.hard_negatives:
            raise SettingsError(
                f"--hard-negatives is for three text columns, and --positives {self.positives} for one: leave it"
                " out, or give --method mnrl --positives itself"
            )
        if self.keep_base and self.similarity == "dot":
            raise SettingsError("--keep-base compares cosines: give --keep-base 0 with --similarity dot")

    def views(self) -> tuple[View, ...]:
        """The text and its partner, and a hard negative where there is one."""
        pair = self.pair(int(self.positives == "itself"))
        return (*pair, View(2)) if self.hard_negatives else pair

    def fitted(self, facts: Facts) -> Self:
        """The options, with hard negatives where there is a third column."""
        return self.completed(hard_negatives=facts.columns > 2) if self.positives == "itself" else self


@dataclass(frozen=True)
class Neighbours(MNRL):
    """Options of training on neighbours: those of multiple-negatives ranking, with other defaults."""

    positives: Positives = setting("neighbours", POSITIVES)
    both_directions: bool = setting(True, "the neighbour must find its sentence, too; the mean of both losses")
    hard_negatives: bool | None = setting(False, "the third text column is a wrong partner of the first")


@dataclass(frozen=True)
class Cropping(Neighbours):
    """Options of cropping: those of training on neighbours, with spans that may overlap."""

    within: int = setting(10, "how many sentences away the other crop may be", minimum=1)
    span: int = setting(2, "sentences in a crop at most, drawn anew each time", minimum=1)
    overlap: bool = setting(True, "the two crops may share sentences")
    both_directions: bool = setting(False, "the other crop must find its partner, too; the mean of both losses")


class RankingLearner(Learner):
    """−log exp(s·cos(aᵢ, pᵢ)) / Σⱼ exp(s·cos(aᵢ, cⱼ)), c all partners pⱼ and hard negatives nⱼ of all processes.

    Henderson et al. 2017, section 4; with cosines, scale and hard negatives as in sentence-transformers. Added to it is
    `keep_base` times KL(q ‖ p), where q and p are the softmaxes, over the other texts of the batch, of the base's
    similarities and of the model's.

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts |  |
    | `views[1]` | n texts | the partner of each |
    | `views[2:]` | n texts each | hard negatives, where there are columns of them |
    | loss | a sum | over the n pairs |

    Example:
        >>> learner = RankingLearner(model, MNRL(both_directions=True))
        >>> pairs = pack(model, ["a cat sat", "dogs bark"]), pack(model, ["it slept", "loudly"])
        >>> learner(pairs).count
        2
    """

    options: MNRL
    compares = "documents"

    def __init__(self, model: Encoder, options: MNRL) -> None:
        super().__init__(model, options)
        # In a tuple it is no submodule: neither trained, nor wrapped, nor part of checkpoints.
        self._base = (model.twin().eval().requires_grad_(False),) if options.keep_base else None

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; all its texts go through the encoder in one pass."""
        chosen, packed = self.options, concatenate(views)
        vectors = self.model(packed).float()
        if chosen.similarity == "cosine":
            vectors = F.normalize(vectors, dim=-1)
        text, *others = vectors.chunk(len(views))
        total = ranking_loss(text, others, views[0], views[1:], chosen.scale, hard=len(views) - 2)
        if chosen.both_directions:
            total = (total + ranking_loss(others[0], [text], views[1], views[:1], chosen.scale)) / 2
        if self._base is not None:
            with torch.no_grad():
                base = self._base[0].to(packed.device)(packed).float()
            kept = similarity_loss(vectors, F.normalize(base, dim=-1), chosen.scale)
            total = total + chosen.keep_base * kept / len(views)
        return Loss(total, len(text))


MNRL.method = Method(
    name="mnrl",
    title="Multiple-negatives ranking",
    citation="Henderson et al., 2017. arXiv:1705.00652",
    objective="−log exp(s·cos(aᵢ, pᵢ)) / Σⱼ exp(s·cos(aᵢ, pⱼ)), p the partners of all texts of the batch",
    learner=RankingLearner,
    options=MNRL,
    published=Settings(batch_size=128, learning_rate=2e-5, epochs=1, weight_decay=0.01, epsilon=1e-6, max_length=75),
    presets={"published": {"both_directions": True}},
    supervised=True,
)

Neighbours.method = Method(
    name="neighbours",
    title="Neighbours",
    citation="the loss: " + MNRL.method.citation,
    objective="−log exp(s·cos(aᵢ, bᵢ)) / Σⱼ exp(s·cos(aᵢ, bⱼ)), b the sentence beside a, j of other documents",
    learner=RankingLearner,
    options=Neighbours,
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=1),
    defaults=MNRL.method.defaults.but(max_length=64),
    static_whiten=0.1,
    for_encoders={"keep_base": 1.0},
    aimed_at=OF_DOCUMENTS,
)

Cropping.method = Method(
    name="cropping",
    title="Cropping",
    citation="González-Márquez, Berens and Kobak, 2025. arXiv:2508.03453",
    objective="−log exp(s·cos(aᵢ, bᵢ)) / Σⱼ exp(s·cos(aᵢ, bⱼ)), a and b two crops of one document",
    learner=RankingLearner,
    options=Cropping,
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=1, clip=0, max_length=512),
    for_encoders=Neighbours.method.for_encoders,
    aimed_at=OF_DOCUMENTS,
    compared=False,
)
