"""A user's own file as rows with named columns.

CSV, JSON lines and parquet name their columns, as a corpus does. Other files are tab-separated. There a heading is
optional; it is recognised by one of its column names in its place, for pairs by a score that is no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from selfsent.data.corpus.batch import Columns
from selfsent.data.corpus.formats import format_of, read_file
from selfsent.data.corpus.streams import COMPRESSION, chunks, open_file
from selfsent.errors import CorpusError, DataError, SettingsError
from selfsent.evaluation.datasets.declared import Rows, fingerprint
from selfsent.evaluation.datasets.publishers import columns_of

NAMED = (".csv", ".jsonl", ".ndjson", ".parquet")
"""Files whose columns go by their names."""
_NO_SCORE = ("", "nan", "inf", "-inf", "na", "n/a", "none", "null", "-", "?")
"""What stands for a score that is missing, and is no name of a column."""


def read_rows(path: Path, names: tuple[str, ...], columns: Sequence[str] | None = None) -> Rows:
    """The rows of a file; they go by its name.

    Args:
        path: `.csv`, `.jsonl` or `.parquet`, which name their columns as a corpus does; other files are tab-separated.
            Each may end in `.gz`, `.zst` or `.bz2`.
        names: what the columns are called here.
        columns: what they are called in the file, in the same order, where that is something else.

    Raises:
        DataError: the file cannot be read, a cell is empty, or there are fewer than two rows.
        SettingsError: there are more or fewer columns than names.
    """
    if columns is not None and len(columns) != len(names):
        raise SettingsError(f"{path} needs {len(names)} columns, for {', '.join(names)}; {len(columns)} are named")
    try:
        path.stat()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    named = format_of(path) in NAMED or columns is not None
    table, below = _read_named(path, columns or names) if named else _read_tabs(path, names)
    if len(table) < 2:
        raise DataError(f"{path} has {len(table)} row{'s' * (len(table) != 1)}{below}; at least two are needed")
    found = columns_of(table, *names)
    return Rows(
        Path(path.name.removesuffix(path.suffix) if path.suffix in COMPRESSION else path.name).stem,
        found,
        fingerprint(found),
    )


def is_number(text: str) -> bool:
    """Whether a text is a number, and a finite one."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _read_named(path: Path, names: Sequence[str]) -> tuple[list[list[str]], str]:
    """Rows of a file that names its columns; the last of them may hold numbers."""
    if not format_of(path) or format_of(path) == ".txt":
        raise DataError(f"{path} does not name its columns: give a .csv, .tsv, .jsonl or .parquet file")
    table: list[list[str]] = []
    try:
        for batch in read_file(path, Columns(tuple(names[:-1]), label=names[-1])):
            cells = zip(*batch.texts, batch.labels or [], strict=True)
            table += [[cell.strip() for cell in row] for row in cells]
    except CorpusError as error:
        reason, _, advice = str(error).partition(": name the right one")
        raise DataError(f"{reason}: needed are {', '.join(names)}" if advice else reason) from error
    for number, row in enumerate(table, 1):
        if "" in row:
            raise DataError(f"{path}, row {number}: {names[row.index('')]} is empty")
    return table, ""


def _read_tabs(path: Path, names: tuple[str, ...]) -> tuple[list[list[str]], str]:
    """Rows of a tab-separated file, and what to say of a heading."""
    try:
        with open_file(path) as file:
            lines = b"".join(chunks(file, str(path))).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    except OSError as error:  # cut short, or not what its name says
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except CorpusError as error:
        raise DataError(str(error)) from error
    table = []
    for number, line in enumerate(lines, 1):
        fields = line.rstrip("\r").split("\t")
        if not line.strip() or (number == 1 and _is_heading(fields, names)):
            continue
        if len(fields) < len(names) or not all(field.strip() for field in fields[: len(names)]):
            raise DataError(f"{path}, line {number}: expected {', '.join(names)}, separated by tabs")
        table.append([field.strip() for field in fields[: len(names)]])
    return table, " below its heading" if _is_heading(lines[0].rstrip("\r").split("\t"), names) else ""


def _is_heading(fields: list[str], names: tuple[str, ...]) -> bool:
    lower = [field.strip().casefold() for field in fields]
    if names[-1] == "score" and len(fields) >= 3:
        return not is_number(fields[2]) and lower[2] not in _NO_SCORE
    return any(field == name for field, name in zip(lower, names, strict=False))
