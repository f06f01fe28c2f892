"""A table without some of its rows, in its own format: cells, lines and types stay as they were."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from selfsent.data.corpus.batch import Columns, batch_rows
from selfsent.data.corpus.failure import fail
from selfsent.data.corpus.formats import format_of, groups_of, opened_parquet, split_tabs, table_of_csv
from selfsent.data.corpus.sources import find_files
from selfsent.data.corpus.streams import COMPRESSION, LONGEST_RECORD, line_lists, open_file
from selfsent.errors import SettingsError
from selfsent.files import atomic_file
from selfsent.progress import SILENT, Counter, Progress

if TYPE_CHECKING:
    from selfsent.data.corpus.remote import RemoteFile

Mask = NDArray[np.bool_]


def check_copy(source: str, output: Path) -> list[Path | RemoteFile]:
    """The files of a source, if they can be copied to one file of the same format, perhaps compressed otherwise.

    Raises:
        CorpusError: there is no such file.
        SettingsError: the source is no file, its files have several formats, or the output has another one.
    """
    if source == "-":
        raise SettingsError("standard input is read only once, and its rows are read again: write it to a file first")
    files = find_files(source)
    formats = {_plain(format_of(file)) or ".txt" for file in files}
    if len(formats) > 1:
        raise SettingsError(f"{source} has files of several formats ({', '.join(sorted(formats))}): give those of one")
    wanted, has = _plain(format_of(output)) or output.suffix, formats.pop()
    if wanted != has:
        raise SettingsError(f"`output` {output} has the format of {source}: its name must end in {has}")
    if has == ".parquet" and output.suffix in COMPRESSION:
        raise SettingsError(f"`output` {output} is compressed within: its name must end in .parquet")
    return files


def _plain(suffix: str) -> str:
    return {".ndjson": ".jsonl"}.get(suffix, suffix)


def copy_rows(source: str, output: Path, keep: Mask, columns: Columns, progress: Progress = SILENT) -> None:
    """Write the rows of a source that stay, in one file, which appears whole or not at all.

    Args:
        source: a file, folder, pattern or address, as for `read_corpus`.
        output: the file. Its suffix is the source's, and may add `.gz`, `.zst` or `.bz2`.
        keep: (rows,) whether each row stays, as `read_corpus` counts them, blank lines of plain text included.
        columns: that were read, by which the sign between cells is told.
        progress: receives the number of rows read.

    Raises:
        CorpusError: files without the same header, or other rows than were counted: it has changed.
        OutputError: it cannot be written.
    """
    files = check_copy(source, output)
    rows = _Rows(source, keep, progress.counting("writing", len(keep)))
    with atomic_file(output) as temporary:
        if format_of(output) == ".parquet":
            _copy_parquet(files, temporary, rows)
        else:
            copy = _COPIERS.get(_plain(format_of(output)), _copy_lines)
            with _writer(temporary, output.suffix) as file:
                for number, path in enumerate(files):
                    with open_file(path) as opened:
                        copy(opened, str(path), file, rows, columns, number == 0)
        rows.check_end()


class _Rows:
    """Tells of rows, in order, whether they stay."""

    def __init__(self, source: str, keep: Mask, advance: Counter) -> None:
        self._source, self._keep, self._advance, self._at = source, keep, advance, 0
        self.header: Sequence[str] | None = None

    def next(self, count: int) -> Mask:
        """Whether each of the next rows stays, (count,)."""
        found = self._keep[self._at : self._at + count]
        if len(found) < count:
            self._changed()
        self._at += count
        self._advance(count)
        return found

    def check_header(self, header: Sequence[str], name: str) -> None:
        """Reject a file with other columns than the first."""
        if self.header is not None and list(header) != list(self.header):
            fail(name, "its columns are not those of the first file: they cannot go into one table")
        self.header = header

    def check_end(self) -> None:
        """Reject a source with fewer rows than were counted."""
        if self._at != len(self._keep):
            self._changed()

    def _changed(self) -> None:
        fail(self._source, "it has changed since it was read: try again")


@contextmanager
def _writer(path: Path, suffix: str) -> Iterator[BinaryIO | IO[bytes]]:
    with path.open("wb") as file:
        kind = COMPRESSION.get(suffix.lower())
        if kind is None:
            yield file
            return
        with pa.PythonFile(file, mode="w") as raw, pa.CompressedOutputStream(raw, kind) as stream:
            yield stream


def _write(file: IO[bytes], texts: Iterable[str]) -> None:
    file.write("".join(texts).encode("utf-8", "surrogatepass"))


def _copy_lines(opened: IO[bytes], name: str, file: IO[bytes], rows: _Rows, columns: Columns, is_first: bool) -> None:
    for _, lines in line_lists(opened, name, LONGEST_RECORD, refuse=True):
        _write(file, (f"{line}\n" for line, stays in zip(lines, rows.next(len(lines)), strict=True) if stays))


def _copy_records(opened: IO[bytes], name: str, file: IO[bytes], rows: _Rows, columns: Columns, is_first: bool) -> None:
    for _, lines in line_lists(opened, name, LONGEST_RECORD, refuse=True):
        filled = [line for line in lines if line and not line.isspace()]
        _write(file, (f"{line}\n" for line, stays in zip(filled, rows.next(len(filled)), strict=True) if stays))


def _copy_csv(opened: IO[bytes], name: str, file: IO[bytes], rows: _Rows, columns: Columns, is_first: bool) -> None:
    with table_of_csv(opened, name, columns) as (found, delimiter):
        _copy_cells((cells for _, cells in found), name, file, rows, delimiter, is_first)


def _copy_tsv(opened: IO[bytes], name: str, file: IO[bytes], rows: _Rows, columns: Columns, is_first: bool) -> None:
    lists = line_lists(opened, name, LONGEST_RECORD, refuse=True)
    found = split_tabs(chain.from_iterable(lines for _, lines in lists))
    _copy_cells((cells for _, cells in found), name, file, rows, "\t", is_first)


class _Sink:
    """Output of the csv writer, as bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        """Write a row."""
        _write(self._file, [text])


def _copy_cells(
    found: Iterator[list[str]], name: str, file: IO[bytes], rows: _Rows, delimiter: str, is_first: bool
) -> None:
    table = csv.writer(_Sink(file), delimiter=delimiter, lineterminator="\n")
    header = next((cells for cells in found if cells), [])
    rows.check_header(header, name)
    if is_first and header:
        table.writerow(header)
    for cells in found:
        if cells and not (len(header) == 1 and cells[0].isspace()) and rows.next(1)[0]:
            table.writerow(cells)


def _copy_parquet(files: Sequence[Any], output: Path, rows: _Rows) -> None:
    import pyarrow.parquet as pq

    writer: Any = None
    schema: Any = None
    try:
        for path in files:
            with open_file(path) as opened, opened_parquet(opened, str(path), ()) as parquet:
                rows.check_header(parquet.schema_arrow.names, str(path))
                schema = schema or parquet.schema_arrow
                if parquet.schema_arrow.types != schema.types:
                    fail(str(path), "its columns have other types than those of the first file")
                writer = writer or pq.ParquetWriter(output, schema, compression="zstd")
                size = sum(group.total_byte_size for group in groups_of(parquet))
                for batch in parquet.iter_batches(batch_rows(parquet.metadata.num_rows, size)):
                    writer.write_batch(batch.filter(pa.array(rows.next(batch.num_rows))))
    finally:
        if writer is not None:
            writer.close()


_COPIERS = {".csv": _copy_csv, ".tsv": _copy_tsv, ".jsonl": _copy_records}
