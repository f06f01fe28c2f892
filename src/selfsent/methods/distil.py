"""Distillation: a student gives a sentence, and its translation where there is one, what a teacher makes of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.encoder import Encoder, load_encoder
from selfsent.errors import SettingsError
from selfsent.methods.contrast import in_batch_cross_entropy, no_negatives, similarities, similarity_loss
from selfsent.methods.labels import Facts
from selfsent.methods.method import Learner, Loss, Method
from selfsent.methods.pairs import whole_batch
from selfsent.packing import Packed, concatenate
from selfsent.settings import Settings, check_limits, setting
from selfsent.views import View

Objective = Literal["contrast", "relations", "cosine", "mse"]


@dataclass(frozen=True)
class Options:
    """Options of distillation."""

    teacher: str = setting("", "the encoder to follow on the first text column: a directory, a hub id or bundled")
    objective: Objective | None = setting(
        None,
        "what is to agree: the teacher's vector of a sentence, to be found in the batch, and the similarities within"
        " the batch (contrast); these similarities alone (relations); the direction (cosine) or the numbers (mse) of"
        " vectors (default: mse with translations, contrast without)",
        choices=get_args(Objective),
    )
    scale: float = setting(20.0, "multiplies similarities in contrast and relations", above=0.0)
    translations: bool | None = setting(
        None, "the second text column holds translations (default: where there are two columns)"
    )
    project: bool = setting(False, "a dense layer, saved with the model, leads to the size of the teacher's vectors")

    def __post_init__(self) -> None:
        check_limits(self)
        if not self.teacher:
            raise SettingsError("distil follows another encoder: give --teacher ENCODER")


def views(options: Options) -> tuple[View, ...]:
    """The sentence, with the teacher's vector, and its translation where there is one."""
    return (View(0, ready=True), View(1)) if options.translations else (View(0, ready=True),)


def sums(options: Options) -> bool:
    """Whether every vector has but its own to follow, as far as an objective was given."""
    return options.objective in ("cosine", "mse")


def fitted(options: Options, facts: Facts) -> Options:
    """The options, with translations where there are two columns, and an objective, where nothing was said."""
    translations = facts.columns > 1 if options.translations is None else options.translations
    objective = options.objective or ("mse" if translations else "contrast")
    return dataclasses.replace(options, translations=translations, objective=objective)


class DistilLearner(Learner):
    """The student's vectors s, of a sentence and of its translation, follow the frozen teacher's vectors t.

    `mse`: mean over the dimensions of (s − t)², as in the authors' code (Reimers and Gurevych 2020); `cosine`:
    1 − cos(s, t); `relations`: KL(q ‖ p), q and p the softmaxes over the other sentences of the batch of the cosines of
    t and of s, times the scale; `contrast`: that, and the mean of both directions of −log softmax(scale · cos(s, t)),
    in which a sentence must find its teacher's vector among those of the batch. The losses of both columns are added.
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        teacher = load_encoder(options.teacher).eval().requires_grad_(False)
        # In a tuple it is no submodule: neither trained, nor wrapped, nor part of checkpoints.
        self._teacher = (teacher,)
        self.objective = options.objective or "contrast"
        wanted, own = teacher.embedding_size, model.embedding_size
        self.bridge: nn.Module = nn.Identity()
        """Leads to the teacher's size in training only, where vectors of both must be held against each other."""
        if options.project:
            model.sentence_transformer.append(_dense(own, wanted))
        elif wanted != own and self.objective == "contrast":
            self.bridge = nn.Linear(own, wanted, bias=False)
        elif wanted != own and self.objective != "relations":
            raise SettingsError(
                f"the vectors of --teacher {options.teacher} have {wanted} numbers, those of the base {own}:"
                " give --project to add a dense layer, or another --objective, teacher or base"
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
        """The loss of one batch of sentences, which bring the teacher's vectors, and perhaps their translations."""
        if self.objective in ("contrast", "relations"):
            whole_batch(len(views[0]))
        wanted = views[0].vectors
        assert wanted is not None
        students = self.model(concatenate(views)).float().chunk(len(views))
        total = students[0].new_zeros(())
        for student, view in zip(students, views, strict=True):
            total = total + self._apart(student, wanted, view)
        return Loss(total, len(wanted))

    def _apart(self, student: Tensor, wanted: Tensor, view: Packed) -> Tensor:
        """How far (n, d) vectors are from the teacher's, summed."""
        if self.objective == "mse":
            return (student - wanted).square().mean(-1).sum()
        teacher = F.normalize(wanted, dim=-1)
        if self.objective == "cosine":
            return (1 - (F.normalize(student, dim=-1) * teacher).sum(-1)).sum()
        scale = self.options.scale
        total = similarity_loss(F.normalize(student, dim=-1), teacher, scale)
        if self.objective == "contrast":
            led = F.normalize(self.bridge(student).float(), dim=-1)
            same = no_negatives(view, view, [view], by_document=False)
            forth = in_batch_cross_entropy(scale * similarities(led, teacher), same)
            back = in_batch_cross_entropy(scale * similarities(teacher, led), same)
            total = total + (forth + back) / 2
        return total


def _dense(width: int, wanted: int) -> nn.Module:
    from sentence_transformers.base.modules import Dense

    layer: nn.Module = Dense(width, wanted, activation_function=nn.Identity())
    return layer


DISTIL = Method(
    name="distil",
    title="Knowledge distillation, also over translations",
    citation="Reimers and Gurevych, 2020. arXiv:2004.09813",
    objective="a student's vectors, or their similarities, follow a frozen teacher's",
    learner=DistilLearner,
    options=Options,
    views=views,
    fitted=fitted,
    compares=True,
    sums=sums,
    negatives=False,
    pooling="mean",
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=5, warmup=10_000, weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1),
    large_learning_rate=2e-5,
    presets={"published": {"objective": "mse"}},
)
