"""Layers that compute what a learner's own would, in less time."""

from __future__ import annotations

from selfsent.dropout import put_dropout
from selfsent.methods import Learner
from selfsent.settings import Precision
from selfsent.training.embeddings import put_lookups
from selfsent.training.linear import put_linears


def put_layers(learner: Learner, precision: Precision) -> None:
    """Let dropout, and where the learner is `alone` its tables and products, work in ways that take less time.

    Args:
        learner: it is changed.
        precision: what is computed in.
    """
    put_dropout(learner)
    if learner.alone:
        put_lookups(learner)
        if precision == "bfloat16":
            put_linears(learner)
