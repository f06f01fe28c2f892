"""A user's own file as rows with named columns.

CSV, JSON lines and parquet name their columns, as a corpus does. Other files are tab-separated. There a heading is
optional; it is recognised by one of its column names in position, by all of them anywhere, for pairs by a score that
is no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from pathlib import Path

import numpy as np

from selfsent.data.corpus.batch import Columns
from selfsent.data.corpus.clean import clean as cleaned
from selfsent.data.corpus.cleaners import Cleaners
from selfsent.data.corpus.formats import format_of, read_file, split_tabs, stem_of
from selfsent.data.corpus.streams import LONGEST_RECORD, line_lists, open_file
from selfsent.display import counted
from selfsent.errors import CorpusError, DataError, SettingsError
from selfsent.evaluation.datasets.declared import Rows, fingerprint
from selfsent.evaluation.datasets.publishers import columns_of

Column = str | Sequence[str]  # a column by name, or several to join
Clean = str | Sequence[str] | None  # cleaners, as for `read_corpus`
NAMED = (".csv", ".jsonl", ".ndjson", ".parquet")  # files with named columns
_NO_TEXT = ("label", "score", "id", "relevant")
_MARK = "relevant"
"""A second column that holds no text."""
_NO_SCORE = ("", "nan", "inf", "-inf", "na", "n/a", "none", "null", "-", "?")
"""Placeholders for a missing score, not column names."""
_LONGEST_HEADER = 1 << 16


def read_rows(path: Path, names: tuple[str, ...], columns: Sequence[Column] | None = None, clean: Clean = None) -> Rows:
    """The rows of a file, under its name. Rows without text are dropped, with a warning.

    Args:
        path: `.csv`, `.jsonl` or `.parquet`, with named columns as in a corpus; other files are tab-separated. Each may
            end in `.gz`, `.zst` or `.bz2`.
        names: our names of the columns.
        columns: their names in the file, in the same order, if different.
        clean: cleaners of texts.

    Raises:
        DataError: the file cannot be read, a label or score is missing, or fewer than two rows have text.
        SettingsError: another number of columns than names, or an unknown cleaner.
    """
    cleaners = Cleaners(clean)
    if columns is not None and len(columns) != len(names):
        raise SettingsError(f"{path} needs {len(names)} columns, for {', '.join(names)}; {len(columns)} are named")
    try:
        path.stat()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    named = format_of(path) in NAMED or columns is not None
    table, below = _read_named(path, names, columns or names) if named else read_tabs(path, names)
    read = columns_of(table, *names)
    read |= {name: cleaned(cleaners(cells))[0] for name, cells in read.items() if name not in _NO_TEXT}
    filled = list(map(all, zip(*read.values(), strict=True)))
    found = {name: list(compress(cells, filled)) for name, cells in read.items()}
    rows, name = sum(filled), stem_of(path)
    empty = f"{counted(len(table) - rows, 'row')} without text" if rows < len(table) else ""
    if rows < 2:
        there = counted(rows, "row") + f" besides {empty}" * bool(empty)
        raise DataError(f"{path} has {there}{below}; at least two are needed")
    return Rows(name, found, fingerprint(found), (f"{name}: {empty} left out",) if empty else ())


def header_of(path: Path, column: Column) -> list[str]:
    """The names of a file's columns; empty if they cannot be read.

    Args:
        path: as for `read_rows`.
        column: one that it has.
    """
    try:
        if format_of(path) not in NAMED:
            with open_file(path) as file:
                return file.readline(_LONGEST_HEADER).decode("utf-8-sig", "replace").strip().casefold().split("\t")
        wanted = Columns((column,) if isinstance(column, str) else tuple(column))
        for _ in read_file(path, wanted):
            if wanted.header:
                break
        return wanted.header
    except (OSError, CorpusError):
        return []


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _read_named(path: Path, names: tuple[str, ...], columns: Sequence[Column]) -> tuple[list[list[str]], str]:
    """Rows of a file with named columns; labels, scores, ids and marks may be numbers."""
    if not format_of(path) or format_of(path) == ".txt":
        raise DataError(f"{path} does not name its columns: give a .csv, .tsv, .jsonl or .parquet file")
    parts = [[part] if isinstance(part, str) else list(part) for part in columns]
    texts = [name for part in parts for name in part]
    label = texts.pop() if names[-1] in _NO_TEXT and names[-1] != _MARK else None
    mark = texts.pop(names.index(_MARK)) if _MARK in names else None
    wanted = Columns(tuple(dict.fromkeys(texts)), label=label, metadata=() if mark is None else (mark,))
    table: list[list[str]] = []
    try:
        for batch in read_file(path, wanted):
            held = dict(zip(wanted.texts, batch.texts, strict=True))
            marks = ["" if each is None else str(each) for each in batch.metadata[0]] if mark and batch.metadata else []
            others = ((mark, marks), (label, batch.labels))
            held |= {name: cells or [] for name, cells in others if name is not None}
            table += map(list, zip(*(map("\n\n".join, zip(*map(held.get, part))) for part in parts)))
    except CorpusError as error:
        reason, _, advice = str(error).partition(": name the right one")
        raise DataError(f"{reason}: needed are {', '.join(wanted.wanted)}" if advice else reason) from error
    return table, ""


def read_tabs(path: Path, names: tuple[str, ...]) -> tuple[list[list[str]], str]:
    """Rows of a tab-separated file, and a remark on its heading.

    Args:
        path: the file; it may be compressed.
        names: the columns; in any order, among others, if the heading has all of them.

    Raises:
        DataError: the file cannot be read, or a line has too few fields or no label or score.
    """
    try:
        with open_file(path) as file:
            read = line_lists(file, str(path), LONGEST_RECORD, refuse=True)
            lines = [line for _, lines in read for line in lines]
    except OSError as error:  # truncated, or not of the format of its suffix
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except CorpusError as error:
        raise DataError(str(error)) from error
    # Quotes are text but in .tsv, as in a corpus.
    quoted = format_of(path) == ".tsv"
    rows = list(split_tabs(lines)) if quoted else [(number, line.split("\t")) for number, line in enumerate(lines, 1)]
    first = [field.strip().casefold() for field in rows[0][1]] if rows else []
    order = [first.index(name) for name in names] if set(names) <= set(first) else list(range(len(names)))
    heading = order != [*range(len(names))] or _is_heading(first, names)
    table = []
    for number, cells in rows:
        fields = [field.strip() for field in cells]
        if not any(fields) or (number == 1 and heading):
            continue
        if len(fields) <= max(order) or (names[-1] in _NO_TEXT and not fields[order[-1]]):
            raise DataError(f"{path}, line {number}: expected {', '.join(names)}, separated by tabs")
        table.append([fields[index] for index in order])
    return table, " below its heading" * heading


def _is_heading(lower: list[str], names: tuple[str, ...]) -> bool:
    if names[-1] == "score" and len(lower) >= 3:
        return not is_number(lower[2]) and lower[2] not in _NO_SCORE
    return any(field == name for field, name in zip(lower, names, strict=False))
