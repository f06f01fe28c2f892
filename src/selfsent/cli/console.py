"""What goes to the terminal: notices, progress bars, tables. Standard output is for results alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from selfsent import progress
from selfsent.display import leads, visible

LINE = 500
"""Characters of a sentence that a terminal is shown."""


@cache
def results() -> Any:
    """The rich console on standard output."""
    return progress.console(stderr=False)


def notice(line: str) -> None:
    """One line the user should see."""
    progress.Shown().notice(line)


def show(renderable: Any) -> None:
    """A result, on standard output."""
    from rich.table import Table

    from selfsent.display import with_wide_title

    if leads():
        shown = with_wide_title(renderable) if isinstance(renderable, Table) else renderable
        results().print(visible(shown) if isinstance(shown, str) else shown, soft_wrap=isinstance(renderable, str))


def shortened(text: str) -> str:
    """A text as a line of a terminal shows it: at most LINE characters."""
    return text if len(text) <= LINE else f"{text[: LINE - 1]}…"


@contextmanager
def counting(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar that is told how many more are done, of how many; silent where standard error is no terminal."""
    with progress.shown(None, quiet=False) as told:
        yield lambda count, total: told.count(title, count, total)


@contextmanager
def doing() -> Iterator[Callable[[str], None]]:
    """A line that says what is being done; silent where standard error is no terminal."""
    if not progress.errors().is_terminal or not leads():
        yield lambda text: None
        return
    from rich.text import Text

    with progress.errors().status("") as line:
        yield lambda text: line.update(Text(text))
