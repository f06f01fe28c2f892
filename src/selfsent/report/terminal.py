"""Scores and neighbours, as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from selfsent.report.differences import NAMES, Scores, differences, is_search, ranked, standing, title, told

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

_VERDICTS = {"ahead of": "better", "behind": "worse", "level with": "no clear difference"}


def scores_table(scores: Scores) -> Table:
    """The scores of base and trained model, by search or by the next sentence, with paired differences."""
    from rich.table import Table

    best = "with_words" if is_search(scores) else "trained"
    table = Table(
        title=title(scores),
        caption=told(scores),
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("")
    table.add_column("score", justify="right")
    table.add_column("95 % interval", justify="right")
    for key, entry in ranked(scores).items():
        interval = f"{entry['low']:.2f} to {entry['high']:.2f}"
        table.add_row(NAMES[key], f"{entry['score']:.2f}", interval, style="bold" if key == best else "")
    table.add_section()
    for (one, other), found in differences(scores).items():
        table.add_row(
            f"{one} - {other}: {_VERDICTS[standing(found)]}",
            f"{found['score']:+z.2f}",
            f"{found['low']:+z.2f} to {found['high']:+z.2f}",
        )
    return table


def neighbours_text(neighbours: list[dict[str, Any]]) -> Group:
    """The nearest sentences of a few sentences, before and after training."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = []
    for entry in neighbours:
        table = Table(
            title=Text(f"Nearest to: {entry['sentence']}"), title_justify="left", show_lines=False, expand=True
        )
        table.add_column("before", ratio=1)
        table.add_column("after", ratio=1)
        for before, after in zip(entry["before"], entry["after"], strict=True):
            table.add_row(*(Text(f"{found['cosine']:.2f}  {found['sentence']}") for found in (before, after)))
        parts.append(table)
    return Group(*parts)
