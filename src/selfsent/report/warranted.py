"""The warranty of a run as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from selfsent.display import change, table_of


def warranty_table(found: Mapping[str, Any]) -> Table:
    """Every share of the training with its gains on both halves of the exam, and its loss on the guard."""
    rows = []
    for each in found["tried"][1:]:
        gains = [change(*(each[half][name] for name in ("gain", "low", "high"))) for half in ("dev", "test")]
        rows.append([f"{each['share']:.0%}", *gains, f"{each['loss']:.2f}"])
    return table_of(
        ("share", "gain where chosen", "gain on the other half", "lost"),
        rows,
        title="Warranty: nDCG@10 × 100 over the base, as search ranks, with 95 % intervals; lost on " + found["guard"],
        caption=f"{found['line']} Asked: {found['exam']}; half of the queries chose.",
        styles={f"{found['share']:.0%}": "bold"},
    )
