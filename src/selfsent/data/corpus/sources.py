"""What a user may name as a corpus: files, folders, patterns, standard input, strings, the hub, the library."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from selfsent.data.corpus.batch import Batch, Columns
from selfsent.data.corpus.formats import READERS, format_of, read_file, read_text
from selfsent.data.corpus.hub import HubDataset
from selfsent.data.corpus.memory import is_table, read_memory, read_texts
from selfsent.data.corpus.remote import (
    RemoteFile,
    find_remote,
    flattened,
    is_address,
    local_path,
    path_of,
    protocol_of,
    shown,
)
from selfsent.data.corpus.stdlib import NAME as STDLIB
from selfsent.data.corpus.stdlib import read_stdlib, stdlib_files, stdlib_identity
from selfsent.data.corpus.streams import fail

SourceName = str | Path | Iterable[str | None] | Iterable[Path] | Any
"""Any: a table, such as a DataFrame."""

Files = list[Path | RemoteFile]

_KNOWN = f"{', '.join(READERS)}, each also with .gz, .zst or .bz2"
_PROBED, _PROBED_REMOTE = 200, 8
"""Files after the first that are probed before anything is read."""


@dataclass(frozen=True)
class Source:
    """A source of rows, and the columns to read."""

    name: str
    identity: Any
    """Cache key of the contents, as JSON; None if unknown before reading."""
    read: Callable[[Columns], Iterator[Batch]]
    size: int | None = None
    """Bytes on disk; None if the source is not a set of files."""
    columns: Columns = field(default_factory=Columns)
    """Columns to read."""

    def batches(self) -> Iterator[Batch]:
        """Read the columns."""
        return self.read(self.columns)


def find_source(source: SourceName) -> Source:
    """Resolve what a user named, without reading it.

    Raises:
        CorpusError: nothing is there, or nothing that can be read.
    """
    try:
        if isinstance(source, str | Path):
            return _by_name(str(source))
        if is_table(source):
            return Source("a table given from Python", None, lambda columns: read_memory(source, columns))
        source, begins_with_path = _looked_into(source)
        if begins_with_path and all(map(_is_path, items := list(source))):
            return _files([file for item in items for file in find_files(str(item))], named(map(str, items)))
        texts = items if begins_with_path else source
    except OSError as error:
        fail(str(error.filename), f"cannot be read: {error.strerror}")
    return Source("texts given from Python", None, lambda columns: read_texts(texts, columns))


def named(sources: Iterable[str]) -> str:
    """One name for several sources."""
    several = list(sources)
    return ", ".join(several[:3]) + (", ..." if len(several) > 3 else "")


def total(sizes: Iterable[int | None]) -> int | None:
    """The sum; None where one is not known."""
    known = list(sizes)
    return None if None in known else sum(size for size in known if size is not None)


def _looked_into(source: Iterable[Any]) -> tuple[Iterable[Any], bool]:
    """The items, and whether the first one is a path; a consumed iterator is chained together again."""
    rest = iter(source)
    first = next(rest, None)
    return chain([first], rest) if rest is source and first is not None else source, _is_path(first)


def _by_name(name: str) -> Source:
    if name == "-":
        return Source("standard input", None, _read_standard_input)
    if name == STDLIB:
        return Source(STDLIB, [STDLIB, *stdlib_identity()], lambda columns: read_stdlib(stdlib_files()))
    path = Path(name)
    if is_address(name) or os.path.lexists(path) or glob.has_magic(name):
        return _files(find_files(name), shown(name))
    dataset = None if format_of(path) or path.is_absolute() else HubDataset.parse(name)
    if dataset is None:
        fail(name, "no such file or directory" + flattened(name))
    mirrored = dataset.mirrored()
    if mirrored is not None:
        return _files([mirrored], name)
    return Source(name, [dataset.name, dataset.config, dataset.split], dataset.read)


def find_files(name: str) -> Files:
    """The files that a name means, here or elsewhere: one, all of known kinds in a folder, or those of a pattern.

    Raises:
        CorpusError: there are none, or one of them is of an unknown kind.
    """
    files: Files
    path = path_of(name)
    if is_address(name) and local_path(name) is None:
        files = [*find_remote(name, lambda file: bool(format_of(file)))]
    elif os.path.lexists(path) or not glob.has_magic(str(path)):
        files = _files_at(path)
    else:
        matches = map(Path, sorted(glob.glob(str(path), recursive=True)))  # noqa: PTH207, a pattern may be absolute
        files = [match for match in matches if match.is_file()]
        if not files:
            fail(name, "no file matches this pattern")
    for file in files:
        if file.is_file() and not format_of(file):
            fail(str(file), f"unknown kind of file; known are {_KNOWN}")
    return files


def _is_path(item: object) -> bool:
    """Whether an item of a list is a file rather than a sentence: a Path, or text that ends or exists like a file."""
    if isinstance(item, str):
        # An address of the web alone may be a text; those of other protocols hardly are.
        elsewhere = is_address(item) and protocol_of(item) not in ("http", "https") and len(item.split()) == 1
        return elsewhere or bool(format_of(Path(item))) or _exists(item)
    return isinstance(item, Path)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # Sentences can be too long for a path, or hold NUL.
        return False


def _files_at(path: Path) -> Files:
    """The file itself, or all files of known kinds under a folder, sorted, hidden ones left out."""
    if not path.is_dir():
        if not path.exists():
            fail(str(path), "no such file or directory" + flattened(str(path)))
        return [path]
    files: list[Path] = []
    seen = {path.resolve()}  # a link may lead back up
    for folder, folders, names in os.walk(path, onerror=_raise, followlinks=True):
        places = {name: Path(folder, name).resolve() for name in sorted(folders) if not name.startswith(".")}
        folders[:] = [name for name, place in places.items() if place not in seen]
        seen |= set(places.values())
        files += [Path(folder, name) for name in names if not name.startswith(".") and format_of(Path(name))]
    if not files:
        fail(str(path), f"no text in this folder; known are {_KNOWN}")
    return [*sorted(files)]


def _raise(error: OSError) -> None:
    raise error


def _files(files: Files, name: str) -> Source:
    states = [state_of(path) for path in files]
    identity = None if None in states else states
    return Source(name, identity, lambda columns: _read_files(files, columns), total(map(size_of, files)))


def state_of(file: Path | RemoteFile) -> Sequence[Any] | None:
    """Value that changes with the file, as JSON; None if there is none, as for a pipe."""
    if isinstance(file, RemoteFile):
        return file.state
    state = file.stat()
    return (str(file.resolve()), state.st_size, state.st_mtime_ns) if file.is_file() else None


def size_of(file: Path | RemoteFile) -> int | None:
    """Bytes of a file; None if unknown."""
    if isinstance(file, RemoteFile):
        return file.size
    return file.stat().st_size if file.is_file() else None


def _read_files(files: Files, columns: Columns) -> Iterator[Batch]:
    # Finds faults at the start of later files before hours are spent on earlier ones.
    for path in files[1 : _PROBED if isinstance(files[0], Path) else _PROBED_REMOTE]:
        if path.is_file():
            next(islice(read_file(path, columns), 1, None), None)
    for path in files:
        yield from read_file(path, columns)


def _read_standard_input(columns: Columns) -> Iterator[Batch]:
    yield Batch([[] for _ in columns.kept], files=1)
    yield from read_text(sys.stdin.buffer, "standard input", columns)
