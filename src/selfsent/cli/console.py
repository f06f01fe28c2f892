"""Terminal output: notices, progress bars, tables. Standard output is for results alone."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from selfsent import progress
from selfsent.display import leads, visible

FLAGS: dict[str, str] = {}
"""The flags of the running command, by Python name."""


@cache
def results() -> Any:
    """The rich console on standard output."""
    return progress.console(stderr=False)


_NAME = re.compile(
    r"`(?P<quoted>\w+)`|(?<![\w./\\'\"=-])(?P<set>[a-z]\w*)=(?P<value>\w*(?:[.,:]\w+)*)"
    r"|^(?P<first>(?!there\b)[a-z]\w*)(?= is )"  # "there is no ..." is no option, although `augment` has one
    r"|(?<![\w./\\'\"-])(?P<bare>[a-z]+_\w+)(?![\w./\\'\"=-])"
)
"""Names of Python arguments: `seed`, seed=, seed=3, "seed is 3" at the beginning, and names with an underscore."""


def with_flags(line: str, flags: Mapping[str, str] = FLAGS) -> str:
    """A line with flags in place of Python's argument names, by default those of the command that runs."""

    def flag(found: re.Match[str]) -> str:
        name = found["quoted"] or found["set"] or found["first"] or found["bare"]
        if name not in flags:
            return found[0]
        if found["value"] == "False":
            return flags[name].replace("--", "--no-", 1)
        return flags[name] + (f" {found['value']}" if found["value"] not in (None, "", "True") else "")

    return _NAME.sub(flag, line)


doing = progress.doing
"""A status line; silent if standard error is no terminal."""


class CommandProgress(progress.Shown):
    """Progress of a run, with flags in its notices."""

    def notice(self, line: str) -> None:
        """Print a line on standard error."""
        super().notice(with_flags(line))


def notice(line: str) -> None:
    """Print one line for the user."""
    CommandProgress().notice(line)


def show(renderable: Any) -> None:
    """Print a result on standard output."""
    if not leads():
        return
    if isinstance(renderable, str):
        progress.write_line(sys.stdout, visible(renderable), results)
        return
    from rich.table import Table

    from selfsent.display import with_wide_title

    results().print(with_wide_title(renderable) if isinstance(renderable, Table) else renderable, soft_wrap=False)


class StatusLine(CommandProgress):
    """Notices on a status line, with the name of a model before them; bars of long work.

    Args:
        now: shows a text, see `doing`.
    """

    def __init__(self, now: Callable[[str], None]) -> None:
        super().__init__()
        self.now, self.model = now, ""

    def notice(self, line: str) -> None:
        """Show a line until the next."""
        self.now(f"{self.model}: {line}" if self.model else line)


@contextmanager
def shown(what: str) -> Iterator[progress.Progress]:
    """Notices and bars of a command, with its work in words before and after a bar; none without a terminal."""
    with doing() as now, progress.shown(CommandProgress(), quiet=False) as receiver:
        now(what)
        yield receiver
