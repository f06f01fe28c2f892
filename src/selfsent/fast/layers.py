"""Layers that compute what a learner's own would, in less time."""

from __future__ import annotations

from torch import nn

from selfsent.fast.dropout import put_dropout
from selfsent.fast.linear import put_linears
from selfsent.fast.lookups import put_lookups
from selfsent.settings import Precision


def put_layers(learner: nn.Module, precision: Precision, alone: bool) -> None:
    """Let dropout, and where it may its tables and products, work in ways that take less time.

    Args:
        learner: it is changed.
        precision: what is computed in.
        alone: whether this process trains it without others, so that gradients may be added where they lie.
    """
    put_dropout(learner)
    if alone:
        put_lookups(learner)
        if precision == "bfloat16":
            put_linears(learner)
