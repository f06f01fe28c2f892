"""The warranty of a run as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from selfsent.display import change, table_of


def warranty_table(found: Mapping[str, Any]) -> Table:
    """The interpolations with their gains on both halves of the exam, and their loss in the regression check."""
    rows = []
    for each in found["candidates"][1:]:
        gains = [change(*(each[half][name] for name in ("gain", "low", "high"))) for half in ("dev", "test")]
        rows.append([f"{each['alpha']:.0%}", *gains, f"{each['loss']:.2f}"])
    return table_of(
        ("share", "gain where chosen", "gain on the other half", "lost"),
        rows,
        title="Warranty: nDCG@10 × 100 over the base, as search ranks, with 95 % intervals; lost on "
        + found["regression_check"],
        caption=f"{found['line']} Asked: {found['exam']}; half of the queries chose.",
        styles={f"{found['alpha']:.0%}": "bold"},
    )
