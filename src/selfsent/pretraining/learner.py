"""The masked language model that is pretrained."""

from __future__ import annotations

from typing import Any

from selfsent.encoder import Encoder
from selfsent.methods.mlm import MaskedLearner
from selfsent.methods.mlm import Options as MaskedOptions
from selfsent.settings import Settings


class PretrainingLearner(MaskedLearner):
    """Masked language modelling whose embedding tables learn at a rate of their own.

    At the full rate, a few hundred steps overwrite what the counts of neighbours put there (docs/log.md).

    Args:
        model: the encoder.
        ratio: share of the tokens to predict.
        embedding_rate: the rate of the embedding tables, as a share of the learning rate.
    """

    def __init__(self, model: Encoder, ratio: float, embedding_rate: float) -> None:
        super().__init__(model, MaskedOptions(ratio))
        self.embedding_rate = embedding_rate

    def parameter_groups(self, settings: Settings) -> list[dict[str, Any]]:
        """As ever, and the tables of words, positions and types in a group of their own."""
        tables = [parameter for parameter in self.model.transformer.embeddings.parameters() if parameter.ndim > 1]
        return self.with_rate(super().parameter_groups(settings), tables, self.embedding_rate * settings.learning_rate)
