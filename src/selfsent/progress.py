"""Progress of a run: notices, steps taken, sentences done."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

from selfsent.display import leads, visible

QUIET = 30.0
"""Seconds of counting after which a line is printed where there are no bars."""
_LITERAL: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
"""Texts of a corpus, names and errors are shown literally, without rich's markup."""


_VARIABLES = frozenset(("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"))
"""Variables by which rich takes for a terminal what is none."""


Counter = Callable[[int], None]
"""Receives the number of items done since the last call."""


class Progress:
    """Receives the progress of runs, one after the other, and ignores it. Override the methods of interest.

    Examples:
        >>> class Losses(Progress):
        ...     def step(self, step, steps, figures):
        ...         print(step, figures.get("loss"))
        >>> selfsent.train("tickets.txt", output="runs/tickets", progress=Losses())  # doctest: +SKIP
    """

    def notice(self, line: str) -> None:
        """One line that the user should see."""

    def step(self, step: int, steps: int, figures: Mapping[str, float]) -> None:
        """A step was taken: its number from 1, how many there are, and the latest figures of the log."""

    def count(self, what: str, done: int, total: int) -> None:
        """More sentences were processed outside the steps.

        Args:
            what: name of the work: `encoding`, `tokenising`, `searching`, `mining`, `making views` or the like.
            done: number since the last call.
            total: number of all.
        """

    def counting(self, what: str, total: int) -> Counter:
        """`count` of one piece of work, for functions that do not know what their work is part of."""
        return lambda done: self.count(what, done, total)

    def end(self) -> None:
        """The run has ended or failed."""


class Shown(Progress):
    """Notices on standard error, and bars with loss, speed and time left, in a terminal or a notebook.

    Elsewhere there are no bars, a line at every tenth of the run, and one every half minute of other work; in a
    notebook without ipywidgets likewise.
    """

    def __init__(self) -> None:
        self._bars = dict[str, _Bar]()
        self._told = dict[str, tuple[float, float, int]]()

    def notice(self, line: str) -> None:
        """A line on standard error, of the first process alone."""
        if leads():
            write_line(sys.stderr, visible(line), errors)

    def step(self, step: int, steps: int, figures: Mapping[str, float]) -> None:
        """The bar of the steps; or a line."""
        if _shows_bars():
            self._bar("training").update(steps, completed=step, description=_figures(figures))
        elif step == steps or step % max(1, steps // 10) == 0:
            self.notice(f"step {step} of {steps}  {_figures(figures)}")

    def count(self, what: str, done: int, total: int) -> None:
        """The bar of a count, which goes when all is done."""
        if not _shows_bars():
            self._tell(what, done, total)
            return
        self._bar(what).update(total, advance=done)
        if self._bars[what].progress.finished:  # so that another run may count the same
            del self._bars[what]

    def _tell(self, what: str, done: int, total: int) -> None:
        """A line on long work, with the time that is left."""
        now = time.monotonic()
        begun, told, before = self._told.pop(what, (now, now, 0))
        done += before
        if 0 < done < total and now - told >= QUIET:
            from selfsent.settings import format_duration

            left = format_duration((now - begun) * (total - done) / done)
            self.notice(f"{what}: {done / total:.0%} done, about {left} left")
            told = now
        if done < total:
            self._told[what] = begun, told, done

    def _bar(self, what: str) -> _Bar:
        if what not in self._bars:
            self._bars[what] = _Bar(what)
        return self._bars[what]

    def end(self) -> None:
        """Release the terminal."""
        for bar in self._bars.values():
            bar.progress.stop()
        self._bars.clear()


SILENT = Progress()
"""Ignores all progress: the default of functions that report it."""


@contextmanager
def shown(progress: Progress | None, quiet: bool) -> Iterator[Progress]:
    """The receiver of a run's progress: `progress`, else one that shows it unless `quiet`; ended with the block."""
    receiver = progress or (Progress() if quiet else Shown())
    try:
        yield receiver
    finally:
        receiver.end()


class _Bar:
    """A progress bar, from the first update until all is done: two never overlap."""

    def __init__(self, what: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.table import Column

        whole = Column(no_wrap=True)
        counts, left = MofNCompleteColumn(table_column=whole), TimeRemainingColumn(table_column=whole)
        # Figures that do not fit take a second line, and nothing is cut off.
        figures = TextColumn("{task.description}", table_column=Column())
        columns = TextColumn(what), BarColumn(bar_width=12, table_column=whole), counts, figures, left
        self.progress = Progress(*columns, console=errors(), transient=what != "training")
        self.task = self.progress.add_task("", start=False, total=None)

    def update(self, total: int, **changes: Any) -> None:
        """Show progress."""
        if not self.progress.live.is_started:
            self.progress.start()
            self.progress.start_task(self.task)
        self.progress.update(self.task, total=total, **changes)
        if self.progress.finished:
            self.progress.stop()


@contextmanager
def doing() -> Iterator[Callable[[str], None]]:
    """A status line on standard error; silent if that is no terminal."""
    if not sys.stderr.isatty() or not leads():
        yield lambda text: None
        return
    from rich.text import Text

    with errors().status("") as line:
        yield lambda text: line.update(Text(text))


@cache
def errors() -> Any:
    """The rich console on standard error."""
    return console(stderr=True)


def console(stderr: bool) -> Any:
    """A rich console that goes quiet when its pipe closes, as in `selfsent train ... | head`."""
    from rich.console import Console

    class Patient(Console):
        def on_broken_pipe(self) -> None:
            """Go on, where rich would end the process."""
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())

    return Patient(stderr=stderr, **_LITERAL)


def is_plain(stream: Any) -> bool:
    """Whether lines go to a stream as they are: neither a terminal nor a notebook, and no variable asks for rich."""
    asked = _VARIABLES & os.environ.keys()
    return not asked and "IPython" not in sys.modules and not stream.isatty()


def write_line(stream: Any, line: str, console: Callable[[], Any]) -> None:
    """Write a line to standard output or standard error, through a rich console where that changes anything.

    Args:
        stream: one of the two.
        line: without control characters.
        console: makes the console of that stream; rich takes a tenth of a second to import.
    """
    if not is_plain(stream):
        console().print(line, soft_wrap=True)
        return
    try:
        stream.write(line + "\n")
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _shows_bars() -> bool:
    return (
        leads()
        and not is_plain(sys.stderr)
        and (errors().is_terminal or (errors().is_jupyter and find_spec("ipywidgets") is not None))
    )


def _figures(figures: Mapping[str, float]) -> str:
    if "loss" not in figures:  # before the first line of the log, when there may be a score already
        return ""
    parts = [f"loss {figures['loss']:.3f}", f"{figures['sentences_per_second']:,.0f} sentences/s"]
    parts += [f"{figures['tokens_per_second']:,.0f} tokens/s"]
    parts += [f"mean cosine {figures['mean_cosine']:.2f}"] if "mean_cosine" in figures else []
    parts += [f"dev {figures['score']:.2f}"] if "score" in figures else []
    return "  ".join(parts)
