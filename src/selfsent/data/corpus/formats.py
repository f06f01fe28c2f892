"""Readers: each turns one file into batches of rows, as a stream."""

from __future__ import annotations

import csv
import json
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from selfsent.data.corpus.batch import (
    BATCH_CHARACTERS,
    BATCH_ROWS,
    Batch,
    Columns,
    batch_rows,
    batched,
    check_header,
    make_batch,
)
from selfsent.data.corpus.clean import LONGEST_TEXT
from selfsent.data.corpus.failure import fail
from selfsent.data.corpus.streams import COMPRESSION, LONGEST_RECORD, chunks, line_lists, open_file
from selfsent.errors import first_line

if TYPE_CHECKING:
    from selfsent.data.corpus.remote import RemoteFile


_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""A line with which Excel says what separates cells."""
_IN_QUOTES = re.compile(r'"[^"]*(?:"|$)')
_MOST_LINES = 10_000
"""Maximum number of lines of a cell between quotes in a file with tabs."""


def read_file(path: Path | RemoteFile, columns: Columns) -> Iterator[Batch]:
    """The rows of one file, by the reader for its suffix.

    Raises:
        CorpusError: with the file, and the line or row, of whatever is wrong.
    """
    with open_file(path) as file:
        yield Batch([[] for _ in columns.kept], files=1)
        # The name of a pipe has no suffix: it holds lines.
        yield from READERS.get(format_of(path), read_text)(file, str(path), columns)


def format_of(path: Path | RemoteFile) -> str:
    """The suffix that decides how a file is read, without compression: `.csv` for `x.csv.gz`; empty if unknown."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSION:
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in READERS else ""


def stem_of(path: Path) -> str:
    """The name of a file without the suffixes of its format: `my.own` of `my.own.csv.gz`."""
    return Path(path.name.removesuffix(path.suffix) if path.suffix in COMPRESSION else path.name).stem


def read_records(path: Path | RemoteFile) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, whatever their fields.

    Raises:
        CorpusError: with the file and the line of whatever is wrong.
    """
    with open_file(path) as file:
        yield from (record for _, records in _records(file, str(path)) for record in records)


def read_text(file: IO[bytes], name: str, columns: Columns) -> Iterator[Batch]:
    """One sentence a line; a blank line ends a document."""
    if extra := columns.wanted[1:]:
        advice = "leave the option out, or give a .csv, .jsonl or .parquet file"
        fail(name, f"plain text has no column {extra[0]!r}: {advice}")
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
    """A header, then rows; quoting as in RFC 4180, between commas, semicolons or tabs as the header has them."""
    with table_of_csv(file, name, columns) as (rows, _):
        yield from _read_cells(rows, name, columns)


@contextmanager
def table_of_csv(file: IO[bytes], name: str, columns: Columns) -> Iterator[tuple[Iterator[tuple[int, list[str]]], str]]:
    """The rows of a csv file, the header first, each with the line it begins on; and the separator of cells."""
    lines, blank, delimiter = _lines(file, name), 0, ""
    while (header := next(lines, "")) and (not header.strip() or _SEPARATOR.fullmatch(header)):
        found = _SEPARATOR.fullmatch(header)
        delimiter = found[1] if found else delimiter
        blank += 1
    limit = csv.field_size_limit()
    # The limit is global to the process: never lowered, and restored afterwards.
    csv.field_size_limit(max(limit, LONGEST_RECORD))
    try:
        delimiter = delimiter or _delimiter(header, columns)
        reader = csv.reader(chain(repeat("\n", blank), [header], lines), delimiter=delimiter, strict=True)
        yield _csv_rows(reader, name), delimiter
    finally:
        csv.field_size_limit(limit)


def _delimiter(header: str, columns: Columns) -> str:
    """Separator of the names of a header outside of quotes: where signs differ, the one that gives the wanted names."""
    bare = _IN_QUOTES.sub("", header)
    known = [sign for sign in ",;\t" if sign in bare]
    for sign in known:
        names = [cell.strip() for cell in next(csv.reader([header], delimiter=sign), [])]
        if {*columns.wanted} <= {*names}:
            return sign
    return known[0] if known else ","


def _csv_rows(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a csv reader with the line number each begins on."""
    number = 1
    try:
        for row in reader:
            yield number, row
            number = reader.line_num + 1
    except csv.Error as error:
        fail(name, f"broken quoting ({error}): is a quote not closed, or not doubled?", number)


def read_tsv(file: IO[bytes], name: str, columns: Columns) -> Iterator[Batch]:
    """A header, then rows split at tabs; a cell that is quoted as a whole loses its quotes, any other quote is text.

    Between its quotes a cell holds tabs and line ends, as pandas and Excel write them, where this gives the row as many
    cells as the header has.
    """
    lines = (line.rstrip("\n") for line in _lines(file, name))
    return _read_cells(split_tabs(lines), name, columns, "is a quote not closed, or a tab in a text without quotes?")


def split_tabs(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file with tabs, each with the number of its first line; blank ones are empty.

    Args:
        lines: without their ends.
    """
    source, waiting, number, width = iter(lines), deque[str](), 1, 0

    def ahead(count: int) -> str | None:
        """The line so many lines on, from 0; None at the end."""
        while len(waiting) <= count and (line := next(source, None)) is not None:
            waiting.append(line)
        return waiting[count] if count < len(waiting) else None

    while (line := ahead(0)) is not None:
        plain, used = [_unquote(cell) for cell in line.split("\t")], 1
        if line.startswith('"') or '\t"' in line:
            quoted, taken = _quoted_cells(ahead)
            if len(quoted) == width or (not width and taken == 1 and quoted):
                plain, used = quoted, taken
        if line:
            width = width or len(plain)
        for _ in range(used):
            waiting.popleft()
        yield number, plain if line else []
        number += used


def _quoted_cells(ahead: Callable[[int], str | None]) -> tuple[list[str], int]:
    """The cells of a row, quotes honoured, and over how many lines they go; no cells where a quote is not closed."""
    text, used, at, cells = ahead(0) or "", 1, 0, list[str]()
    while True:
        end, begun = -1, used
        if text.startswith('"', at):
            end, scan = -1, at + 1
            while (end := text.find('"', scan)) < 0 or text.startswith('"', end + 1):
                if end >= 0:
                    scan = end + 2
                    continue
                line = ahead(used) if used < _MOST_LINES and len(text) < LONGEST_RECORD else None
                if line is None:
                    return [], 1
                scan, used = len(text) + 1, used + 1
                text += f"\n{line}"
            if text[end + 1 : end + 2] not in ("", "\t"):  # a quote within: a text that begins with one
                if used > begun:
                    return [], 1
                end = -1
        if end >= 0:
            cells.append(text[at + 1 : end].replace('""', '"'))
            at = end + 1
        else:
            end = text.find("\t", at)
            end = len(text) if end < 0 else end
            cells.append(text[at:end])
            at = end
        if at == len(text):
            return cells, used
        at += 1


def _unquote(cell: str) -> str:
    if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"':
        return cell
    inner = cell[1:-1].replace('""', "\0")
    return cell if '"' in inner else inner.replace("\0", '"')


def read_jsonl(file: IO[bytes], name: str, columns: Columns) -> Iterator[Batch]:
    """One JSON object a line; blank lines are skipped. Fields of the first object may be missing in others: null."""
    checked = False
    for numbers, records in _records(file, name):
        if not checked:
            check_header(list(records[0]), name, columns, "field", numbers[0])
        checked = True
        values = {wanted: [record.get(wanted) for record in records] for wanted in columns.wanted}
        yield make_batch(values, name, columns, numbers, "line")


def _records(file: IO[bytes], name: str) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
    """Line numbers and JSON objects of a file, some at a time."""
    for first, lines in line_lists(file, name, LONGEST_RECORD, refuse=True):
        filled = [number for number, line in enumerate(lines, start=first) if line and not line.isspace()]
        for numbers in batched(filled, lambda number: 0):  # characters are few: one read
            yield numbers, [_record(lines[number - first], name, number) for number in numbers]


def read_parquet(file: IO[bytes], name: str, columns: Columns) -> Iterator[Batch]:
    """The chosen columns of a parquet file, in bounded memory: a few bytes of dictionary may expand to gigabytes."""
    with opened_parquet(file, name, columns.wanted) as parquet:
        check_header(parquet.schema_arrow.names, name, columns)
        start = 0
        try:
            size = sum(group.total_byte_size for group in groups_of(parquet))
            rows = batch_rows(parquet.metadata.num_rows, size)
            for batch in chain.from_iterable(map(_bounded, parquet.iter_batches(rows, columns=columns.wanted))):
                arrays = (array.dictionary_decode() if hasattr(array, "dictionary") else array for array in batch)
                values = dict(zip(batch.schema.names, (array.to_pylist() for array in arrays), strict=True))
                yield make_batch(values, name, columns, range(start + 1, start + 1 + batch.num_rows))
                start += batch.num_rows
        except UnicodeDecodeError:
            fail(name, "a text is not UTF-8", row=start + 1)


@contextmanager
def opened_parquet(file: IO[bytes], name: str, wanted: Sequence[str]) -> Iterator[Any]:
    """An open parquet file; whatever is wrong with it, then or later, is reported in one line.

    Wanted columns of text that are stored with a dictionary stay so: decoded, a few bytes may become gigabytes.
    """
    import pyarrow.parquet as pq

    with tempfile.TemporaryFile() as unpacked:
        if not file.seekable():
            # Parquet needs seeking: a compressed file, or a stream, is spooled to disk first.
            unpacked.writelines(chunks(file, name))
            file = unpacked
        try:
            options: dict[str, Any] = {"buffer_size": 1 << 20, "pre_buffer": False}
            parquet = pq.ParquetFile(file, **options)
            texts = {field.name for field in parquet.schema_arrow if pa.types.is_string(field.type)} & set(wanted)
            count = parquet.metadata.num_columns
            parts = (group.column(column) for group in groups_of(parquet) for column in range(count))
            encoded = {each.path_in_schema for each in parts if any("DICTIONARY" in kind for kind in each.encodings)}
            if by_number := sorted(texts & encoded):
                parquet = pq.ParquetFile(file, read_dictionary=by_number, metadata=parquet.metadata, **options)
            yield parquet
        except (pa.ArrowException, OSError, KeyError, ValueError, OverflowError) as error:
            fail(name, f"not a whole parquet file, or one with values that cannot be read: {first_line(error)}")


def groups_of(parquet: Any) -> list[Any]:
    """Metadata of each row group of a parquet file."""
    return [parquet.metadata.row_group(index) for index in range(parquet.metadata.num_row_groups)]


def _bounded(batch: Any) -> Iterator[Any]:
    """A batch in slices of at most some million characters, as far as rows go."""
    import pyarrow.compute as pc

    sizes = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            lengths = pc.binary_length(column.dictionary).take(column.indices)
            sizes += pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
    part = np.cumsum(sizes) // BATCH_CHARACTERS
    borders = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), batch.num_rows]
    return (batch.slice(first, last - first) for first, last in pairwise(borders))


READERS: dict[str, Callable[[IO[bytes], str, Columns], Iterator[Batch]]] = {
    ".txt": read_text,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".parquet": read_parquet,
}


def _read_cells(
    rows: Iterator[tuple[int, list[str]]], name: str, columns: Columns, doubt: str = "is a text unquoted?"
) -> Iterator[Batch]:
    """Batches from numbered rows of cells, the first of which is the header."""
    header = [cell.strip() for cell in next((cells for _, cells in rows if cells), [])]
    if not header:
        return
    check_header(header, name, columns)
    indices = [header.index(wanted) for wanted in columns.wanted]
    kept: list[list[str]] = []
    numbers: list[int] = []
    size = 0

    def made() -> Batch:
        values = dict(zip(columns.wanted, zip(*kept, strict=True), strict=True))
        return make_batch(values, name, columns, numbers, "line", typed=False)

    for number, row in rows:  # not by `batched`, which takes a tenth longer where rows are short
        if not row or (len(header) == 1 and row[0].isspace()):  # other readers skip such lines too
            continue
        if len(row) != len(header):
            fail(name, f"{len(row)} columns where the header has {len(header)}: {doubt}", number)
        wanted = [row[index] for index in indices]
        kept.append(wanted)
        numbers.append(number)
        size += sum(map(len, wanted))
        if len(kept) == BATCH_ROWS or size > BATCH_CHARACTERS:
            yield made()
            kept, numbers, size = [], [], 0
    if kept:
        yield made()


def _record(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        nested = isinstance(error, RecursionError)
        fail(name, f"not a JSON object: {'nested too deeply' if nested else error}", number)
    if not isinstance(record, dict):
        fail(name, f"not a JSON object but {type(record).__name__}", number)
    return record


def _lines(file: IO[bytes], name: str) -> Iterator[str]:
    """Lines with their ends, which csv needs inside quotes."""
    for _, lines in line_lists(file, name, LONGEST_RECORD, refuse=True):
        for line in lines:
            yield line + "\n"
