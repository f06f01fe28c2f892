"""What goes to the terminal: notices, progress bars, tables. Standard output is for results alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from selfsent.display import leads

_LITERAL: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
"""Text from a corpus, a model's name or an error is shown as it is, whatever it means to rich."""
LINE = 500
"""Characters of a sentence that a terminal is shown."""
_WIDE = 120
"""Columns of a terminal on which all figures of a run stand beside its bar."""


@cache
def errors() -> Any:
    """The rich console on standard error."""
    return _console(stderr=True)


@cache
def results() -> Any:
    """The rich console on standard output."""
    return _console(stderr=False)


def _console(stderr: bool) -> Any:
    """A rich console that falls silent when no one reads it any more, as in `selfsent train ... | head`."""
    from rich.console import Console

    class Patient(Console):
        def on_broken_pipe(self) -> None:
            """Not the end of the process, as it would be for rich: what runs goes on."""
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())

    return Patient(stderr=stderr, **_LITERAL)


def notice(line: str) -> None:
    """One line the user should see."""
    if leads():
        errors().print(line, soft_wrap=True)


def show(renderable: Any) -> None:
    """A result, on standard output."""
    from rich.table import Table

    from selfsent.display import with_wide_title

    if leads():
        shown = with_wide_title(renderable) if isinstance(renderable, Table) else renderable
        results().print(shown, soft_wrap=isinstance(renderable, str))


class _Bar:
    """A progress bar that shows itself when it is first told something and ends when all is done: two never overlap."""

    def __init__(self, *columns: Any, transient: bool = False) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
        from rich.table import Column

        whole = Column(no_wrap=True)
        counts, left = MofNCompleteColumn(table_column=whole), TimeRemainingColumn(table_column=whole)
        shown = (columns[0], BarColumn(bar_width=12, table_column=whole), counts, *columns[1:], left)
        self.progress = Progress(*shown, console=errors(), transient=transient)
        self.task = self.progress.add_task("", start=False, total=None)

    def tell(self, total: int, **changes: Any) -> None:
        """Show that more is done."""
        if not self.progress.live.is_started:
            self.progress.start()
            self.progress.start_task(self.task)
        self.progress.update(self.task, total=total, **changes)
        if self.progress.finished:
            self.progress.stop()


def shortened(text: str) -> str:
    """A text as a line of a terminal shows it: at most LINE characters."""
    return text if len(text) <= LINE else f"{text[: LINE - 1]}…"


@contextmanager
def counting(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar that is told how many more are done, of how many; silent where standard error is no terminal."""
    if not errors().is_terminal or not leads():
        yield lambda count, total: None
        return
    from rich.progress import TextColumn

    bar = _Bar(TextColumn(title), transient=True)
    try:
        yield lambda count, total: bar.tell(total, advance=count)
    finally:
        bar.progress.stop()


@contextmanager
def doing() -> Iterator[Callable[[str], None]]:
    """A line that says what is being done; silent where standard error is no terminal."""
    if not errors().is_terminal or not leads():
        yield lambda text: None
        return
    from rich.text import Text

    with errors().status("") as line:
        yield lambda text: line.update(Text(text))


@contextmanager
def training_bar(lines: bool = True) -> Iterator[Callable[[int, int, dict[str, float]], None]]:
    """A progress bar with loss, speed and time left; without a terminal, lines at every tenth of the run, if wanted."""
    if not errors().is_terminal or not leads():
        yield _lines if lines else lambda step, steps, figures: None
        return
    from rich.progress import TextColumn
    from rich.table import Column

    # Where they still do not fit, the figures take a second line, and nothing is cut off.
    narrow = errors().width < _WIDE
    bar = _Bar(TextColumn("training"), TextColumn("{task.description}", table_column=Column()))
    try:
        yield lambda step, steps, figures: bar.tell(steps, completed=step, description=_figures(figures, narrow))
    finally:
        bar.progress.stop()


def _lines(step: int, steps: int, figures: dict[str, float]) -> None:
    if step == steps or step % max(1, steps // 10) == 0:
        notice(f"step {step} of {steps}  {_figures(figures)}")


def _figures(figures: dict[str, float], narrow: bool = False) -> str:
    if "loss" not in figures:  # before the first line of the log, when there may be a score already
        return ""
    parts = [f"loss {figures['loss']:.3f}", f"{figures['sentences_per_second']:,.0f} sentences/s"]
    if not narrow:
        parts += [f"{figures['tokens_per_second']:,.0f} tokens/s", f"{figures['share_of_peak']:.0%} of peak"]
        parts += [f"mean cosine {figures['mean_cosine']:.2f}"] if "mean_cosine" in figures else []
    parts += [f"dev {figures['score']:.2f}"] if "score" in figures else []
    return "  ".join(parts)
