"""Dropout: the names of its rates in configurations, and a context without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

DROPOUTS = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout", "embedding_dropout"),
    *("mlp_dropout", "attn_pdrop", "resid_pdrop", "embd_pdrop", "hidden_dropout", "activation_dropout", "dropout_rate"),
)
"""Names of dropout rates in configurations."""


def rate_of(config: Any) -> float:
    """The largest dropout rate in a transformer's configuration; 0 without any."""
    return max((float(getattr(config, name, 0.0) or 0.0) for name in DROPOUTS), default=0.0)


@contextmanager
def without_dropout(module: nn.Module) -> Iterator[None]:
    """Within the block the module is in evaluation mode; gradients still flow."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:  # and no others: some were in evaluation mode before
            part.training = True
