"""Scores and neighbours, as tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from selfsent.display import counted
from selfsent.report.differences import WITH_WORDS, differences

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


def scores_table(scores: dict[str, Any]) -> Table:
    """The label-free score of base and trained model, with paired differences to base, TF-IDF and BM25."""
    from rich.table import Table

    base = scores["base"]
    table = Table(
        title="Label-free score: find the next sentence of the document (MRR@10 x 100)",
        caption=f"{counted(base['n'], 'query', 'queries')} from held-out documents; 95 % intervals over documents",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("")
    table.add_column("score", justify="right")
    table.add_column("95 % interval", justify="right")
    names = {
        "base": "base, untrained",
        "trained": "trained",
        "with_words": WITH_WORDS,
        "tfidf": "TF-IDF",
        "bm25": "BM25",
    }
    known = {key: name for key, name in names.items() if key in scores}  # a run of an earlier version lacks some
    for key, name in sorted(known.items(), key=lambda each: -scores[each[0]]["score"]):
        entry = scores[key]
        table.add_row(
            name,
            f"{entry['score']:.2f}",
            f"{entry['low']:.2f} to {entry['high']:.2f}",
            style="bold" if key == "trained" else "",
        )
    table.add_section()
    for other, found in differences(scores).items():
        verdict = "better" if found["low"] > 0 else "worse" if found["high"] < 0 else "no clear difference"
        table.add_row(
            f"trained - {other}: {verdict}",
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
