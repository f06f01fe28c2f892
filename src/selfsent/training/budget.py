"""Time budgets: the number of steps is estimated by trial steps, and then follows the clock."""

from __future__ import annotations

import math
import statistics
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

from selfsent.distributed import of_first, rank, world_size
from selfsent.models.health import SENTENCES
from selfsent.settings import Settings, format_duration
from selfsent.training.checkpoint import restore, snapshot
from selfsent.training.run_directory import RunDirectory
from selfsent.training.schedule import Schedule, make_optimizer

if TYPE_CHECKING:
    from selfsent.training.loop import Loop

PROBES = 20
"""Health probes in a run; fewer, but at least 5, where they would take a tenth of it."""
TENTHS = 10
"""Checkpoints and scores in a run, where the user does not say how many steps apart."""
FEW = 10
"""Steps below which a budget is too short."""
APART = 30.0
"""Least seconds between two checkpoints, where the user does not say how many steps: less is soon done again."""
MOST_STEPS = 10**9
LOOKS = 20
"""Measurements kept; the time of a step is their median, to ignore outliers."""
KNOWN = 3
"""Measurements that the trial steps count for."""
CHANGE = 1.3
"""Ratio from which two measurements in a row are the new speed."""
BETWEEN_LOOKS = 0.005
"""Least share of the budget between two measurements."""
TOLERANCE = 0.02
"""Share of the budget that a run may end early or late before its end is moved."""
NEARLY = 0.9
"""Share of the schedule after which a run out of time ends at once; before, the learning rate still decays."""
TELLING = 0.1
"""Least relative change of the number of steps that is reported."""


@dataclass(frozen=True)
class Clock:
    """The part of a budget outside training.

    Args:
        started: when the budget began to run, by `time.perf_counter`.
        after: seconds needed after the training, for scores and pages.
    """

    started: float
    after: float = 0.0


@dataclass(frozen=True)
class Split:
    """Parts of a budget, in seconds, and the time of a step as tried out.

    Args:
        budget: all of it.
        start: spent before the first step.
        pauses: for probes, checkpoints and scores along the way.
        after: reserved for saving and scoring after the last step.
        step: of one step.
    """

    budget: float
    start: float
    pauses: float
    after: float
    step: float


class TimeBudget:
    """The schedule of a run, and, with a budget, the clock that may change it.

    Decisions of the clock are written to `run.json` before a step uses them, so a resumed run takes them over.

    Args:
        settings: of the run.
        directory: of the run.
        notice: receives the split of the budget, and changes of speed.
    """

    def __init__(self, settings: Settings, directory: RunDirectory, notice: Callable[[str], None]) -> None:
        self.settings, self.directory, self.notice = settings, directory, notice
        self.schedule = Schedule(settings.steps or 1000)
        """Not yet known with a budget."""
        self.wanted = 0
        """The step after which the clock now wants the run to end; 0 for no change."""
        self.split: Split | None = None
        self._since = self._paused = 0.0
        self._looked: tuple[int, float, float] | None = None
        """Step, seconds spent and seconds paused at the last look."""
        self._step_seconds: deque[float] = deque(maxlen=LOOKS)

    @property
    def spent(self) -> float | None:
        """Seconds of the budget that are over, before interruptions too; None without a budget."""
        return time.perf_counter() - self._since if self.split else None

    def start(self, split: Split, spent: float) -> None:
        """Start the clock, with `spent` seconds of the budget used."""
        self.split, self._since = split, time.perf_counter() - spent
        self._step_seconds.extend([split.step] * KNOWN)

    def lay_out(self, loop: Loop, clock: Clock) -> None:
        """Set the number of steps: as configured, as they fit the budget, or as decided before a resume."""
        if course := self.directory.record.get("course"):
            self.schedule = Schedule(course["laid_out"], tuple((step, steps) for step, steps in course["turns"]))
        elif self.settings.budget is not None:
            split, steps = try_out(loop, clock)
            self.start(split, split.start)
            self.schedule = Schedule(steps)
            s = "s" * (steps > 1)
            over, kept = format_duration(split.start), format_duration(split.after)
            self.notice(
                f"of the {format_duration(split.budget)} {over} are over, and some {kept} are kept for saving and"
                f" scoring at the end: time for about {steps:,} step{s}"
            )
            if steps < FEW:
                enough = split.start + split.after + split.pauses + 10 * FEW * split.step
                self.notice(
                    f"in its budget the run takes no more than {steps} step{s}, which teach next to nothing: give"
                    f" budget={max(1, math.ceil(enough / 60))}m"
                )
            self.directory.update(split={name: round(value, 6) for name, value in asdict(split).items()})
        self._record()

    def resume(self, spent: float | None) -> None:
        """Go on with the time left at a checkpoint; neither the pause nor the new start count.

        Args:
            spent: seconds of the budget at the checkpoint; None without one.
        """
        if self.split is None and (known := self.directory.record.get("split")):
            split = Split(**known)
            self.start(split, split.start if spent is None else spent)

    def leave_out(self, seconds: float) -> None:
        """Exclude time outside steps from the measurements."""
        self._paused += seconds

    def look(self, step: int) -> None:
        """Set `wanted` before a step, by the clock of the first process, which shares it during the step.

        Args:
            step: number of steps taken.
        """
        self.wanted = self._end(self.split, step) if self.split and rank() == 0 else 0

    def _end(self, split: Split, step: int) -> int:
        """The new last step of the run; 0 for no change."""
        schedule, budget, spent = self.schedule, split.budget, cast(float, self.spent)
        before, self._looked = self._looked, self._looked or (step, spent, self._paused)
        if before is None or step == before[0] or spent - before[1] < BETWEEN_LOOKS * budget:
            return 0
        self._looked = step, spent, self._paused
        self._step_seconds.append(max(1e-9, spent - before[1] - self._paused + before[2]) / (step - before[0]))
        if (schedule.turns and step < schedule.turns[-1][0]) or step + 1 >= schedule.steps:
            return 0
        newest, median = [*self._step_seconds][-2:], statistics.median(self._step_seconds)
        if min(newest) > CHANGE * median or max(newest) < median / CHANGE:
            self._step_seconds.clear()
            self._step_seconds.extend(newest)
        each = statistics.median(self._step_seconds)
        slower, done = each / split.step, schedule.position(step) / schedule.laid_out
        left = budget - spent - slower * (split.after + (1 - done) * split.pauses)
        left = max(left, 0.0 if done > NEARLY else TOLERANCE * budget)
        if abs((schedule.steps - step) * each - left) <= TOLERANCE * budget:
            return 0
        # The step about to be taken is the first that can know of it.
        steps = step + max(1, int(left / each))
        return 0 if steps == schedule.steps else steps

    def turn(self, step: int) -> None:
        """After a step, move the end of the run where the clock wants it."""
        if not self.wanted:
            return
        before = self.schedule.steps
        self.schedule = self.schedule.turned(step, max(step, self.wanted))
        self._record()
        steps = self.schedule.steps
        if abs(steps - before) > TELLING * before:
            how = "slower" if steps < before else "faster"
            self.notice(f"steps are {how} than they were: the run ends after {steps:,} and not {before:,} of them")

    def _record(self) -> None:
        course = {"course": asdict(self.schedule)} if self.settings.budget else {}
        self.directory.update(steps=self.schedule.steps, **course)


def steps_between_probes(steps: int, batch_size: int) -> int:
    """Steps between two probes of the health of the space.

    Args:
        steps: of the run.
        batch_size: of each process. Encoding a sentence takes a third of the time of training on it, or less.
    """
    cheap = math.ceil(10 * SENTENCES / (3 * max(1, batch_size)))
    return max(1, math.ceil(steps / PROBES), min(cheap, math.ceil(steps / 5)))


def _seconds(action: Callable[[], object]) -> float:
    since = time.perf_counter()
    action()
    return time.perf_counter() - since


def try_out(loop: Loop, clock: Clock) -> tuple[Split, int]:
    """The split of a budget and the number of steps that fit; learner and optimiser are left as they were.

    Some 3 % of the time left, but at least 6 steps where 15 % allow it, is spent on steps that are undone.
    A checkpoint, a score and a probe are timed once each.

    Args:
        loop: the run, before its first step.
        clock: of its budget.
    """
    budget, size = cast(float, loop.settings.budget), loop.settings.batch_size // world_size()
    room = max(0.0, budget - clock.after - time.perf_counter() + clock.started)
    config = loop.run_config
    state = snapshot(loop.learner)
    steps: list[float] = []
    begin = time.perf_counter()
    while not steps or of_first(time.perf_counter() - begin) < (0.03 if len(steps) >= 6 else 0.15) * room:
        steps.append(_seconds(lambda: loop.advance(len(steps))))
    probe, checkpoint, scorer = _seconds(loop.probe), _seconds(loop.checkpoint), config.scorer
    score = _seconds(lambda: scorer(loop.learner.model)) if scorer else 0.0
    if rank() == 0:
        loop.directory.forget_after(-1)
    restore(loop.learner, state)
    loop.optimizer = make_optimizer(loop.learner, loop.settings)
    warm = steps[2:] or steps
    each = sum(warm) / len(warm)

    def pauses(steps: int) -> float:
        scores = steps // config.dev_every + 1 if config.dev_every else min(steps, TENTHS)
        total = (2 + steps // steps_between_probes(steps, size)) * probe + scores * score
        most = min(steps, TENTHS, int((steps * each + total) / APART))
        return total + (steps // config.checkpoint_every if config.checkpoint_every else most) * checkpoint

    spent, after = time.perf_counter() - clock.started, clock.after + checkpoint
    found = bisect_right(range(MOST_STEPS), budget - spent - after, key=lambda steps: steps * each + pauses(steps)) - 1
    fitting = of_first(max(1, found))
    return Split(budget, spent, pauses(fitting), after, each), fitting
