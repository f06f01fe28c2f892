"""The masked language model that is pretrained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from selfsent.fast.packing import Packed
from selfsent.methods import Loss
from selfsent.methods.mlm import MaskedLearner, masked_loss
from selfsent.methods.mlm import Options as MaskedOptions
from selfsent.models.encoder import Encoder
from selfsent.settings import Settings


class PretrainingLearner(MaskedLearner):
    """Masked language modelling whose embedding tables learn at a rate of their own.

    At the full rate, a few hundred steps overwrite what the counts of neighbours put there (docs/log).

    Args:
        model: the encoder.
        ratio: share of the tokens to predict.
        embedding_rate: the rate of the embedding tables, as a share of the learning rate.
    """

    def __init__(self, model: Encoder, ratio: float, embedding_rate: float) -> None:
        super().__init__(model, MaskedOptions(ratio))
        self.embedding_rate = embedding_rate
        self._read_blocks: Callable[[Tensor], Tensor] | None = None

    def compile_blocks(self, notice: Callable[[str], None]) -> None:
        """Train with a compiled encoder, where there is a compiler: all batches of blocks have one shape, so one graph.

        Args:
            notice: is told why not, if compiling fails.
        """
        compiled = torch.compile(self._of_blocks, dynamic=False)

        def first_time(ids: Tensor) -> Tensor:
            try:
                states = compiled(ids)
                self._read_blocks = compiled
            except Exception as error:  # each part of a compiler that may be missing has its own
                notice(f"training without torch.compile, which failed: {_first_line(error)}")
                self._read_blocks = None
                states = self._of_blocks(ids)
            return states

        self._read_blocks = first_time

    def _of_blocks(self, ids: Tensor) -> Tensor:
        """(blocks, length) ids to (blocks, length, d) states."""
        return cast(Tensor, self.model.transformer(input_ids=ids).last_hidden_state)

    def forward(self, views: Sequence[Packed], labels: Tensor | None = None) -> Loss:
        """The loss of one masked batch."""
        if self._read_blocks is None or not self.training:
            return super().forward(views, labels)
        (masked,) = views
        states = self._read_blocks(masked.ids.view(len(masked), -1)).flatten(0, 1)
        return masked_loss(self.model.require_head("pretrain"), states, masked)

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """As ever, and the tables of words, positions and types in a group of their own."""
        tables = [parameter for parameter in self.model.transformer.embeddings.parameters() if parameter.ndim > 1]
        return self.with_rate(super().parameter_groups(settings), tables, self.embedding_rate * settings.learning_rate)


def _first_line(error: Exception) -> str:
    inner = getattr(error, "inner_exception", error)  # what went wrong within a backend
    return next(iter(str(inner).strip().splitlines()), type(inner).__name__)
