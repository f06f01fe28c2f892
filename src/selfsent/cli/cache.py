"""`selfsent cache`."""

from __future__ import annotations

from dataclasses import dataclass

from selfsent.cli.console import notice, show
from selfsent.cli.options import Command
from selfsent.display import counted, table_of
from selfsent.settings import format_duration, parse_duration, setting


@dataclass(kw_only=True)
class Cache(Command):
    """Show what the cache folder holds of your text, and clear it.

    It keeps the tables of texts that were read, so that they are read once, and vectors of reranked texts. Cleared
    entries are made again when they are needed.
    """

    source: str | None = setting(None, "only the text of this source, such as tickets.csv", flags=("--of",))
    older: float | None = setting(None, "only what is older, such as 30d or 12h", parse=parse_duration, above=0.0)
    clear: bool = setting(False, "remove what is shown")

    def run(self) -> None:
        """List entries, and remove them if asked."""
        from selfsent.cached import clear, entries
        from selfsent.files import cache_folder

        old = (entry for entry in entries() if entry.age >= (self.older or 0.0))
        chosen = [entry for entry in old if self.source is None or entry.is_of(self.source)]
        size = f"{sum(entry.size for entry in chosen) / 1e6:,.1f} MB"
        rows = [[entry.source or entry.kind, f"{entry.size / 1e6:,.1f} MB", _age(entry.age)] for entry in chosen]
        if rows:
            show(table_of(["what", "size", "age"], rows))
        if self.clear:
            clear(chosen)
        done = "removed from" if self.clear else "in"
        notice(f"{counted(len(chosen), 'entry', 'entries')}, {size}, {done} {cache_folder()}")


def _age(seconds: float) -> str:
    return f"{seconds / 86_400:.0f} d" if seconds >= 2 * 86_400 else format_duration(seconds)
