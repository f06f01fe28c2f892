"""Readers: each turns one file into batches of rows, as a stream."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from typing import IO, Any
from urllib.parse import unquote

import numpy as np

from selfsent.data.corpus.batch import BATCH_CHARACTERS, BATCH_ROWS, Batch, Columns, at_lines, at_rows, make_batch
from selfsent.data.corpus.clean import LONGEST_TEXT
from selfsent.data.corpus.streams import (
    COMPRESSION,
    LONGEST_RECORD,
    Readable,
    chunks,
    fail,
    is_unpacked,
    line_lists,
    open_file,
)

_SHOWN_COLUMNS = 20
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


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


def read_parquet(file: IO[bytes], name: str, columns: Columns, part: range | None = None) -> Iterator[Batch]:
    """The chosen columns of a parquet file, a few thousand rows at a time.

    Args:
        file: its bytes.
        name: what errors call it.
        columns: which.
        part: the rows to read, from 0; all by default.
    """
    start = part.start if part else 0
    with _parquet(file, name, columns.wanted) as parquet:
        held = parquet.schema_arrow.names
        folders = {key: value for key, value in _partition(name).items() if key not in held}
        check_header([*held, *folders], name, columns)
        read = [column for column in columns.wanted if column not in folders]
        try:
            batches = _record_batches(parquet, read, part or range(parquet.metadata.num_rows))
            for batch in chain.from_iterable(map(_bounded, batches)):
                values = {column: [value] * batch.num_rows for column, value in folders.items()}
                values |= {column: _values(batch.column(column)) for column in read}
                yield make_batch(values, name, columns, at_rows(start + 1))
                start += batch.num_rows
        except UnicodeDecodeError:
            fail(name, "a text is not UTF-8", row=start + 1)


def look_at_parquet(path: Readable, columns: Columns) -> tuple[int, dict[str, str]]:
    """How many rows a parquet file has, and the kind of each wanted column: bool, int, float or str.

    Raises:
        CorpusError: it is no whole parquet file, or has no such column.
    """
    import pyarrow as pa

    with open_file(path) as file, _parquet(file, str(path)) as parquet:
        kinds = {field.name: field.type for field in parquet.schema_arrow}
        check_header([*parquet.schema_arrow.names, *_partition(str(path)).keys() - kinds], str(path), columns)
        found = {name: kind_of(kinds.get(name, pa.null())) or str for name in columns.wanted}
        return parquet.metadata.num_rows, {name: kind.__name__ for name, kind in found.items()}


def kind_of(kind: Any) -> type | None:
    """What columns of results call a type of Arrow: bool, int, float or str; None for what is nested, and for dates."""
    import pyarrow as pa

    if kind == pa.uint64():  # whose numbers do not all fit into an int of 64 bits
        return str
    tests = {bool: pa.types.is_boolean, int: pa.types.is_integer, float: pa.types.is_floating}
    tests |= {str: lambda each: pa.types.is_string(each) or pa.types.is_large_string(each)}
    return next((found for found, fits in tests.items() if fits(kind)), None)


@contextmanager
def _parquet(file: IO[bytes], name: str, wanted: Sequence[str] = ()) -> Iterator[Any]:
    """A parquet file, opened; what is wrong with it then or later is told in one line.

    Texts of wanted columns that the file holds once, and names by number, come so: a few bytes may stand for gigabytes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryFile() as unpacked:
        if is_unpacked(file) or not file.seekable():
            # Parquet is read from its end: one that is compressed, or that comes as a stream, is laid down first.
            for chunk in chunks(file, name):
                unpacked.write(chunk)
            file = unpacked
        try:
            options: dict[str, Any] = {"buffer_size": 1 << 20, "pre_buffer": False}
            opened = pq.ParquetFile(file, **options)
            if by_number := _by_number(opened, wanted):
                opened = pq.ParquetFile(file, read_dictionary=by_number, metadata=opened.metadata, **options)
            yield opened
        except (pa.ArrowException, OSError, KeyError, ValueError, OverflowError) as error:
            fail(name, f"not a whole parquet file, or one with values that cannot be read: {_first_line(error)}")


def _record_batches(parquet: Any, columns: list[str], part: range) -> Iterator[Any]:
    """Consecutive rows of a parquet file, some thousand at a time; row groups without any of them are not read."""
    described = parquet.metadata
    groups = [described.row_group(i) for i in range(described.num_row_groups)]
    rows = max(
        1, min(BATCH_ROWS, BATCH_CHARACTERS * described.num_rows // max(1, sum(g.total_byte_size for g in groups)))
    )
    ends = np.cumsum([group.num_rows for group in groups])
    chosen = [i for i, group in enumerate(groups) if ends[i] > part.start and ends[i] - group.num_rows < part.stop]
    place = int(ends[chosen[0]]) - groups[chosen[0]].num_rows if chosen else 0
    for batch in parquet.iter_batches(batch_size=rows, row_groups=chosen, columns=columns):
        first, last = max(part.start - place, 0), min(part.stop - place, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        place += batch.num_rows


def _by_number(parquet: Any, wanted: Sequence[str]) -> list[str]:
    """The columns of text that have a dictionary."""
    import pyarrow as pa

    texts = {field.name for field in parquet.schema_arrow if pa.types.is_string(field.type)} & set(wanted)
    described = parquet.metadata
    chunks = (
        described.row_group(group).column(column)
        for group in range(described.num_row_groups)
        for column in range(described.num_columns)
    )
    found = {each.path_in_schema for each in chunks if any("DICTIONARY" in kind for kind in each.encodings)}
    return sorted(texts & found)


def _bounded(batch: Any) -> Iterator[Any]:
    """A batch in slices of at most some million characters, as far as rows go."""
    import pyarrow as pa
    import pyarrow.compute as pc

    named = [column for column in batch.columns if pa.types.is_dictionary(column.type)]
    lengths = [pc.binary_length(column.dictionary) for column in named]
    if sum(pc.max(each).as_py() or 0 for each in lengths) * batch.num_rows <= BATCH_CHARACTERS:
        yield batch
        return
    sizes = np.zeros(batch.num_rows, np.int64)
    for column, each in zip(named, lengths, strict=True):
        sizes += pc.fill_null(each.take(column.indices), 0).to_numpy(zero_copy_only=False)
    part = np.cumsum(sizes) // BATCH_CHARACTERS
    ends = [*(np.flatnonzero(np.diff(part)) + 1).tolist(), batch.num_rows]
    for first, last in zip([0, *ends], ends, strict=False):
        yield batch.slice(first, last - first)


def _values(column: Any) -> list[Any]:
    import pyarrow as pa

    return list((column.dictionary_decode() if pa.types.is_dictionary(column.type) else column).to_pylist())


def _partition(name: str) -> dict[str, str | None]:
    """The columns that the folders of a partitioned table stand for: `lang=en/part-0.parquet` is in English."""
    found = (folder.partition("=") for folder in name.split("/")[:-1])
    return {key: None if value == _NO_VALUE else unquote(value) for key, sign, value in found if sign}


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
    try:
        record = json.loads(line)
    except RecursionError:
        fail(name, "not a JSON object: nested too deeply", number)
    except ValueError as error:
        fail(name, f"not a JSON object: {error}", number)
    if not isinstance(record, dict):
        fail(name, f"not a JSON object but {type(record).__name__}", number)
    if known:
        return [record.get(field) for field in wanted]
    try:
        return [record[field] for field in wanted]
    except KeyError as error:
        fail(name, missing_column(str(error.args[0]), list(record), "field"), number)


def _lines(file: IO[bytes], name: str) -> Iterator[str]:
    """Lines with their ends, which csv needs inside quotes."""
    for _, lines in line_lists(file, name, LONGEST_RECORD, refuse=True):
        for line in lines:
            yield line + "\n"


def _unquote(cell: str) -> str:
    inner = cell[1:-1].replace('""', "\0")
    whole = len(cell) > 1 and cell.endswith('"') and '"' not in inner
    return inner.replace("\0", '"') if whole else cell


def check_header(header: list[str], name: str, columns: Columns) -> None:
    """Refuse a table that lacks a wanted column, or has it twice.

    Raises:
        CorpusError: it does.
    """
    for wanted in columns.wanted:
        if wanted not in header:
            fail(name, missing_column(wanted, header, "column"))
        if header.count(wanted) > 1:
            fail(name, f"{header.count(wanted)} columns are called {wanted!r}: rename all but one")


def missing_column(wanted: str, found: list[str], kind: str) -> str:
    """What to say when a column (or field) is not among those found."""
    shown = ", ".join(repr(column[:40]) for column in found[:_SHOWN_COLUMNS])
    more = f" and {len(found) - _SHOWN_COLUMNS} more" if len(found) > _SHOWN_COLUMNS else ""
    flags = "--text-column, --text-columns, --document-column and the like"
    several = set(wanted.split(",")) - {wanted} <= set(found) and "," in wanted
    advice = "to join columns, give --text-column once for each" if several else f"name the right one ({flags})"
    return f"no {kind} {wanted!r}; it has {shown or 'none'}{more}: {advice}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
