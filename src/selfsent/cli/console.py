"""What goes to the terminal: notices, progress bars, tables. Standard output is for results, standard error for all else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from selfsent.distributed_env import leads


@cache
def errors() -> Any:
    """The rich console on standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


@cache
def results() -> Any:
    """The rich console on standard output."""
    from rich.console import Console

    return Console(highlight=False)


def notice(line: str) -> None:
    """One line the user should see."""
    if leads():
        errors().print(line, markup=False, soft_wrap=True)


def show(renderable: Any) -> None:
    """A result, on standard output."""
    if leads():
        results().print(renderable, markup=False) if isinstance(renderable, str) else results().print(renderable)


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar that is told how many more are done; silent where standard error is not a terminal."""
    if not errors().is_terminal or not leads():
        yield lambda count: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors(), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda count: progress.advance(task, count)


@contextmanager
def training_bar() -> Iterator[Callable[[int, int, dict[str, float]], None]]:
    """A progress bar with loss, speed and time left; without a terminal, a line at every tenth of the run."""
    if not leads():
        yield lambda step, steps, figures: None
        return
    if not errors().is_terminal:
        yield _lines
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=errors()) as progress:
        task = progress.add_task("")

        def watch(step: int, steps: int, figures: dict[str, float]) -> None:
            progress.update(task, completed=step, total=steps, description=_figures(figures))

        yield watch


def _lines(step: int, steps: int, figures: dict[str, float]) -> None:
    if step == steps or step % max(1, steps // 10) == 0:
        notice(f"step {step} of {steps}  {_figures(figures)}")


def _figures(figures: dict[str, float]) -> str:
    if not figures:
        return ""
    parts = [
        f"loss {figures['loss']:.3f}",
        f"{figures['sentences_per_second']:,.0f} sentences/s",
        f"{figures['tokens_per_second']:,.0f} tokens/s",
    ]
    parts += [f"mean cosine {figures['mean_cosine']:.2f}"] if "mean_cosine" in figures else []
    parts += [f"dev {figures['score']:.2f}"] if "score" in figures else []
    return "  ".join(parts)
