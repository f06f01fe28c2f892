"""What goes to the terminal: notices, progress bars, tables. Standard output is for results alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from selfsent import progress
from selfsent.display import leads, visible

FLAGS: dict[str, str] = {}
"""The flags of the command that runs, by their names in Python."""
LINE = 500
"""Characters of a sentence that a terminal is shown."""


@cache
def results() -> Any:
    """The rich console on standard output."""
    return progress.console(stderr=False)


_NAME = re.compile(
    r"`(?P<quoted>\w+)`|(?<![\w./\\'\"=-])(?P<set>[a-z]\w*)=(?P<value>\w*(?:[.,:]\w+)*)|^(?P<first>[a-z]\w*)(?= is )"
    r"|(?<![\w./\\'\"-])(?P<bare>[a-z]+_\w+)(?![\w./\\'\"=-])"
)
"""Names of Python's arguments: `seed`, seed=, seed=3, "seed is 3" at the beginning, and those with an underscore."""


def with_flags(line: str) -> str:
    """A line with flags in place of the names of Python's arguments."""

    def flag(found: re.Match[str]) -> str:
        name = found["quoted"] or found["set"] or found["first"] or found["bare"]
        if name not in FLAGS:
            return found[0]
        if found["value"] == "False":
            return FLAGS[name].replace("--", "--no-", 1)
        return FLAGS[name] + (f" {found['value']}" if found["value"] not in (None, "", "True") else "")

    return _NAME.sub(flag, line)


class CommandProgress(progress.Shown):
    """What a run tells, to the user of a command."""

    def notice(self, line: str) -> None:
        """A line on standard error, with flags."""
        super().notice(with_flags(line))


def notice(line: str) -> None:
    """One line the user should see."""
    CommandProgress().notice(line)


def show(renderable: Any) -> None:
    """A result, on standard output."""
    from rich.table import Table

    from selfsent.display import with_wide_title

    if leads():
        shown = with_wide_title(renderable) if isinstance(renderable, Table) else renderable
        results().print(visible(shown) if isinstance(shown, str) else shown, soft_wrap=isinstance(renderable, str))


def shortened(text: str, most: int = LINE) -> str:
    """A text as a line of a terminal shows it: so many characters at most."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


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
