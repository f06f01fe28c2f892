"""BERT-flow: an invertible map after which the vectors of a frozen encoder are as likely as can be as normal ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from selfsent.data.packed import Packed
from selfsent.data.views.view import View
from selfsent.methods.method import Learner, Loss, Method, MethodOptions
from selfsent.models.encoder import Encoder
from selfsent.models.heads.layers import Layers
from selfsent.settings import Settings, setting


@dataclass(frozen=True)
class Flow(MethodOptions):
    """Options of BERT-flow."""

    layers: Layers = setting("last", "layers whose states are averaged before pooling")
    levels: int = setting(3, "levels of the flow; after each but the last, half of the dimensions is done", minimum=1)
    depth: int = setting(3, "steps in a level", minimum=1)
    width: int = setting(32, "hidden units of the couplings", minimum=1)
    initial: int = setting(4096, "sentences whose mean and spread the flow begins with", minimum=2)
    noisy: bool = setting(False, "leave the frozen encoder's dropout on, as the authors' code does")

    def views(self) -> tuple[View, ...]:
        """The sentence, encoded once before training unless dropout is on."""
        return (View(precomputed=not self.noisy),)


class FlowLearner(Learner):
    """−(log N(f(u); 0, I) + log |det ∂f/∂u|) / (d ln 2), u the frozen encoder's vector (Li et al. 2020, equation 4).

    | | shape | |
    |---|---|---|
    | `views[0]` | n sentences | whose vectors the frozen encoder makes once |
    | loss | a sum | over the n sentences |

    Example:
        >>> learner = FlowLearner(model, Flow(levels=1, depth=1))
        >>> batch = pack(model, ["a cat sat", "dogs bark"])
        >>> learner.features(batch).shape[0]
        2
    """

    options: Flow

    def __init__(self, model: Encoder, options: Flow) -> None:
        super().__init__(model, options)
        from selfsent.models.heads.flow import Flow

        model.average_layers(options.layers)
        model.requires_grad_(False)
        self.size = model.embedding_size
        flow = Flow(self.size, options.levels, options.depth, options.width)
        model.sentence_transformer.append(flow.to(model.device))

    @property
    def flow(self) -> Any:
        """The map, which is the model's last module."""
        return self.model.sentence_transformer[-1]

    def train(self, mode: bool = True) -> FlowLearner:
        """Only the flow is trained: the encoder drops nothing out, unless it is asked to."""
        super().train(mode)
        self.model.train(mode and self.options.noisy)
        return self

    @torch.no_grad()
    def features(self, packed: Packed) -> Tensor:
        """(n, d) vectors of the frozen encoder, without the flow."""
        return cast(Tensor, self.model(packed, leave_out=1)).float()

    def _vectors(self, packed: Packed) -> Tensor:
        return self.features(packed) if packed.vectors is None else packed.vectors

    @torch.no_grad()
    def prepare(self, batches: Iterable[Sequence[Packed]]) -> None:
        """Set every ActNorm by the first sentences, so that the flow begins as the z-score of each dimension."""
        first: list[Tensor] = []
        for (view,) in batches:
            first.append(self._vectors(view))
            if sum(map(len, first)) >= self.options.initial:
                break
        # A process without a share of its own gets the first process' flow when the learner is wrapped.
        if first:
            with self.flow.starting():
                self.flow.transformed(torch.cat(first)[: self.options.initial])

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """Bits per dimension of one batch."""
        likelihoods = self.flow.log_likelihood(self._vectors(views[0]))
        return Loss(-likelihoods.sum() / (self.size * math.log(2)), len(views[0]))

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """Everything decays but the coupling's biases, the ActNorms too, as in the authors' code."""
        named = list(self.flow.named_parameters())
        decaying = [parameter for name, parameter in named if not name.endswith("bias")]
        still = [parameter for name, parameter in named if name.endswith("bias")]
        return [{"params": decaying, "weight_decay": settings.weight_decay}, {"params": still, "weight_decay": 0.0}]


_SETTINGS = Settings(
    batch_size=64,
    learning_rate=1e-3,
    epochs=1,
    schedule="constant",
    warmup=0,
    weight_decay=0.01,
    epsilon=1e-6,
    max_length=64,
)

Flow.method = Method(
    name="flow",
    title="BERT-flow: a normalising flow above a frozen encoder",
    citation="Li, Zhou, He, Wang, Yang and Li, 2020. arXiv:2011.05864",
    objective="−(log N(f(u); 0, I) + log |det ∂f/∂u|) / (d ln 2), u the vector of the frozen encoder",
    learner=FlowLearner,
    options=Flow,
    published=_SETTINGS,
    defaults=_SETTINGS.but(max_length=128),
    large_learning_rate=1e-3,
    static=_SETTINGS.but(max_length=128),
    presets={
        "published": {"layers": "first+last"},
        "faithful": {"layers": "first+last", "noisy": True, "initial": 64},
    },
    aimed_at=("spectrum",),
)
