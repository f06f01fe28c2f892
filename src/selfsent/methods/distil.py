"""Distillation over translations: a student gives a sentence and its translation the vector of a teacher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from selfsent.encoder import Encoder, load_encoder
from selfsent.errors import SettingsError
from selfsent.methods.method import Learner, Loss, Method
from selfsent.packing import Packed, concatenate
from selfsent.settings import Settings, check_limits, setting
from selfsent.views import View


@dataclass(frozen=True)
class Options:
    """Options of distillation."""

    teacher: str = setting("", "the encoder to follow on the first text column: a directory, a hub id or bundled")
    project: bool = setting(False, "a dense layer, saved with the model, leads to the size of the teacher's vectors")

    def __post_init__(self) -> None:
        check_limits(self)
        if not self.teacher:
            raise SettingsError("distil follows another encoder: give --teacher ENCODER")


class DistilLearner(Learner):
    """MSE(f(s), t(s)) + MSE(f(z), t(s)), z a translation of s, t the frozen teacher (Reimers and Gurevych 2020).

    MSE is the mean over the dimensions of a vector, as in the authors' code.
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        teacher = load_encoder(options.teacher).eval().requires_grad_(False)
        # In a tuple it is no submodule: neither trained, nor wrapped, nor part of checkpoints.
        self._teacher = (teacher,)
        wanted, own = teacher.embedding_size, model.embedding_size
        if options.project:
            model.sentence_transformer.append(_dense(own, wanted))
        elif wanted != own:
            raise SettingsError(
                f"the vectors of --teacher {options.teacher} have {wanted} numbers, those of the base {own}:"
                " give --project to add a dense layer, or another base"
            )

    @property
    def teacher(self) -> Encoder:
        """The encoder that is followed."""
        return self._teacher[0]

    @torch.no_grad()
    def features(self, packed: Packed) -> Tensor:
        """(sentences, d) vectors of the teacher, from tokens of its own tokenizer."""
        vectors: Tensor = self.teacher.to(packed.device)(packed)
        return vectors.float()

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences, which bring the teacher's vectors, and their translations."""
        wanted = views[0].vectors
        assert wanted is not None
        source, target = self.model(concatenate(views)).float().chunk(2)
        each = (source - wanted).square().mean(-1) + (target - wanted).square().mean(-1)
        return Loss(each.sum(), len(each))


def _dense(width: int, wanted: int) -> nn.Module:
    from sentence_transformers.base.modules import Dense

    layer: nn.Module = Dense(width, wanted, activation_function=nn.Identity())
    return layer


DISTIL = Method(
    name="distil",
    title="Multilingual knowledge distillation",
    citation="Reimers and Gurevych, 2020. arXiv:2004.09813",
    objective="MSE(f(s), t(s)) + MSE(f(z), t(s)), z a translation of s, t the frozen teacher",
    learner=DistilLearner,
    options=Options,
    views=lambda options: (View(0, ready=True), View(1)),
    compares=False,
    pooling="mean",
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=5, warmup=10_000, weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=64, learning_rate=1e-4, epochs=1),
    large_learning_rate=2e-5,
)
