"""Groups over time: how many texts each has in every day, month or year."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import SettingsError

_UNITS = {"D": 31, "M": 36, "Y": 1000}
"""Units of time, and the most of each that are shown."""
_BARS = "▁▂▃▄▅▆▇█"


def counts_over(
    dates: Sequence[Any], groups: NDArray[np.int64], count: int, column: str
) -> tuple[list[str], NDArray[np.int64]]:
    """Texts of each group in every day, month or year: the finest unit with a few dozen of them.

    Args:
        dates: (n,) that begin as `2026-01-31`, `2026-01` or `2026`; empty ones are left out.
        groups: (n,) from 0; -1 for texts in none, which are left out.
        count: number of groups.
        column: name of the dates, for errors.

    Returns:
        The periods, without gaps, and (count, periods) the texts.

    Raises:
        SettingsError: something that is no such date, or no date at all.

    Example:
        >>> counts_over(["2026-01-30", "2026-02-01", None], np.array([0, 1, 1]), 2, "created")[1].tolist()
        [[1, 0, 0], [0, 0, 1]]
    """
    days, kept = [], []
    for row, value in enumerate(dates):
        if value is None or not str(value).strip():
            continue
        try:
            days.append(np.datetime64(str(value).strip()[:10], "D"))
        except ValueError:
            raise SettingsError(f"over is {column}, where {str(value)[:40]!r} is no date such as 2026-01-31") from None
        kept.append(row)
    if not days:
        raise SettingsError(f"over is {column}, which has no date")
    for unit, most in _UNITS.items():
        when = np.array(days).astype(f"datetime64[{unit}]")
        periods = np.arange(when.min(), when.max() + 1)
        if len(periods) <= most:
            break
    found, own = np.zeros((count, len(periods)), np.int64), groups[kept]
    inside = own >= 0
    np.add.at(found, (own[inside], (when - when.min()).astype(np.int64)[inside]), 1)
    return [str(period) for period in periods], found


def bars(counts: Sequence[int]) -> str:
    """Counts as a line of bars; a dot is none.

    Example:
        >>> bars([0, 1, 4, 8])
        '·▁▄█'
    """
    most = max(*counts, 1)
    return "".join("·" if not value else _BARS[(8 * value - 1) // most] for value in counts)


def span(periods: Sequence[str]) -> str:
    """The first and the last period, as a heading."""
    return periods[0] if len(periods) == 1 else f"{periods[0]} to {periods[-1]}"
