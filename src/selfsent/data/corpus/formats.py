"""Readers: each turns one file into batches of rows, as a stream."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any

import numpy as np

from selfsent.data.corpus.batch import BATCH_CHARACTERS, BATCH_ROWS, Batch, Columns, at_lines, make_batch
from selfsent.data.corpus.clean import LONGEST_TEXT
from selfsent.data.corpus.header import check_header, missing_column
from selfsent.data.corpus.parquet import read_parquet
from selfsent.data.corpus.streams import (
    COMPRESSION,
    LONGEST_RECORD,
    Readable,
    fail,
    line_lists,
    open_file,
)


def read_file(path: Readable, columns: Columns) -> Iterator[Batch]:
    """The rows of one file, by the reader for its suffix.

    Raises:
        CorpusError: with the file, and the line or row, of whatever is wrong.
    """
    with open_file(path) as file:
        yield Batch.start(columns)
        yield from READERS[format_of(path)](file, str(path), columns)


def format_of(path: Readable) -> str:
    """The suffix that decides how a file is read, without compression: `.csv` for `x.csv.gz`; empty when unknown."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSION:
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in READERS else ""


def stem_of(path: Path) -> str:
    """The name of a file without the ends that say how it is read: `my.own` of `my.own.csv.gz`."""
    return Path(path.name.removesuffix(path.suffix) if path.suffix in COMPRESSION else path.name).stem


def read_records(path: Readable) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, whatever their fields.

    Raises:
        CorpusError: with the file and the line of whatever is wrong.
    """
    with open_file(path) as file:
        for first, lines in line_lists(file, str(path), LONGEST_RECORD, refuse=True):
            for number, line in enumerate(lines, start=first):
                if line and not line.isspace():
                    yield _record(line, str(path), number)


def read_text(file: IO[bytes], name: str, columns: Columns) -> Iterator[Batch]:
    """One sentence a line; a blank line ends a document."""
    extra = columns.wanted[1:]
    if extra:
        fail(
            name,
            f"plain text has no column {extra[0]!r}: leave the option out, or give a .csv, .jsonl or .parquet file",
        )
    block, first_block, separated = 0, -1, False
    for _, lines in line_lists(file, name, LONGEST_TEXT, refuse=False):
        blank = np.fromiter((not line or line.isspace() for line in lines), dtype=bool, count=len(lines))
        blocks = block + np.cumsum(blank, dtype=np.int64)
        block = int(blocks[-1])
        filled = blocks[~blank]
        if len(filled):
            first_block = int(filled[0]) if first_block < 0 else first_block
            separated = separated or int(filled[-1]) != first_block
        yield Batch([lines], blocks=blocks, separated=separated)


def read_csv(file: IO[bytes], name: str, columns: Columns) -> Iterator[Batch]:
    """A header, then rows; quoting as in RFC 4180; semicolons where the header has them and no comma."""
    lines, blank = _lines(file, name), 0
    while (header_line := next(lines, "")) and not header_line.strip():
        blank += 1
    delimiter = ";" if ";" in header_line and "," not in header_line else ","
    limit = csv.field_size_limit()
    # The limit belongs to the whole process: never lowered, and put back after.
    csv.field_size_limit(max(limit, LONGEST_RECORD))
    try:
        reader = csv.reader(chain(repeat("\n", blank), [header_line], lines), delimiter=delimiter, strict=True)
        yield from _read_rows(_checked_csv(reader, name), name, columns)
    finally:
        csv.field_size_limit(limit)


def read_tsv(file: IO[bytes], name: str, columns: Columns) -> Iterator[Batch]:
    """A header, then rows split at tabs; a cell that is quoted as a whole loses its quotes, any other quote is text."""
    split = (line.rstrip("\n").split("\t") for line in _lines(file, name))
    cells = ([_unquote(cell) if cell[:1] == '"' else cell for cell in row] if row != [""] else [] for row in split)
    yield from _read_rows(enumerate(cells, start=1), name, columns)


def read_jsonl(file: IO[bytes], name: str, columns: Columns) -> Iterator[Batch]:
    """One JSON object a line; blank lines are skipped. Fields that the first has may be missing in others: null."""
    known = False
    wanted = columns.wanted
    rows: list[list[Any]] = []
    numbers: list[int] = []
    size = 0
    for first, lines in line_lists(file, name, LONGEST_RECORD, refuse=True):
        for number, line in enumerate(lines, start=first):
            if not line or line.isspace():
                continue
            rows.append(_fields(line, name, number, wanted, known))
            known = True
            numbers.append(number)
            size += len(line)
            if len(rows) == BATCH_ROWS or size > BATCH_CHARACTERS:
                yield make_batch(dict(zip(wanted, zip(*rows), strict=True)), name, columns, at_lines(numbers))
                rows, numbers, size = [], [], 0
    if rows:
        yield make_batch(dict(zip(wanted, zip(*rows), strict=True)), name, columns, at_lines(numbers))


READERS: dict[str, Callable[[IO[bytes], str, Columns], Iterator[Batch]]] = {
    ".txt": read_text,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".parquet": read_parquet,
}


def _read_rows(rows: Iterator[tuple[int, list[str]]], name: str, columns: Columns) -> Iterator[Batch]:
    """Batches from numbered rows of cells, the first of which is the header."""
    header = [cell.strip() for cell in next((cells for _, cells in rows if cells), [])]
    if not header:
        return
    check_header(header, name, columns)
    indices = [header.index(wanted) for wanted in columns.wanted]
    kept: list[list[str]] = []
    numbers: list[int] = []
    size = 0

    def batch() -> Batch:
        cells = dict(zip(columns.wanted, map(list, zip(*kept, strict=True)), strict=True))
        return make_batch(cells, name, columns, at_lines(numbers), typed=False)

    for number, row in rows:
        if row and len(header) == 1 and row[0].isspace():  # no row either to others who read such files
            continue
        if len(row) != len(header):
            if not row:
                continue
            fail(name, f"{len(row)} columns where the header has {len(header)}: is a text unquoted?", number)
        wanted = [row[i] for i in indices]
        kept.append(wanted)
        numbers.append(number)
        size += sum(map(len, wanted))
        if len(kept) == BATCH_ROWS or size > BATCH_CHARACTERS:
            yield batch()
            kept, numbers, size = [], [], 0
    if kept:
        yield batch()


def _checked_csv(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a csv reader with the number of the line each begins on."""
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fail(name, f"broken quoting ({error}): is a quote not closed, or not doubled?", number)
        yield number, row


def _fields(line: str, name: str, number: int, wanted: list[str], known: bool) -> list[Any]:
    """The wanted fields of one object; where they are known from another, one that is missing is null."""
    record = _record(line, name, number)
    if known:
        return [record.get(field) for field in wanted]
    try:
        return [record[field] for field in wanted]
    except KeyError as error:
        fail(name, missing_column(str(error.args[0]), list(record), "field"), number)


def _record(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except RecursionError:
        fail(name, "not a JSON object: nested too deeply", number)
    except ValueError as error:
        fail(name, f"not a JSON object: {error}", number)
    if not isinstance(record, dict):
        fail(name, f"not a JSON object but {type(record).__name__}", number)
    return record


def _lines(file: IO[bytes], name: str) -> Iterator[str]:
    """Lines with their ends, which csv needs inside quotes."""
    for _, lines in line_lists(file, name, LONGEST_RECORD, refuse=True):
        for line in lines:
            yield line + "\n"


def _unquote(cell: str) -> str:
    inner = cell[1:-1].replace('""', "\0")
    whole = len(cell) > 1 and cell.endswith('"') and '"' not in inner
    return inner.replace("\0", '"') if whole else cell
