"""Loss and speed of a run, and how often its space is probed."""

from __future__ import annotations

import math
import time

import numpy as np

from selfsent.models.health import SENTENCES

PROBES = 20
"""Health probes in a run; fewer, but at least 5, where they would take a tenth of it."""


class Meter:
    """Loss and speed since the last log line."""

    def __init__(self) -> None:
        self.since, self.norm = time.perf_counter(), 0.0
        self.sums = np.zeros(4)
        """Loss, its count, sentences and tokens."""

    def add(self, total: float, count: float, norm: float, sentences: int, tokens: int) -> None:
        """Count one step, as `Loop.advance` returns it."""
        self.sums += total, count, sentences, tokens
        self.norm = norm

    def figures(self) -> dict[str, float]:
        """Mean loss, gradient norm, and sentences and tokens a second over all processes."""
        total, count, *done = self.sums.tolist()
        sentences, tokens = (number / max(time.perf_counter() - self.since, 1e-9) for number in done)
        loss = total / max(count, 1e-12)
        return {"loss": loss, "norm": self.norm, "sentences_per_second": sentences, "tokens_per_second": tokens}


def steps_between_probes(steps: int, batch_size: int) -> int:
    """Steps between two probes of the health of the space.

    Args:
        steps: of the run.
        batch_size: of each process. Encoding a sentence takes a third of the time of training on it, or less.
    """
    cheap = math.ceil(10 * SENTENCES / (3 * max(1, batch_size)))
    return max(1, math.ceil(steps / PROBES), min(cheap, math.ceil(steps / 5)))
