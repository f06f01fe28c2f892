"""Distillation: a student learns a teacher's vectors for sentences, and for their translations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfsent.data.packed import Packed, concatenate
from selfsent.data.views.view import View, ViewSide
from selfsent.distributed import gather, world_size
from selfsent.errors import SettingsError
from selfsent.methods.contrast import ranking_loss, similarity_loss
from selfsent.methods.matryoshka import all_sizes
from selfsent.methods.method import Learner, Loss, Method, MethodOptions
from selfsent.methods.postprocessing import ENOUGH
from selfsent.models.bases import resolve
from selfsent.models.dropout import without_dropout
from selfsent.models.encoder import Encoder
from selfsent.models.fingerprint import fingerprint
from selfsent.models.loading import load_encoder
from selfsent.models.prompts import Prompts
from selfsent.naming import names
from selfsent.settings import Settings, setting

_RIDGE = 1e-6
"""Share of the mean square of a student's numbers that is added to each, so that the map into a space exists."""


@dataclass(frozen=True)
class Distil(MethodOptions):
    """Knowledge distillation, also over translations.

    a student's vectors, or their similarities, follow a frozen teacher's.

    Reimers and Gurevych, 2020. arXiv:2004.09813.
    """

    teacher: str = setting("", "the encoder to follow on the first text column, or several with commas")
    objective: Literal["contrast", "cosine", "mse"] | None = setting(
        None,
        "what the student learns. mse: the numbers of the teacher's vector; cosine: its direction; contrast: to find"
        " the teacher's vector in the batch, and the similarities within it (default: mse with translations, contrast"
        " without, cosine with space=teacher)",
    )
    space: Literal["own", "teacher"] = setting("own", "teacher: the student's queries search the teacher's documents")
    scale: float = setting(20.0, "multiplies similarities in contrast", above=0.0)
    translations: bool | None = setting(None, "the second text column holds translations (default: if there is one)")
    project: bool = setting(False, "a dense layer, saved with the model, leads to the size of the teacher's vectors")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.teachers:
            raise SettingsError("distil follows another encoder: give teacher=ENCODER")
        if self.space == "teacher" and (len(self.teachers) > 1 or self.project):
            problem = "space=teacher is the space of one teacher, in its size: leave out others, and `project`"
            raise SettingsError(problem)

    @property
    def teachers(self) -> tuple[str, ...]:
        """The encoders to follow."""
        return tuple(filter(None, names(self.teacher)))

    def views(self) -> tuple[View, ...]:
        """The sentence, with the teacher's vector, and its translation where there is one."""
        side: ViewSide = "query" if self.space == "teacher" else "symmetric"
        return (View(precomputed=True, side=side), *([View(1, side=side)] if self.translations else []))

    def fitted(self, columns: int, classes: int | None = None, largest: float | None = None) -> Self:
        """The options, with translations where there are two columns, and the objective that goes with them."""
        made = self.completed(translations=columns > 1)
        near = "cosine" if self.space == "teacher" else "mse" if made.translations else "contrast"
        return made.completed(objective=near)

    @property
    def is_batchwise(self) -> bool:
        """Whether vectors are compared with others than their own teacher's."""
        return self.objective not in ("mse", "cosine")


class DistilLearner(Learner):
    """Σ ‖s − t‖² / d, s the student's vector of a sentence or translation, t the teacher's (Reimers and Gurevych 2020).

    That is `mse`, the mean over the dimensions d as in the authors' code. `cosine` is 1 − cos(s, t). `contrast` is the
    mean of both directions of −log softmax(scale · cos(s, t)), in which a sentence must find its teacher's vector among
    those of the batch, and KL(q ‖ p), q and p the softmaxes over the other sentences of the batch of the cosines of t
    and of s, times the scale. The losses of both columns are added.

    With `space="teacher"` the student starts with the map u → W u + b that is nearest to the teacher's vectors by least
    squares. It is a dense layer, or goes into the rows of a table.

    Of several teachers, t are their concatenated vectors. For `contrast` each of them has length 1 before, so
    that cos(t, t′) is the mean of the teachers' cosines.

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | for the student, with the teacher's vectors in `vectors`, (n, t) |
    | `views[1]` | n translations | where there are any |
    | loss | a sum | over the n sentences |

    Examples:
        >>> learner = DistilLearner(model, Distil(teacher="bundled"))
        >>> batch = pack(model, ["a cat sat", "dogs bark"])
        >>> batch.vectors = learner.features(batch)
        >>> learner([batch]).count
        2
    """

    options: Distil
    compares = "batch"
    nests = True

    def __init__(self, model: Encoder, options: Distil) -> None:
        super().__init__(model, options)
        # In a tuple they are no submodules: neither trained, nor wrapped, nor part of checkpoints.
        self.teachers = tuple(load_encoder(name).eval().requires_grad_(False) for name in options.teachers)
        space = fingerprint(self.teachers[0]) if options.space == "teacher" else ""  # as others load it
        for name, teacher in zip(options.teachers, self.teachers, strict=True):
            prompts = Prompts.of(resolve(name))
            (prompts if options.space == "own" else replace(prompts, symmetric=prompts.query)).put(teacher)
        self.sizes = [teacher.embedding_size for teacher in self.teachers]
        wanted, own = sum(self.sizes), model.embedding_size
        self.bridge: nn.Module = nn.Identity()
        """Projection to the teacher's size, in training only."""
        if space:
            model.space = space
        elif options.project:
            from sentence_transformers.base.modules import Dense

            model.sentence_transformer.append(Dense(own, wanted, activation_function=nn.Identity()))
        elif wanted != own and not options.is_batchwise:
            problem = f"the vectors of the teacher {options.teacher} have {wanted} numbers, those of the base {own}"
            advice = "give project=True to add a dense layer, or another `objective`, `teacher` or `base`"
            raise SettingsError(f"{problem}: {advice}")
        elif wanted != own:
            self.bridge = nn.Linear(own, wanted, bias=False)

    @torch.no_grad()
    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """Lead the student into the teacher's space: W and b that minimise Σ ‖W u + b − t‖², u its vectors."""
        if self.options.space != "teacher":
            return
        own, wanted, model, number = self.model.embedding_size, sum(self.sizes), self.model, 0
        squares = torch.zeros(own + 1, own + 1 + wanted, dtype=torch.float64, device=model.device)
        with without_dropout(model):
            for view, *_ in batches:
                assert view.vectors is not None
                u = F.pad(model(view).double(), (0, 1), value=1.0)
                squares += u.T @ torch.cat([u, F.normalize(view.vectors.double(), dim=-1)], dim=1)
                if (number := number + len(u)) * world_size() >= ENOUGH:
                    break
        inner, outer = torch.split(gather(squares[None]).sum(0), [own + 1, wanted], dim=1)
        ridge = _RIDGE * inner.diagonal().mean() * torch.eye(own + 1, device=model.device)
        weight = torch.linalg.solve(inner + ridge, outer).T
        model.put_affine(weight[:, :own].contiguous(), weight[:, own])
        model.sizes = all_sizes(model.sizes[1:], wanted)

    @torch.no_grad()
    def features(self, packed: Packed) -> Tensor:
        """(sentences, d) vectors of the teachers, side by side, from tokens that all of them know."""
        return torch.cat([teacher.to(packed.device)(packed).float() for teacher in self.teachers], dim=1)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch of sentences, which bring the teacher's vectors, and perhaps their translations."""
        t = views[0].vectors
        assert t is not None
        students = self.model(concatenate(views)).float().chunk(len(views))
        if self.options.is_batchwise:
            totals = [self._contrast(s, t, view) for s, view in zip(students, views, strict=True)]
        else:
            near = self.options.objective == "mse"
            totals = [((s - t).square().mean(-1) if near else 1 - F.cosine_similarity(s, t)).sum() for s in students]
        return Loss(torch.stack(totals).sum(), len(t))

    def _contrast(self, student: Tensor, targets: Tensor, view: Packed) -> Tensor:
        """The distance of (n, d) vectors from the teacher's by `contrast`, summed."""
        parts = [F.normalize(part.float(), dim=-1) for part in torch.split(targets, self.sizes, dim=-1)]
        teacher, scale = torch.cat(parts, dim=-1) / math.sqrt(len(parts)), self.options.scale
        led = F.normalize(self.bridge(student).float(), dim=-1)
        forth = ranking_loss(led, [teacher], view, [view], scale, by_document=False)
        back = ranking_loss(teacher, [led], view, [view], scale, by_document=False)
        return similarity_loss(F.normalize(student, dim=-1), teacher, scale) + (forth + back) / 2


Distil.method = Method(
    "distil",
    Distil,
    DistilLearner,
    published=Settings(batch_size=64, learning_rate=2e-5, epochs=5, warmup=10_000, weight_decay=0.01, epsilon=1e-6),
    presets={"published": {"objective": "mse"}},
    supervised=True,
)
