"""Multiple-negatives ranking: of pairs, of neighbours, and of crops of a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.data.packed import Packed, concatenate
from selfsent.data.views.positives import WHOLE, Surroundings
from selfsent.data.views.view import View, ViewSide
from selfsent.errors import SettingsError
from selfsent.methods.contrast import list_loss, margin_loss, ranking_loss, similarity_loss
from selfsent.methods.method import AnyBase, Learner, Loss, Method
from selfsent.methods.positives import LONG, POSITIVES, ViewOptions
from selfsent.models.bases import resolve
from selfsent.models.encoder import Encoder
from selfsent.models.saved import is_cross_encoder
from selfsent.settings import Settings, setting

_KEEP_BASE = (
    "weight of a loss that keeps the similarities of a batch near those of the base; neighbours and cropping take 1"
    " where the base is a sentence encoder already"
)
Retriever = Literal["base", "words", "both"]
"""Ranking that hard negatives are mined by: the cosine of the base, BM25, or both as `search` ranks."""

RETRIEVER = "ranking that finds them. base: cosine; words: BM25; both: as search ranks"
MAX_RELATIVE_SCORE = "maximum score of a hard negative, relative to the partner's"
MAX_RELATIVE_SCORE_LIMITS = {
    **{"flags": ("--max-relative-score", "--at-most"), "formerly": "at_most"},
    **{"above": 0.0, "maximum": 1.0},
}


@dataclass(frozen=True)
class MNRL(ViewOptions):
    """Multiple-negatives ranking.

    −log exp(s·cos(aᵢ, pᵢ)) / Σⱼ exp(s·cos(aᵢ, pⱼ)), p the partners of all texts of the batch.

    Henderson et al., 2017. arXiv:1705.00652.
    """

    positives: str = setting("itself", POSITIVES.replace("the sentence twice", "the first two text columns"))
    scale: float = setting(20.0, "multiplies the cosines: one over the temperature", above=0.0)
    both_directions: bool = setting(False, "a partner must find its text too; the mean of both losses")
    keep_base: float = setting(0.0, _KEEP_BASE, minimum=0.0)
    hard_negatives: bool | None = setting(None, "the third text column is a wrong partner (default: if there is one)")
    mined: int = setting(0, "hard negatives of each text, mined by the base before training", minimum=0, maximum=100)
    retriever: Retriever = setting("both", RETRIEVER, flags=("--retriever", "--mined-by"), formerly="mined_by")
    max_relative_score: float = setting(0.95, MAX_RELATIVE_SCORE, **MAX_RELATIVE_SCORE_LIMITS)
    teacher: str = setting("", "ranks partner and mined negatives: search, for what mined them, or a cross-encoder")
    teacher_weight: float = setting(1.0, "weight of the loss that follows the teacher", above=0.0)
    teacher_scale: float = setting(20.0, "multiplies the teacher's scores: one over their temperature", above=0.0)
    teacher_loss: Literal["list", "margin"] = setting(
        "list", "what follows the teacher. list: the order of all; margin: how far each negative is behind the partner"
    )
    in_batch: float = setting(1.0, "weight of the loss among the texts of a batch", minimum=0.0, flags=())

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mined and self.kinds != ("itself",) and not LONG.issuperset(self.kinds):
            raise SettingsError("`mined` reads pairs or whole documents: give positives=document or title, or mined=0")
        if self.teacher and not self.mined:
            raise SettingsError("a teacher ranks mined negatives: give mined=4 or so")
        if not (self.in_batch or self.teacher):
            raise SettingsError("without `in_batch` there is no loss: give a teacher")
        if self.positives != "itself" and self.hard_negatives:
            one = f"positives={self.positives} for one: leave it out, or give method=mnrl with positives=itself"
            raise SettingsError(f"`hard_negatives` is for three text columns, and {one}")

    def check_base(self, base: AnyBase, dropout: float | None = None) -> None:
        """Reject a teacher that is no cross-encoder."""
        for name in self.teachers:
            if not is_cross_encoder(resolve(name)):
                raise SettingsError(f"the teacher {name} is no cross-encoder: give one, or teacher=search")

    @property
    def sides(self) -> tuple[ViewSide, ViewSide]:
        """In a table of pairs the first text asks for the second."""
        return ("query", "document") if self.kinds == ("itself",) else super().sides

    def views(self, second_column: int = 0) -> tuple[View, ...]:
        """The text and its partner, and a hard negative where there is one."""
        pairs = self.kinds == ("itself",)
        views = super().views(int(pairs))
        whole = None if pairs else Surroundings(WHOLE, kept=1.0)
        mined = (View(int(pairs), passage=whole, mined=number, side="document") for number in range(self.mined))
        return (*views, *mined, *([View(2, side="document")] if self.hard_negatives else ()))

    @property
    def teachers(self) -> tuple[str, ...]:
        """The cross-encoder to follow, if any."""
        return (self.teacher,) if self.teacher not in ("", "search") else ()

    def fitted(self, columns: int, classes: int | None = None, largest: float | None = None) -> Self:
        """The options, with hard negatives where there is a third column."""
        return self.completed(hard_negatives=columns > 2) if self.positives == "itself" else self


@dataclass(frozen=True)
class Neighbours(MNRL):
    """Neighbours.

    −log exp(s·cos(aᵢ, bᵢ)) / Σⱼ exp(s·cos(aᵢ, bⱼ)), b a neighbour of a, j of other documents.

    the loss: Henderson et al., 2017. arXiv:1705.00652.
    """

    positives: str = setting("neighbours", POSITIVES)
    both_directions: bool = setting(True, "the neighbour must find its sentence, too; the mean of both losses")
    hard_negatives: bool | None = setting(False, "the third text column is a wrong partner of the first")


@dataclass(frozen=True)
class Cropping(Neighbours):
    """Cropping.

    −log exp(s·cos(aᵢ, bᵢ)) / Σⱼ exp(s·cos(aᵢ, bⱼ)), a and b two crops of one document.

    González-Márquez, Berens and Kobak, 2025. arXiv:2508.03453.
    """

    within: int = setting(10, "how many sentences away the other crop may be", minimum=1)
    span: int = setting(2, "maximum number of sentences in a crop, redrawn each time", minimum=1)
    overlap: bool = setting(True, "the two crops may share sentences")
    both_directions: bool = setting(False, "the other crop must find its partner, too; the mean of both losses")


@dataclass(frozen=True)
class GPL(MNRL):
    """Generative pseudo-labelling.

    KL(q ‖ p) of the softmaxes q of a teacher's scores and p of s·cos, over the text that a query was made for and its
    mined negatives; or, as published, the squared differences of their margins.

    Wang et al., 2022. arXiv:2112.07577.
    """

    mined: int = setting(4, "hard negatives of each query, mined by the base before training", minimum=1, maximum=100)
    teacher: str = setting("search", "scores the texts: search, for what mined them, or a cross-encoder")
    in_batch: float = setting(0.0, "weight of the loss among the texts of a batch", minimum=0.0, flags=())


class RankingLearner(Learner):
    """−log exp(s·cos(aᵢ, pᵢ)) / Σⱼ exp(s·cos(aᵢ, cⱼ)), c all partners pⱼ and hard negatives nⱼ of all processes.

    Henderson et al. 2017, section 4; with cosines, scale and hard negatives as in sentence-transformers. Added to it is
    `keep_base` times KL(q ‖ p), where q and p are the softmaxes, over the other texts of the batch, of the base's
    similarities and of the model's; and `teacher_weight` times `list_loss` over a text's partner and mined negatives.

    | | shape | |
    |---|---|---|
    | `views[0]` | n texts |  |
    | `views[1]` | n texts | the partner of each |
    | `views[2:]` | n texts each | hard negatives: those mined, then those of a column |
    | `labels` | (n, 1 + mined) | with a teacher, its scores of the partner and the mined negatives |
    | loss | a sum | over the n pairs |

    Examples:
        >>> learner = RankingLearner(model, MNRL(both_directions=True))
        >>> pairs = pack(model, ["a cat sat", "dogs bark"]), pack(model, ["it slept", "loudly"])
        >>> learner(pairs).count
        2
    """

    options: MNRL
    compares = "documents"
    nests = True

    def __init__(self, model: Encoder, options: MNRL) -> None:
        super().__init__(model, options)
        self.fixed = (model.twin().eval().requires_grad_(False),) if options.keep_base else ()

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; all its texts go through the encoder in one pass."""
        packed, scale = concatenate(views), self.options.scale
        vectors = F.normalize(self.model(packed).float(), dim=-1)
        text, *others = vectors.chunk(len(views))
        hard = len(views) - 2 - self.options.mined
        total = ranking_loss(text, others, views[0], views[1:], scale, hard=hard)
        if self.options.both_directions:
            total = (total + ranking_loss(others[0], [text], views[1], views[:1], scale)) / 2
        total = self.options.in_batch * total
        if self.options.teacher:
            assert labels is not None
            follow = margin_loss if self.options.teacher_loss == "margin" else list_loss
            own = torch.stack([(text * other).sum(1) for other in others[: 1 + self.options.mined]], dim=1)
            total = total + self.options.teacher_weight * follow(scale * own, self.options.teacher_scale * labels)
        for base in self.fixed:
            with torch.no_grad():
                before = F.normalize(base.to(packed.device)(packed).float(), dim=-1)
            total = total + self.options.keep_base * similarity_loss(vectors, before, scale) / len(views)
        return Loss(total, len(text))


MNRL.method = Method(
    "mnrl",
    MNRL,
    RankingLearner,
    published=Settings(batch_size=128, learning_rate=2e-5, epochs=1, weight_decay=0.01, epsilon=1e-6, max_length=75),
    supervised=True,
)

GPL.method = MNRL.method.replace(
    name="gpl",
    options=GPL,
    published=Settings(batch_size=32, learning_rate=2e-5, epochs=1, max_length=350),
    presets={"published": {"teacher_loss": "margin", "teacher_scale": 1.0, "scale": 1.0}},
    compared=False,
)

Neighbours.method = Method(
    "neighbours",
    Neighbours,
    RankingLearner,
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=1),
    defaults=MNRL.method.defaults.replace(max_length=64),
    static_whiten=0.1,
    for_encoders={"keep_base": 1.0},
    aims_at_context=True,
)

Cropping.method = Neighbours.method.replace(
    name="cropping",
    options=Cropping,
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=1, clip=0, max_length=512),
    defaults=MNRL.method.defaults,
    static_whiten=0.0,
    compared=False,
)
