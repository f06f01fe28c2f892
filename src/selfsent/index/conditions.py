"""Conditions on the metadata columns of an index, as SQL."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from selfsent.data.corpus.batch import POSITIONS
from selfsent.errors import SettingsError, guess

Where = str | Sequence[str] | None
"""One condition, several that must all hold, or none."""
_CONDITION = re.compile(r"\s*(?P<name>.*?)\s*(?P<sign>!=|>=|<=|=|<|>)\s*(?P<value>.*?)\s*", re.DOTALL)
_TRUTH = {"true": 1, "1": 1, "false": 0, "0": 0}


def sql_columns_of(columns: Mapping[str, type]) -> dict[str, str]:
    """Names in the database for the metadata columns, whose own names may be any text."""
    return {name: f"c{i}" for i, name in enumerate(name for name in columns if name not in (*POSITIONS, "text"))}


def condition(where: Where, columns: Mapping[str, type]) -> tuple[str, list[Any]]:
    """Conditions on metadata columns as SQL, and its parameters; all of them must hold.

    Args:
        where: such as `team=sales`, `team=sales,support`, `team!=sales`, `priority>2` or `created>=2024-01-01`. Texts
            are compared as far as the value goes, so that `created<=2024-01` takes in all of January.
        columns: of the index.

    Raises:
        SettingsError: no condition, no such column, or a value that does not fit it.

    Examples:
        >>> condition("team=sales", {"team": str})
        ("c0 IN (?)", ['sales'])
    """
    sql_columns, parts, values = sql_columns_of(columns), list[str](), list[Any]()
    for each in [where] if isinstance(where, str) else where or ():
        found = _CONDITION.fullmatch(each)
        if not found:
            raise SettingsError(f"`where` {each!r} is no condition: give column=value, or one with !=, <, <=, > or >=")
        name, sign, value = found["name"], found["sign"], found["value"]
        if name not in sql_columns:
            known = guess(name, tuple(sql_columns)) if sql_columns else "give --keep when you make it"
            raise SettingsError(f"`where` {each!r}: the index has no column {name!r}; {known}")
        column, kind = sql_columns[name], columns[name]
        if sign in ("=", "!="):
            try:
                parted = next(csv.reader([value], skipinitialspace=True), []) or [""]
            except csv.Error as error:
                raise SettingsError(f"`where` {each[:60]!r}: {error}") from None
            wanted = [_value(part, kind, name) for part in parted]
            marks = ", ".join("?" * len(wanted))
            empty = f"{column} IS NULL" if "" in wanted or sign == "!=" else "0"
            parts.append(f"({empty} OR {column} {'NOT ' * (sign == '!=')}IN ({marks}))")
            values += wanted
        else:
            wanted = [_value(value, kind, name)]
            compared = f"substr({column}, 1, {len(value)})" if kind is str else column
            parts.append(f"{compared} {sign} ?")
            values += wanted
    return " AND ".join(parts), values


def _value(text: str, kind: type, name: str) -> Any:
    """A value of a condition in the type of its column."""
    if kind is str or not text:
        return text
    try:
        return _TRUTH[text.lower()] if kind is bool else float(text)
    except (KeyError, ValueError):
        raise SettingsError(f"`where` {text!r} is no value of {name}, a column of {kind.__name__}") from None


def in_groups(values: Iterable[Any], size: int = 500) -> Iterator[tuple[list[Any], str]]:
    """Values in groups with their question marks, because SQLite limits the parameters of a statement."""
    left = list(values)
    for start in range(0, len(left), size):
        group = left[start : start + size]
        yield group, ", ".join("?" * len(group))
