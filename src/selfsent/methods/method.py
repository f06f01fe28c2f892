"""What a learning method is: a learner, the views it eats, its options, and the settings its authors published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn

from selfsent.data.views import View
from selfsent.fast.packing import Packed
from selfsent.fast.two_threads import Network, at_once
from selfsent.methods.labels import Facts, Labels
from selfsent.models.encoder import Encoder, Pooling
from selfsent.settings import Settings


@dataclass(frozen=True)
class Loss:
    """A loss as a sum and the number of things summed, so that means over processes and micro-batches are exact.

    `total` is a scalar tensor with gradient; `count` what it is to be divided by, the same on any number of processes.
    """

    total: Tensor
    count: float


class Learner(nn.Module):
    """The model that is trained: the encoder, and whatever else the method trains or tracks, as submodules.

    In the examples of its subclasses `model` is `load_encoder("bundled-raw", "mean")` (`selfsent.models.loading`), and
    `pack` makes a batch of texts (`selfsent.models.encoding`).

    The training loop wraps, clips, saves and restores the learner as a whole, so whatever is a submodule or buffer
    is resumed exactly and synchronised between processes.

    Args:
        model: the encoder; what is saved at the end.
        options: the method's own options.
    """

    may_collapse = False
    """Whether a run goes on when sentence vectors become alike: they are not what it learns."""

    def __init__(self, model: Encoder, options: Any) -> None:
        super().__init__()
        self.model = model
        self.options = options
        self.progress = 0.0
        """Share of the run that is done, for what changes in its course; the loop sets it before every `after_step`."""
        self.alone = False
        """Whether one process trains it, on a CPU, so that two networks may run side by side; the loop says so."""
        self.class_names: tuple[str, ...] = ()
        """What the corpus calls the classes 0, 1, ... where the method learns classes."""
        if model.language_model_head is not None:
            shared = set(model.transformer.parameters())
            for parameter in set(model.language_model_head.parameters()) - shared:
                parameter.requires_grad_(False)  # until the method asks for the head

    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """Once, before the optimiser is made and anything is wrapped: whatever depends on the data.

        Args:
            batches: every sentence of this process' share once, undamaged, in random order; made as they are asked for.
        """

    def features(self, packed: Packed) -> Tensor:
        """(sentences, d) vectors by the frozen part, made once; only of methods with views that are `ready`."""
        raise TypeError(f"{type(self).__name__} has no frozen part")

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one batch, given as one packed batch a view; `labels` is (batch,) or (batch, d).

        Methods that only look at the data once, in `prepare`, have none.
        """
        raise TypeError(f"{type(self).__name__} has no loss: it looks at the sentences once")

    def both(self, one: Network, other: Network, random: bool = False) -> tuple[Tensor, Tensor]:
        """What two networks without common weights give: at the same time where it is `alone`, else in turn.

        Args:
            one: computes the first one's vectors.
            other: computes the second one's.
            random: whether both draw random numbers.
        """
        return at_once(one, other) if self.alone and not random else (one(), other())

    @property
    def teachers(self) -> Sequence[Encoder]:
        """Who makes `features`, side by side, where those are other encoders, with tokenizers of their own."""
        return ()

    @property
    def paths(self) -> dict[str, str]:
        """Which of several ways to compute the same this learner takes; `run.json` says it."""
        if not self.model.has_transformer:
            return {"attention": "none"}
        return {"attention": "packed" if self.model.states.runs_packed else "padded"}

    def save(self, directory: Path) -> None:
        """Write the model, and beside it whatever else the run should leave behind."""
        self.model.save(directory)

    def after_step(self) -> None:
        """What follows an optimiser step, such as a moving average."""

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """Parameters for the optimiser: matrices decay, biases and norms do not."""
        named = [(name, parameter) for name, parameter in self.named_parameters() if parameter.requires_grad]
        decaying = [parameter for _, parameter in named if parameter.ndim > 1]
        still = [parameter for _, parameter in named if parameter.ndim <= 1]
        groups = [{"params": decaying, "weight_decay": settings.weight_decay}, {"params": still, "weight_decay": 0.0}]
        return [group for group in groups if group["params"]]

    def with_rate(
        self, groups: list[dict[str, Any]], parameters: Iterable[Tensor], rate: float
    ) -> list[dict[str, Any]]:
        """Parameter groups in which some parameters have a learning rate of their own."""
        chosen = set(parameters)
        other = [{**group, "params": [each for each in group["params"] if each not in chosen]} for group in groups]
        own = [
            {**group, "params": [each for each in group["params"] if each in chosen], "lr": rate} for group in groups
        ]
        return [group for group in other + own if group["params"]]


STATIC = Settings(batch_size=512, learning_rate=0.004, epochs=15, warmup=0, beta2=0.98, max_length=64)
"""How a table of token vectors is trained, where nothing else is known: in many cheap steps, at a high rate."""
NEW_STATIC = STATIC.but(batch_size=1024, learning_rate=0.02)
"""The same of a table that nobody has trained yet."""
STATIC_STEPS = 3000
"""Steps that such a table takes at most, unless told otherwise: on much text, fewer passes."""


@dataclass(frozen=True)
class Method:
    """A learning method, as its authors describe it.

    Args:
        name: its name on the command line.
        title: its name in full.
        citation: authors, year and where it was published.
        objective: the loss in one line.
        learner: makes the learner from an encoder and the options.
        options: a frozen dataclass of the method's own options, fields made with `selfsent.settings.setting`.
        views: the views that the learner eats, for given options.
        batchwise: whether the loss depends on which sentences share a batch, so that cutting one into micro-batches
            would change the method; otherwise it is a sum over sentences.
        closed_form: whether `prepare` is all there is: one look at every sentence, no steps.
        pooling: the pooling it is published with.
        published: the settings of the paper.
        defaults: what is used when nothing is said: measured on the bundled encoder, see docs/log.
        large_learning_rate: the default rate for encoders of more than 15 million parameters.
        for_encoders: options by default where the base is a sentence encoder already, and has something to lose.
        static: what is used instead where the base is a table of token vectors; None where that cannot be trained.
        static_whiten: how strongly such a table is whitened after training, if somebody trained it before, and nothing
            follows it.
        predicts_words: whether it needs a head for words, for given options; a base that has one serves it best.
        suits_static: whether such a table can be trained with given options: it has no dropout, and predicts no words.
        sums: for given options, whether the loss is a sum over sentences after all.
        in_batch_negatives: whether a batchwise loss takes the other sentences of the batch for different ones.
        by_document: whether it leaves those of a sentence's own document out of them.
        head: name of the head that the learner gives the encoder, where the method has one of its own.
        usual_base: the base by default; None for the best of those that ship and that it can train.
        presets: named sets of options and settings, such as the authors' code where it differs from their paper.
        labels: what the learner must know about each row, for given options; None where texts are enough.
        fitted: completes the options by what is found in the data, such as the number of classes.
    """

    name: str
    title: str
    citation: str
    objective: str
    learner: Callable[[Encoder, Any], Learner]
    options: type[Any]
    views: Callable[[Any], tuple[View, ...]]
    batchwise: bool
    pooling: Pooling
    published: Settings
    defaults: Settings
    large_learning_rate: float
    static: Settings | None = None
    predicts_words: Callable[[Any], bool] = lambda options: False
    suits_static: Callable[[Any], bool] = lambda options: True
    sums: Callable[[Any], bool] = lambda options: False
    in_batch_negatives: bool = True
    by_document: bool = True
    for_encoders: Mapping[str, Any] = field(default_factory=dict)
    static_whiten: float = 0.0
    usual_base: str | None = None
    presets: Mapping[Literal["faithful"] | str, Mapping[str, Any]] = field(default_factory=dict)
    closed_form: bool = False
    head: str | None = None
    labels: Callable[[Any], Labels | None] = lambda options: None
    fitted: Callable[[Any, Facts], Any] = lambda options, facts: options

    def is_batchwise(self, options: Any) -> bool:
        """Whether the loss depends on which sentences share a batch, for given options."""
        return self.batchwise and not self.sums(options)
