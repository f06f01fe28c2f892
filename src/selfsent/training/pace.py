"""How far a run goes: a number of steps, or as many as its budget allows, however the machine's speed changes."""

from __future__ import annotations

import statistics
import time
from collections import deque
from dataclasses import asdict
from typing import Any

from selfsent.distributed import rank
from selfsent.settings import Settings
from selfsent.training.budget import Clock, Split, Timed, try_out
from selfsent.training.run_config import Notice
from selfsent.training.run_directory import RunDirectory
from selfsent.training.schedule import Course

LOOKS = 20
"""Looks at the clock whose median says how long a step takes: one that was held up does not count."""
KNOWN = 3
"""Looks that the steps which were tried out count for."""
CHANGE = 1.3
"""Times as slow, or as fast, from which two looks in a row are the machine's new speed."""
BETWEEN_LOOKS = 0.005
"""Share of the budget between two looks, at least."""
TOLERANCE = 0.02
"""Share of the budget that a run may end early or late before it is laid out anew."""
NEARLY = 0.9
"""Share of the schedule that must lie behind a run that is out of time; below it, it may still walk down to the end."""
TELLING = 0.1
"""Share by which the number of steps must change for the user to be told."""


class Pace:
    """The course of a run, and, where it has a budget, the clock that may change it.

    What is decided by the clock stands in `run.json` before a step knows of it. A run that is resumed finds it there,
    and takes it over.

    Args:
        settings: of the run.
        directory: of the run.
        notice: is told what the budget is split into, and when the machine gets slower or faster.
    """

    def __init__(self, settings: Settings, directory: RunDirectory, notice: Notice) -> None:
        self.settings, self.directory, self.notice = settings, directory, notice
        self.course = Course(settings.steps or 1000)
        """Of a run with a budget, not yet known."""
        self.wanted = 0
        """The step after which the clock now wants the run to end; 0 for no change."""
        self._timetable: Timetable | None = None

    @property
    def known(self) -> bool:
        """Whether it is known how many steps there are."""
        return bool(self.settings.steps or self._timetable)

    @property
    def spent(self) -> float | None:
        """Seconds of the budget that are over; None without one."""
        return self._timetable.spent if self._timetable else None

    def lay_out(self, loop: Timed, clock: Clock) -> None:
        """Find out how many steps there are: as asked for, as they fit the budget, or as was decided before."""
        record = self.directory.record
        if self.settings.budget is None or record.get("steps"):
            # Runs of older versions with a budget had one number of steps from beginning to end.
            laid_out = int(record.get("steps") or self.course.laid_out)
            old: dict[str, Any] = record.get("course") or {"laid_out": laid_out, "turns": []}
            self.course = Course(old["laid_out"], tuple((step, steps) for step, steps in old["turns"]))
        else:
            split, steps = try_out(loop, clock)
            self._timetable, self.course = Timetable(split, split.start), Course(steps)
            for line in split.told(steps):
                self.notice(line)
            self.directory.update(split={name: round(value, 6) for name, value in asdict(split).items()})
        self._record()

    def resume(self, spent: float | None) -> None:
        """Go on with the time that was left at a checkpoint; neither the pause nor the new start count.

        Args:
            spent: seconds of the budget at the checkpoint; None where there is no checkpoint.
        """
        known = self.directory.record.get("split")
        if self._timetable is None and known:
            split = Split(**known)
            self._timetable = Timetable(split, split.start if spent is None else spent)

    def look(self, step: int) -> None:
        """Ask the clock, before a step: that of the first process, which tells the others while they take the step."""
        self.wanted = self._timetable.look(step, self.course) if self._timetable and rank() == 0 else 0

    def leave_out(self, seconds: float) -> None:
        """Time that no step took."""
        if self._timetable:
            self._timetable.leave_out(seconds)

    def turn(self, step: int) -> None:
        """Behind a step, do what the clock wants."""
        if not self.wanted:
            return
        before = self.course.steps
        self.course = self.course.turned(step, max(step, self.wanted))
        self._record()
        steps = self.course.steps
        if abs(steps - before) > TELLING * before:
            how = "slower" if steps < before else "faster"
            self.notice(f"steps are {how} than they were: the run ends after {steps:,} and not {before:,} of them")

    def _record(self) -> None:
        course = {"course": asdict(self.course)} if self.settings.budget else {}
        self.directory.update(steps=self.course.steps, **course)


class Timetable:
    """Watches the clock of a run, in the first process alone, and says when it must end after more or fewer steps.

    Args:
        split: of its budget.
        spent: seconds of it that are over.
    """

    def __init__(self, split: Split, spent: float) -> None:
        self.split = split
        self._since = time.perf_counter() - spent
        self._paused = 0.0
        self._looked: tuple[int, float, float] | None = None
        """Step, seconds spent and seconds paused at the last look."""
        self._seconds_each = deque([split.step] * KNOWN, maxlen=LOOKS)

    @property
    def spent(self) -> float:
        """Seconds of the budget that are over, those of a run that was interrupted included."""
        return time.perf_counter() - self._since

    def leave_out(self, seconds: float) -> None:
        """Time that no step took."""
        self._paused += seconds

    def look(self, step: int, course: Course) -> int:
        """The step after which the run must end now; 0 where it is to go on as it is laid out.

        Args:
            step: those taken.
            course: the way of the run. What was decided in it is not decided again.
        """
        budget, spent = self.split.budget, self.spent
        before, self._looked = self._looked, self._looked or (step, spent, self._paused)
        if before is None or step == before[0] or spent - before[1] < BETWEEN_LOOKS * budget:
            return 0
        self._looked = step, spent, self._paused
        self._seconds_each.append(max(1e-9, spent - before[1] - self._paused + before[2]) / (step - before[0]))
        if (course.turns and step < course.turns[-1][0]) or step + 1 >= course.steps:
            return 0
        each = self._each()
        slower, done = each / self.split.step, course.share(step)
        left = budget - spent - slower * (self.split.after + (1 - done) * self.split.pauses)
        left = max(left, 0.0 if done > NEARLY else TOLERANCE * budget)
        if abs((course.steps - step) * each - left) <= TOLERANCE * budget:
            return 0
        # The step that is about to be taken is the first that can know of it.
        steps = step + max(1, int(left / each))
        return 0 if steps == course.steps else steps

    def _each(self) -> float:
        """Seconds that a step takes now."""
        looks, usual = self._seconds_each, statistics.median(self._seconds_each)
        newest = [*looks][-2:]
        if min(newest) > CHANGE * usual or max(newest) < usual / CHANGE:
            looks.clear()
            looks.extend(newest)
        return statistics.median(looks)
