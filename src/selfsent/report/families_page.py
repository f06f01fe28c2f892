"""The page of the families of near-copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from selfsent.display import counted, shortened
from selfsent.report.pages import render
from selfsent.search.dedup import Deduplicated

_FAMILIES, _DIFFERENCES, _LONGEST = 1000, 20, 1000
"""Families on the page, differences of each, and characters of a text."""


def families_page(rows: Iterable[Mapping[str, Any]], read: int, found: Deduplicated, about: Mapping[str, Any]) -> str:
    """The page: a line for each family, with the text that is kept and the differences of the others.

    Args:
        rows: the families, from `table_rows`.
        read: number of rows of the input.
        found: the families.
        about: details by name, shown below.
    """
    families = []
    for row in islice(rows, _FAMILIES):
        told = str(row["differs"]).splitlines()
        more = row["rows"] - 1 - min(len(told), _DIFFERENCES)
        families.append(
            {
                **{"kept": row["kept"], "rows": f"{row['rows']:,}", "text": shortened(str(row["text"]), _LONGEST)},
                "differs": told[:_DIFFERENCES] + ([f"and {more:,} more"] if more > 0 else []),
            }
        )
    left = len(found.families) - len(families)
    return render(
        "families.html",
        headline=f"{counted(len(found.kept), 'row')} stay of {read:,}",
        families=families,
        more=f"{left:,} more families are in the table beside this page." if left else "",
        about=about.items(),
    )
