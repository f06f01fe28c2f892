"""How many steps fit a time budget: try some, on a copy of the state, then go back to the start."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from selfsent.distributed import broadcast, world_size
from selfsent.settings import format_duration
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


@dataclass(frozen=True)
class Clock:
    """What the budget of a run counts beside its training.

    Args:
        started: when the budget began to run, by `time.perf_counter`.
        after: seconds that are needed behind the training, for scores and pages.
    """

    started: float
    after: float = 0.0


@dataclass(frozen=True)
class Split:
    """What a budget is split into, in seconds, and what a step took when that was found out.

    Args:
        budget: all of it.
        start: what was over before the first step.
        pauses: what probes, checkpoints and scores along the way take.
        after: what is kept for what follows the last step.
        step: of one step.
    """

    budget: float
    start: float
    pauses: float
    after: float
    step: float

    def told(self, steps: int) -> Iterator[str]:
        """What the user should know of it before the first step, line by line."""
        yield (
            f"of the {format_duration(self.budget)} {format_duration(self.start)} are over, and some"
            f" {format_duration(self.after)} are kept for saving and scoring at the end: time for about {steps:,}"
            f" step{'s' * (steps > 1)}"
        )
        if steps < FEW:
            enough = self.start + self.after + self.pauses + 10 * FEW * self.step
            yield (
                f"in its budget the run takes no more than {steps} step{'s' * (steps > 1)}, which teach next to"
                f" nothing: give --budget {max(1, math.ceil(enough / 60))}m"
            )


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


def try_out(loop: Timed, clock: Clock) -> tuple[Split, int]:
    """How a budget is split, and the number of steps that fits; learner and optimiser are left as they were found.

    Some 3 % of what is left of it, but at least 6 steps where 15 % allow it, is spent on steps whose outcome is thrown
    away. What checkpoints, scores and probes will cost is timed once each.

    Args:
        loop: the run, before its first step.
        clock: of its budget.
    """
    budget, size = cast(float, loop.settings.budget), loop.settings.batch_size // world_size()
    room = max(0.0, budget - clock.after - time.perf_counter() + clock.started)
    run_config = loop.run_config
    state = snapshot(loop.learner)
    steps: list[float] = []
    begin = time.perf_counter()
    while not steps or broadcast(time.perf_counter() - begin) < (0.03 if len(steps) >= 6 else 0.15) * room:
        steps.append(_seconds(lambda: loop.advance(len(steps))))
    probe, checkpoint, scorer = _seconds(loop.probe), _seconds(loop.checkpoint), run_config.scorer
    score = _seconds(lambda: scorer(loop.learner.model)) if scorer else 0.0
    if loop.leads:
        loop.directory.forget_after(-1)
    restore(loop.learner, state)
    loop.optimizer = make_optimizer(loop.learner, loop.settings)
    warm = steps[2:] or steps
    each = sum(warm) / len(warm)

    def pauses(steps: int) -> float:
        scores = steps // run_config.dev_every + 1 if run_config.dev_every else min(steps, TENTHS)
        total = (2 + steps // steps_between_probes(steps, size)) * probe + scores * score
        most = min(steps, TENTHS, int((steps * each + total) / APART))
        return total + (steps // run_config.checkpoint_every if run_config.checkpoint_every else most) * checkpoint

    spent, after = time.perf_counter() - clock.started, clock.after + checkpoint
    found = bisect_right(range(MOST_STEPS), budget - spent - after, key=lambda steps: steps * each + pauses(steps)) - 1
    fitting = int(broadcast(max(1, found)))
    return Split(budget, spent, pauses(fitting), after, each), fitting
