"""Definition of a learning method: options with their views, a learner with the loss, and published settings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from torch import Tensor, nn

from selfsent.data.packed import Packed
from selfsent.data.views.view import View
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.models.base_info import BaseInfo
from selfsent.models.encoder import Encoder
from selfsent.models.heads.options import HEADS, Pooling
from selfsent.renamed import warn_renamed
from selfsent.settings import Settings, accept_former_names, check_limits

AnyBase = Encoder | BaseInfo
"""A base encoder that is loaded, or its properties as files have them."""
Compares = Literal["nothing", "batch", "texts", "documents"]


def require_table(what: str, base: AnyBase) -> None:
    """Raise a `BaseEncoderError`, unless the base is a table of token vectors, which the method `what` trains."""
    if not base.is_static:
        problem = f"{what} a table of token vectors, and this base is of the kind {base.kind}"
        raise BaseEncoderError(f"{problem}: choose another base, such as bundled")


@dataclass(frozen=True)
class Loss:
    """A loss as a sum and the number of things summed, so that means over processes and micro-batches are exact.

    `total` is a scalar tensor with gradient; `count` its divisor, the same on any number of processes.
    """

    total: Tensor
    count: float


@dataclass(frozen=True)
class Labels:
    """The class or score that a method needs for each row.

    Args:
        kind: `class`, as 0, 1, ...; or `score`, as in the corpus.
        classes: the largest number of classes; None for as many as there are.
        scale: divisor of the scores.
        low: minimum score, after division.
        high: the largest score, once divided.
        hint: end of the error for a corpus without such labels.
    """

    kind: Literal["class", "score"]
    classes: int | None = None
    scale: float | None = None
    low: float = -math.inf
    high: float = math.inf
    hint: str = ""


@dataclass(frozen=True)
class MethodOptions:
    """A method's own options, and properties derived from them. Fields are made with `selfsent.settings.setting`."""

    method: ClassVar[Method]
    """The method with these options."""

    def __post_init__(self) -> None:
        check_limits(self)

    def views(self) -> tuple[View, ...]:
        """Inputs of the learner, made from each row."""
        return (View(),)

    def labels(self) -> Labels | None:
        """The labels that the learner needs; None where texts are enough."""
        return None

    def fitted(self, columns: int, classes: int | None = None, largest: float | None = None) -> Self:
        """The options, completed by facts of the corpus.

        Args:
            columns: text columns.
            classes: different labels; None with fewer than two.
            largest: the largest score; None without one above zero.
        """
        return self

    def completed(self, **found: Any) -> Self:
        """The options, with these values where they are None."""
        return dataclasses.replace(self, **{name: found[name] for name in found if getattr(self, name) is None})

    @property
    def is_batchwise(self) -> bool:
        """Whether the loss depends on which sentences share a batch, so that cutting one would change the method."""
        return self.method.learner.compares != "nothing"

    @property
    def suits_static(self) -> bool:
        """Whether static embeddings, which have no dropout, can be trained so."""
        return True

    def check_base(self, base: AnyBase, dropout: float | None = None) -> None:
        """Reject a base that cannot be trained with these options: before a text is read, and by the learner.

        Args:
            base: the base encoder.
            dropout: the dropout rate it will have; None for its own.

        Raises:
            BaseEncoderError: it cannot.
            SettingsError: it cannot with these options.
        """

    @property
    def reads_whole_documents(self) -> bool:
        """Whether a view reads as much of a document as the encoder does."""
        return False

    @property
    def teachers(self) -> tuple[str, ...]:
        """Names of the encoders to follow, if any."""
        return ()


class Learner(nn.Module):
    """The trained module: the encoder, and whatever else the method trains or tracks, as submodules.

    In the examples of its subclasses `model` is `load_encoder("bundled-raw", "mean")` (`selfsent.models.loading`), and
    `pack` makes a batch of texts (`selfsent.models.encoding`).

    The training loop wraps, clips, saves and restores the learner as a whole, so submodules and buffers are resumed
    exactly and synchronised between processes.

    Args:
        model: the encoder, which is saved at the end.
        options: the method's own options.
    """

    compares: ClassVar[Compares] = "nothing"
    """Scope of a sentence's loss: the sentence alone, so that a batch may be cut into micro-batches; its batch; or its
    batch, with the other texts, or those of other documents, as negatives."""
    predicts_words = False
    """Whether it needs a language-model head; a base that has one serves it best."""
    nests = False
    """Whether its loss is one of vectors alone, which then can be their beginnings: see `Matryoshka`."""
    may_collapse = False
    """Whether a run goes on when sentence vectors collapse, because it does not train them."""
    teachers: Sequence[Encoder] = ()
    """The encoders that make `features`, with tokenizers of their own."""
    fixed: Sequence[Encoder] = ()
    """Encoders that it compares with and does not train. In a tuple they are no submodules: neither trained, nor
    wrapped, nor part of checkpoints."""

    def __init__(self, model: Encoder, options: Any) -> None:
        super().__init__()
        options.check_base(model)
        self.model = model
        self.options = options
        self.class_names: tuple[str, ...] = ()
        """Names of the classes 0, 1, ... in the corpus, where the method learns classes."""
        if model.language_model_head is not None:
            shared = set(model.transformer.parameters())
            for parameter in set(model.language_model_head.parameters()) - shared:
                parameter.requires_grad_(False)  # until `require_head`

    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """Set-up from the data; called once, before the optimiser is made and the learner is wrapped.

        Args:
            batches: every sentence of this process' share once, undamaged, in random order; made on demand.
        """

    def features(self, packed: Packed) -> Tensor:
        """(sentences, d) vectors by the frozen part, made once; only of methods with `precomputed` views."""
        raise TypeError(f"{type(self).__name__} has no frozen part")

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch, given as one packed batch a view; `labels` is (batch,) or (batch, d).

        A closed-form method, which looks at the data once in `prepare`, has none.
        """
        raise TypeError(f"{type(self).__name__} has no loss: it looks at the sentences once")

    @property
    def frozen(self) -> Sequence[Tensor]:
        """Weights that stay those of the base, and are in no checkpoint."""
        return self.model.frozen

    def save(self, directory: Path) -> None:
        """Write the model, and whatever else the run should keep."""
        self.model.save(directory)

    def after_step(self) -> None:
        """Hook after an optimiser step, such as for a moving average."""

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """Parameters for the optimiser: matrices decay, biases and norms do not."""
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return [
            {"params": chosen, "weight_decay": decay}
            for decay, matrix in ((settings.weight_decay, True), (0.0, False))
            if (chosen := [parameter for parameter in trained if (parameter.ndim > 1) is matrix])
        ]

    @staticmethod
    def at_rate(rate: float, module: nn.Module, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Parameter groups, with the parameters of a module in groups of their own, at a rate of their own."""
        apart = set(module.parameters())
        split = [
            {**group, **own_rate, "params": [each for each in group["params"] if (each in apart) is bool(own_rate)]}
            for own_rate in ({}, {"lr": rate})
            for group in groups
        ]
        return [group for group in split if group["params"]]


ONE_PASS = Settings(epochs=1)
STATIC = Settings(batch_size=512, learning_rate=0.016, epochs=15, warmup=0, beta2=0.98, max_length=64)
"""Default settings for static embeddings, where nothing else is known: many cheap steps at a high rate."""
NEW_STATIC = STATIC.replace(batch_size=1024, learning_rate=0.02)
"""Default settings for untrained static embeddings."""
STATIC_STEPS = 3000
"""Default limit of steps for static embeddings: on much text, fewer passes."""


@dataclass(frozen=True)
class Method:
    """A learning method, as its authors describe it. Title, loss and paper are in the docstring of its options.

    Args:
        name: its name on the command line.
        options: its own options.
        learner: makes the learner from an encoder and the options.
        published: the settings of the paper.
        defaults: the settings by default: measured on the bundled encoder, see docs/log.
        large_learning_rate: the default rate for encoders of more than 15 million parameters.
        pooling: the pooling it is published with.
        static: the default settings for static embeddings; None where these cannot be trained.
        static_whiten: strength of the whitening of trained static embeddings after training.
        for_encoders: default options where the base is a sentence encoder already, and has something to lose.
        default_base: None for the best of the bases that ship and that it can train.
        presets: options and settings that differ from `published`: `published` for those of the paper that are no
            defaults, `faithful` where the authors' code differs from their paper.
        aims_at_context: whether the label-free score asks what it trains, so that its score means less.
        supervised: whether it learns from labels, or from texts that are known to belong together.
        compared: whether `compare` tries it by default: no variant of another method, nor a baseline of older papers.
    """

    name: str
    options: type[MethodOptions]
    learner: type[Learner]
    published: Settings = ONE_PASS
    defaults: Settings = Settings(batch_size=64, learning_rate=5e-4, epochs=1)  # noqa: RUF009 — it is frozen
    large_learning_rate: float = 2e-5
    pooling: Pooling = "mean"
    static: Settings | None = STATIC
    static_whiten: float = 0.0
    for_encoders: Mapping[str, Any] = field(default_factory=dict)
    default_base: str | None = None
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    aims_at_context: bool = False
    supervised: bool = False
    compared: bool = True

    def __post_init__(self) -> None:
        accept_former_names(self.options)

    @property
    def described(self) -> dict[str, str]:
        """The `title` in full, the `objective` in one line, and the `citation`: authors, year, where published."""
        paragraphs = [" ".join(part.split()).rstrip(".") for part in (self.options.__doc__ or "").split("\n\n")]
        return dict(zip(("title", "objective", "citation"), paragraphs, strict=False))

    @property
    def closed_form(self) -> bool:
        """Whether `prepare` is all there is: one look at every sentence, no steps."""
        return self.learner.forward is Learner.forward

    @property
    def head(self) -> str | None:
        """The head that the learner gives the encoder, where the method has one of its own."""
        return next((name for name, kind in HEADS.items() if issubclass(self.options, kind)), None)

    def replace(self, **changes: Any) -> Method:
        """Copy the method with some fields changed."""
        return dataclasses.replace(self, **changes)

    def but(self, **changes: Any) -> Method:
        """Deprecated: `replace`."""
        warn_renamed("Method.but", "Method.replace")
        return self.replace(**changes)

    def preset(self, name: str | None) -> Mapping[str, Any]:
        """The options and settings of a preset that differ from the published settings; of None, nothing.

        Raises:
            SettingsError: there is no such preset.
        """
        known = {"published": {}, **self.presets}
        if name is None or name in known:
            return known[name] if name else {}
        raise SettingsError(f"{self.name} has no settings {name!r}; it has {', '.join(known)}")
