"""Time budgets: a run whose schedule follows the clock instead of the number of its steps."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from selfsent.display import counted
from selfsent.progress import Progress
from selfsent.settings import format_duration
from selfsent.training.run_directory import RunDirectory

FEW = 10
"""Steps below which a budget is too short."""


@dataclass(frozen=True)
class Clock:
    """The part of a budget outside training.

    Args:
        started: when the budget began to run, by `time.perf_counter`.
        after: seconds needed after the training, for scores and pages.
    """

    started: float
    after: float = 0.0


class TimeBudget:
    """The share of a budget that a run has used, which is its position in the schedule.

    The learning rate so ends where the time does, however fast the steps are. `run.json` keeps the times under `split`.

    Args:
        budget: seconds of the whole run.
        clock: start of the budget, and the time kept for afterwards; a resumed run keeps its own.
        directory: of the run.
        progress: receives the split of the budget.
    """

    def __init__(self, budget: float, clock: Clock, directory: RunDirectory, progress: Progress) -> None:
        self.budget, self.progress = budget, progress
        fresh = {"start": time.perf_counter() - clock.started, "after": clock.after}
        split = directory.record.get("split") or fresh
        self.start, self.after = split["start"], split["after"]
        self.last_score = 0.0
        """Seconds of the newest score along the way: there is another one after the last step."""
        self.resume(self.start)
        if split is fresh:
            over, kept = format_duration(self.start), format_duration(self.after)
            progress.notice(
                f"of the {format_duration(budget)} {over} are over, and {kept} are kept for scoring at the end"
            )
            directory.update(split=split)

    @property
    def spent(self) -> float:
        """Seconds of the budget that are over, before interruptions too."""
        return time.perf_counter() - self._since

    def resume(self, spent: float) -> None:
        """Go on with `spent` seconds used; neither the pause nor the new start count."""
        self._since = time.perf_counter() - spent

    @property
    def share(self) -> float:
        """Share of the time for training that is over, from 0 on."""
        whole = self.budget - self.start - self.after - self.last_score
        return max(self.spent - self.start, 1e-9) / max(whole, 1e-9)

    def end(self, steps: int) -> None:
        """Notice where there was time for few steps alone."""
        if steps < FEW:
            each = (self.spent - self.start) / max(1, steps)
            enough = self.start + self.after + self.last_score + 10 * FEW * each
            taught = f"no more than {counted(steps, 'step')}, which teach next to nothing"
            self.progress.notice(f"in its budget the run took {taught}: give budget={max(1, math.ceil(enough / 60))}m")
