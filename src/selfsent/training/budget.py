"""How many steps fit a time budget: time some, on a copy of the state, then go back to the start."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from selfsent.distributed import broadcast, world_size
from selfsent.training.checkpoint import restore, snapshot
from selfsent.training.health import SENTENCES
from selfsent.training.schedule import make_optimizer

if TYPE_CHECKING:
    import torch

    from selfsent.methods import Learner
    from selfsent.settings import Settings
    from selfsent.training.run_config import RunConfig
    from selfsent.training.run_directory import RunDirectory


class Timed(Protocol):
    """What is timed: a training loop before its first step."""

    learner: Learner
    optimizer: torch.optim.Optimizer
    settings: Settings
    run_config: RunConfig
    directory: RunDirectory

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes."""

    def advance(self, step: int) -> object:
        """Take a step."""

    def probe(self) -> object:
        """Look at the space."""

    def checkpoint(self) -> object:
        """Write a checkpoint."""


PROBES = 20
"""How often in a run the health of the space is looked at; less often, but 5 times, where that takes a tenth of it."""
TENTHS = 10
"""Checkpoints and scores in a run, where the user does not say how many steps apart."""
FEW = 10
"""Steps below which a budget taught next to nothing."""
APART = 30.0
"""Seconds between two checkpoints, at least, where the user does not say how many steps: less is soon done again."""


MOST_STEPS = 10**9


def steps_between_probes(steps: int, batch_size: int) -> int:
    """How many steps apart the health of the space is looked at.

    Args:
        steps: of the run.
        batch_size: of each process. To encode a sentence takes a third of the time of training on it, or less.
    """
    cheap = math.ceil(10 * SENTENCES / (3 * max(1, batch_size)))
    return max(1, math.ceil(steps / PROBES), min(cheap, math.ceil(steps / 5)))


def _seconds(action: Callable[[], object]) -> float:
    since = time.perf_counter()
    action()
    return time.perf_counter() - since


def steps_for_budget(loop: Timed, started: float) -> int:
    """The number of steps that ends a run on time; the learner and its optimiser are left as they were found.

    Some 6 % of the budget, but at least 8 steps where 30 % allow it, is spent on steps whose outcome is thrown away.
    What checkpoints, scores and probes will cost is timed once each.

    Args:
        loop: the run, before its first step.
        started: when the budget began to run, by `time.perf_counter`.
    """
    budget, size = cast(float, loop.settings.budget), loop.settings.batch_size // world_size()
    run_config = loop.run_config
    state = snapshot(loop.learner)
    steps: list[float] = []
    begin = time.perf_counter()
    while broadcast(time.perf_counter() - begin) < (0.06 if len(steps) >= 8 else 0.3) * budget:
        steps.append(_seconds(lambda: loop.advance(len(steps))))
    probe, checkpoint, scorer = _seconds(loop.probe), _seconds(loop.checkpoint), run_config.scorer
    score = _seconds(lambda: scorer(loop.learner.model)) if scorer else 0.0
    if loop.leads:
        loop.directory.forget_after(-1)
    restore(loop.learner, state)
    loop.optimizer = make_optimizer(loop.learner, loop.settings)
    warm = steps[2:] or steps
    each = sum(warm) / len(warm)

    def cost(steps: int) -> float:
        scores = steps // run_config.dev_every + 1 if run_config.dev_every else min(steps, TENTHS)
        total = steps * each + (2 + steps // steps_between_probes(steps, size)) * probe + scores * score
        most = min(steps, TENTHS, int(total / APART))
        return total + (steps // run_config.checkpoint_every if run_config.checkpoint_every else most) * checkpoint

    left = budget - (time.perf_counter() - started)
    return int(broadcast(max(1, bisect_right(range(MOST_STEPS), left, key=cost) - 1)))
