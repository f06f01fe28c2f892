"""Groups over time: how many texts each has in every day, month or year."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import SettingsError

_UNITS = {"D": 31, "M": 36, "Y": 1000}
"""Units of time, and the maximum number of each that is shown."""
_NO_DATE = {"", "nat", "nan", "na", "n/a", "<na>", "none", "null", "-"}
"""Placeholders for a missing date in exports."""
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?:(?<=-\d\d)[T ].*)?|(\d{4})(\d{2})(\d{2})", re.DOTALL)
_NUMBER = re.compile(r"-?\d{7,20}(?:\.\d*)?")
_SECONDS = ": if these are seconds or milliseconds, write them as dates"
_FIRST, _LAST = np.datetime64("1800-01-01"), np.datetime64("2199-12-31")
_BARS = "▁▂▃▄▅▆▇█"


def counts_over(
    dates: Sequence[Any], groups: NDArray[np.int64], count: int, column: str
) -> tuple[list[str], NDArray[np.int64], int]:
    """Texts of each group in every day, month or year: the finest unit with a few dozen of them.

    Args:
        dates: (n,) that begin as `2026-01-31`, `2026-01` or `2026`, or are `20260131`; empty ones are left out.
        groups: (n,) from 0; -1 for texts in none, which are left out.
        count: number of groups.
        column: name of the dates, for errors.

    Returns:
        The periods, without gaps; (count, periods) the texts; and how many dates were left out because they only stand
        for none, such as 9999-12-31: their year is not within 1800 to 2199.

    Raises:
        SettingsError: something that is no such date, or no date at all.

    Examples:
        >>> counts_over(["2026-01-30", "2026-02-01", None], np.array([0, 1, 1]), 2, "created")[1].tolist()
        [[1, 0, 0], [0, 0, 1]]
    """
    days, kept, far = [], [], 0
    for row, value in enumerate(dates):
        text = "" if value is None else str(value).strip()
        if text.casefold() in _NO_DATE:
            continue
        try:
            match = _DATE.fullmatch(text)
            day = np.datetime64("-".join(part for part in match.groups() if part), "D") if match else None
        except ValueError:
            day = None
        if day is None:
            what = f"where {text[:40]!r} is no date such as 2026-01-31"
            raise SettingsError(f"over is {column}, {what}{_SECONDS if _NUMBER.fullmatch(text) else ''}")
        if not _FIRST <= day <= _LAST:
            far += 1
            continue
        days.append(day)
        kept.append(row)
    if not days:
        raise SettingsError(f"over is {column}, which has no date")
    for unit, limit in _UNITS.items():
        when = np.array(days).astype(f"datetime64[{unit}]")
        periods = np.arange(when.min(), when.max() + 1)
        if len(periods) <= limit:
            break
    found, own = np.zeros((count, len(periods)), np.int64), groups[kept]
    inside = own >= 0
    np.add.at(found, (own[inside], (when - when.min()).astype(np.int64)[inside]), 1)
    return [str(period) for period in periods], found, far


def bars(counts: Sequence[int]) -> str:
    """Counts as a line of bars; a dot is none.

    Examples:
        >>> bars([0, 1, 4, 8])
        '·▁▄█'
    """
    largest = max(*counts, 1)
    return "".join("·" if not value else _BARS[(8 * value - 1) // largest] for value in counts)


def span(periods: Sequence[str]) -> str:
    """The first and the last period, as a heading."""
    return periods[0] if len(periods) == 1 else f"{periods[0]} to {periods[-1]}"


def order_of_dates(values: Sequence[Any], column: str) -> NDArray[np.float64]:
    """Numbers in the order of dates or numbers, (n,); missing ones come before all.

    Args:
        values: (n,) numbers, or dates that begin as `2026-01-31` or are `20260131`, perhaps with a time behind.
        column: their name, for errors.

    Raises:
        SettingsError: something that is neither.

    Examples:
        >>> order_of_dates(["2026-01-31", None, "2026-01-31T10:00"], "created").argsort().tolist()
        [1, 0, 2]
    """
    texts = ["" if value is None else str(value).strip() for value in values]
    filled = [text for text in texts if text.casefold() not in _NO_DATE]
    try:
        number = {text: float(text) for text in filled}
    except ValueError:
        for text in filled:
            if not _DATE.fullmatch(text):
                what = f"where {text[:40]!r} is neither a number nor a date such as 2026-01-31"
                raise SettingsError(f"{column} cannot say which row is the newest, {what}") from None
        number = {text: float(place) for place, text in enumerate(sorted({*filled}))}
    return np.array([number.get(text, -np.inf) for text in texts])
