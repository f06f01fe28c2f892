"""Distillation: a student gives a sentence, and its translation where there is one, what a teacher makes of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.views import View
from selfsent.errors import SettingsError
from selfsent.fast.packing import Packed, concatenate
from selfsent.methods.contrast import in_batch_cross_entropy, no_negatives, similarities, similarity_loss
from selfsent.methods.labels import Facts
from selfsent.methods.method import STATIC, Learner, Loss, Method
from selfsent.methods.two_views import whole_batch
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.models.loading import load_encoder
from selfsent.naming import names
from selfsent.settings import Settings, check_limits, setting

Objective = Literal["contrast", "relations", "cosine", "mse"]


_INITIAL = 8192
"""Sentences by which the bridge begins, at least."""
_RIDGE = 1e-3
"""Added to the variances then, as a share of their mean."""


@dataclass(frozen=True)
class Options:
    """Options of distillation."""

    teacher: str = setting(
        "",
        "the encoder to follow on the first text column: a directory, a hub id or bundled, or several with commas",
    )
    objective: Objective | None = setting(
        None,
        "what the student learns. contrast: to find the teacher's vector in the batch, and the similarities within it;"
        " relations: these similarities alone; cosine: the direction of vectors; mse: their numbers"
        " (default: mse with translations, contrast without)",
    )
    scale: float = setting(20.0, "multiplies similarities in contrast and relations", above=0.0)
    translations: bool | None = setting(
        None, "the second text column holds translations (default: where there are two columns)"
    )
    project: bool = setting(False, "a dense layer, saved with the model, leads to the size of the teacher's vectors")

    def __post_init__(self) -> None:
        check_limits(self)
        if not self.teachers:
            raise SettingsError("distil follows another encoder: give --teacher ENCODER")

    @property
    def teachers(self) -> tuple[str, ...]:
        """The encoders to follow."""
        return tuple(filter(None, names(self.teacher)))


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

    Of several teachers, t are their vectors one behind the other. For all but `mse` each of them has length 1 before,
    so that cos(t, t′) is the mean of the teachers' cosines.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | for the student, with the teacher's vectors in `vectors`, (n, t) |
    | `views[1]` | n translations | where there are any |
    | loss | a sum | over the n sentences |

    Example:
        >>> learner = DistilLearner(model, Options(teacher="bundled"))
        >>> batch = pack(model, ["a cat sat", "dogs bark"])
        >>> batch.vectors = learner.features(batch)
        >>> learner([batch]).count
        2
    """

    options: Options

    def __init__(self, model: Encoder, options: Options) -> None:
        super().__init__(model, options)
        # In a tuple they are no submodules: neither trained, nor wrapped, nor part of checkpoints.
        self._teachers = tuple(load_encoder(name).eval().requires_grad_(False) for name in options.teachers)
        self.objective = options.objective or "contrast"
        self.sizes = [teacher.embedding_size for teacher in self._teachers]
        wanted, own = sum(self.sizes), model.embedding_size
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
    def teachers(self) -> Sequence[Encoder]:
        """The encoders that are followed."""
        return self._teachers

    @torch.no_grad()
    def features(self, packed: Packed) -> Tensor:
        """(sentences, d) vectors of the teachers, side by side, from tokens that all of them know."""
        return torch.cat([teacher.to(packed.device)(packed).float() for teacher in self.teachers], dim=1)

    @torch.no_grad()
    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """Let the bridge begin as what leads best, by least squares, from the student's vectors to the teacher's.

        A random one would first of all teach a student that knows something to forget it.
        """
        if not isinstance(self.bridge, nn.Linear):
            return
        own, wanted = [], []
        with without_dropout(self.model):
            for view, *_ in batches:
                assert view.vectors is not None
                own.append(self.model(view).float())
                wanted.append(self._directions(view.vectors))
                if sum(map(len, own)) >= _INITIAL:
                    break
        if own:  # a process without a share gets the first one's bridge
            students = F.normalize(torch.cat(own), dim=-1).double()
            spread = students.T @ students
            ridge = _RIDGE * spread.diagonal().mean() * torch.eye(len(spread), dtype=spread.dtype, device=spread.device)
            led = torch.linalg.solve(spread + ridge, students.T @ torch.cat(wanted).double())
            self.bridge.weight.copy_(led.T)

    def _directions(self, wanted: Tensor) -> Tensor:
        """The teachers' vectors, each of length 1, side by side as one vector of length 1."""
        parts = [F.normalize(part.float(), dim=-1) for part in torch.split(wanted, self.sizes, dim=-1)]
        return torch.cat(parts, dim=-1) / math.sqrt(len(parts))

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
        teacher = self._directions(wanted)
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
    batchwise=True,
    sums=sums,
    in_batch_negatives=False,
    pooling="mean",
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=5, warmup=10_000, weight_decay=0.01, epsilon=1e-6),
    defaults=Settings(batch_size=64, learning_rate=5e-4, epochs=1),
    large_learning_rate=2e-5,
    static=STATIC,
    presets={"published": {"objective": "mse"}},
)
