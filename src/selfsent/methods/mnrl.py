"""Multiple-negatives ranking: a text must find its partner among the partners of the whole batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from selfsent.data.views import View
from selfsent.errors import SettingsError
from selfsent.fast.packing import Packed, concatenate
from selfsent.methods.contrast import in_batch_cross_entropy, no_negatives, similarities, similarity_loss
from selfsent.methods.labels import Facts
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.methods.two_views import Positives, ViewOptions, two_views, whole_batch
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class Options(ViewOptions):
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


def views(options: Options) -> tuple[View, ...]:
    """The text and its partner, and what is no partner where the corpus says so."""
    pair = two_views(options, int(options.positives == "itself"))
    return (*pair, View(2)) if options.hard_negatives else pair


def fitted(options: Options, facts: Facts) -> Options:
    """The options, with hard negatives where there is a third column and nothing was said."""
    if options.hard_negatives is not None or options.positives != "itself":
        return options
    return dataclasses.replace(options, hard_negatives=facts.columns > 2)


class MnrlLearner(Learner):
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
        >>> learner = MnrlLearner(model, Options(both_directions=True))
        >>> pairs = pack(model, ["a cat sat", "dogs bark"]), pack(model, ["it slept", "loudly"])
        >>> learner(pairs).count
        2
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        # In a tuple it is no submodule: neither trained, nor wrapped, nor part of checkpoints.
        self._base = (model.twin().eval().requires_grad_(False),) if options.keep_base else None

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch; all its texts go through the encoder in one pass."""
        whole_batch(len(views[0]))
        packed = concatenate(views)
        vectors = self.model(packed).float()
        if self.options.similarity == "cosine":
            vectors = F.normalize(vectors, dim=-1)
        text, partner, *hard = vectors.chunk(len(views))
        scores = torch.cat([similarities(text, part) for part in (partner, *hard)], dim=1)
        left_out = no_negatives(views[0], views[1], views[1:2], hard=views[2:])
        total = in_batch_cross_entropy(self.options.scale * scores, left_out)
        if self.options.both_directions:
            back = self.options.scale * similarities(partner, text)
            total = (total + in_batch_cross_entropy(back, no_negatives(views[1], views[0], views[:1]))) / 2
        if self._base is not None:
            with torch.no_grad():
                base = self._base[0].to(packed.device)(packed).float()
            kept = similarity_loss(vectors, F.normalize(base, dim=-1), self.options.scale)
            total = total + self.options.keep_base * kept / len(views)
        return Loss(total, len(text))


MNRL = Method(
    name="mnrl",
    title="Multiple-negatives ranking",
    citation="Henderson et al., 2017. arXiv:1705.00652",
    objective="−log exp(s·cos(aᵢ, pᵢ)) / Σⱼ exp(s·cos(aᵢ, pⱼ)), p the partners of all texts of the batch",
    learner=MnrlLearner,
    options=Options,
    views=views,
    fitted=fitted,
    batchwise=True,
    pooling="mean",
    published=Settings(batch_size=128, learning_rate=2e-5, epochs=1, weight_decay=0.01, epsilon=1e-6, max_length=75),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1),
    large_learning_rate=2e-5,
    static=STATIC,
    presets={"published": {"both_directions": True}},
)
