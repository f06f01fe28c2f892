"""Sources of a corpus: files, folders, patterns, standard input, strings, the hub, or several of these."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from selfsent.data.corpus.batch import Batch, Columns
from selfsent.data.corpus.failure import fail
from selfsent.data.corpus.formats import READERS, format_of, read_file, read_text
from selfsent.data.corpus.hub import HubDataset
from selfsent.data.corpus.memory import is_table, read_memory, read_texts
from selfsent.data.corpus.remote import RemoteFile, find_remote, is_address, local_path, path_of, protocol_of, shown
from selfsent.data.corpus.stdlib import NAME as STDLIB, read_stdlib, stdlib_files, stdlib_identity
from selfsent.errors import SettingsError
from selfsent.naming import names

SourceName = str | Path | Iterable[str | None] | Iterable[Path] | Any
"""Any: a table, such as a DataFrame."""
Sources = Sequence[Mapping[str, Any]]
"""For each source its `source`, and the options of `read_corpus` that differ between them."""
Files = list[Path | RemoteFile]

OPTIONS = ("text_column", "text_columns", "document_column", "label_column", "score_column", "where", "stack")
_TEXTS = {"text_column", "text_columns"}
_POSITIONS = ("first", "second", "third")
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
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


def find_sources(source: SourceName | Sources, common: Mapping[str, Any]) -> list[Source]:
    """Resolve the sources of a corpus, without reading them.

    Args:
        source: as for `read_corpus`.
        common: `OPTIONS` and `metadata_columns`, for all sources that do not override them.

    Raises:
        CorpusError: nothing is there, or nothing that can be read.
        SettingsError: conflicting options.
    """
    known = {"source", *OPTIONS}
    listed = source if isinstance(source, list | tuple) and all(isinstance(each, Mapping) for each in source) else []
    if not any(each.keys() & known for each in listed):  # one source, or rows of a table by the names of columns
        return [replace(_find_source(source), columns=_columns(common))]
    sources = []
    for number, each in enumerate(listed, start=1):
        unknown = each.keys() - known
        if unknown or "source" not in each:
            problem = f"has no {min(unknown)!r}" if unknown else "needs a source"
            raise SettingsError(f"part {number} of the corpus {problem}; it may have source, {', '.join(OPTIONS)}")
        shared = {name: value for name, value in common.items() if not (name in _TEXTS and _TEXTS & each.keys())}
        sources.append(replace(_find_source(each["source"]), columns=_columns({**shared, **each})))
    return sources


def join_sources(sources: Sequence[Source]) -> Source:
    """Concatenate sources; text columns with different names become first, second and third.

    Raises:
        SettingsError: they do not have the same kinds of columns.
    """
    first = sources[0]
    if len(sources) == 1:
        return first
    kinds = [_kinds(source.columns) for source in sources]
    for number, (source, kind) in enumerate(zip(sources, kinds, strict=True), start=1):
        if kind != kinds[0]:
            have = f"part {number} of the corpus, {source.name}, has {kind}, the first one {kinds[0]}"
            raise SettingsError(f"{have}: all parts need the same")
    text_columns = first.columns.kept
    differ = any(source.columns.kept != text_columns for source in sources)
    shared = differ and len(text_columns) == 1 and first.columns.document is not None
    together = (source.columns.texts if shared else source.columns.together for source in sources)
    columns = replace(
        first.columns,
        texts=_POSITIONS[: len(text_columns)] if differ else text_columns,
        where=tuple(dict.fromkeys(each for source in sources for each in source.columns.where)),
        stacked=False,
        merged=False,
        numbered=all(source.columns.numbered for source in sources),
        named=first.columns.texts if len({source.columns.texts for source in sources}) == 1 else (),
        together=tuple(dict.fromkeys(chain.from_iterable(together))),
    )
    known = all(source.identity is not None for source in sources)
    return Source(
        _joined_name([source.name for source in sources]),
        [[source.identity, cache_options(source.columns)] for source in sources] if known else None,
        lambda columns: chain.from_iterable(source.batches() for source in sources),
        _total([source.size for source in sources]),
        columns,
    )


def cache_options(columns: Columns) -> list[object]:
    """Cache key of the columns, as JSON."""
    roles = columns.texts, columns.document, columns.label, columns.score, columns.together, columns.metadata
    return [*roles, columns.where, columns.stacked]


def _columns(options: Mapping[str, Any]) -> Columns:
    one = options.get("text_column", "text")
    one = (one,) if isinstance(one, str) else tuple(one)
    texts = names(options.get("text_columns")) or one
    merge = not options.get("text_columns") and len(one) > 1
    if len(set(texts)) != len(texts) or (len(texts) > len(_POSITIONS) and not merge) or "" in texts or not texts:
        raise SettingsError(f"text columns must be one to three different ones, not {', '.join(texts)}")
    where = tuple(
        (name, tuple(map(str, value if isinstance(value, list | tuple | set | frozenset) else [value])))
        for name, value in (options.get("where") or {}).items()
    )
    document, label, score = (options.get(f"{name}_column") for name in ("document", "label", "score"))
    metadata, stack = options.get("metadata_columns"), bool(options.get("stack"))
    if metadata is not None and (where or stack):
        counted = "rows of the input cannot be counted where some are left out or stacked"
        raise SettingsError(f"{counted}: leave out `metadata_columns`")
    if merge and stack:
        raise SettingsError("several text_column are joined, and stack makes rows of them: give one of the two")
    metadata = None if metadata is None else tuple(dict.fromkeys(names(metadata)))
    together = texts if merge or (stack and document) else ()
    return Columns(texts, document, label, score, where, stack, merge, metadata, together, not (where or stack))


def _kinds(columns: Columns) -> str:
    count = len(columns.kept)
    extra = [name for name in ("document", "label", "score") if getattr(columns, name) is not None]
    return " and ".join([f"{count} text column{'s' if count > 1 else ''}", *extra])


def _joined_name(sources: Sequence[Any]) -> str:
    return ", ".join(map(str, sources[:3])) + (", ..." if len(sources) > 3 else "")


def _total(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _find_source(source: SourceName) -> Source:
    try:
        if isinstance(source, str | Path):
            return _named_source(str(source))
        if is_table(source):
            return Source("a table given from Python", None, lambda columns: read_memory(source, columns))
        rest = iter(source)
        first = next(rest, None)
        texts = chain([first], rest) if rest is source and first is not None else source
        if _is_path(first):
            texts = list(texts)
            if all(map(_is_path, texts)):
                return _files([file for each in texts for file in find_files(str(each))], _joined_name(texts))
    except OSError as error:
        fail(str(error.filename), f"cannot be read: {error.strerror}")
    return Source("texts given from Python", None, lambda columns: read_texts(texts, columns))


def _named_source(name: str) -> Source:
    if name == "-":
        return Source("standard input", None, _read_standard_input)
    if name == STDLIB:
        return Source(STDLIB, [STDLIB, *stdlib_identity()], lambda columns: read_stdlib(stdlib_files()))
    path = Path(name)
    if is_address(name) or os.path.lexists(path) or glob.has_magic(name):
        return _files(find_files(name), shown(name))
    dataset = None if format_of(path) or path.is_absolute() else HubDataset.parse(name)
    if dataset is None:
        fail(name, "no such file or directory")
    if mirrored := dataset.mirrored():
        return _files([mirrored], name)
    return Source(name, [dataset.name, dataset.config, dataset.split], dataset.read)


def find_files(name: str) -> Files:
    """The files that a name means, local or remote: one, all of known kinds in a folder, or all of a pattern.

    Raises:
        CorpusError: there are none, or one of them is of an unknown kind.
    """
    files: Files
    path = path_of(name)
    if is_address(name) and local_path(name) is None:
        files = [*find_remote(name, lambda file: bool(format_of(file)))]
    elif path.is_dir():
        files = [*_files_in(path)]
    elif os.path.lexists(path) or not glob.has_magic(str(path)):
        if not path.exists():
            fail(str(path), "no such file or directory")
        files = [path]
    else:
        matches = map(Path, sorted(glob.glob(str(path), recursive=True)))  # noqa: PTH207, a pattern may be absolute
        files = [match for match in matches if match.is_file()]
        if not files:
            fail(name, "no file matches this pattern")
    for file in files:
        if file.suffix.lower() in _SPREADSHEETS:
            fail(str(file), "a spreadsheet: save it as .csv (UTF-8), and read that")
        if file.is_file() and not format_of(file):
            fail(str(file), f"unknown kind of file; known are {_KNOWN}")
    return files


def _files_in(root: Path) -> list[Path]:
    """All files of known kinds in a folder, sorted, without hidden ones."""
    files: list[Path] = []
    seen = {root.resolve()}  # a link may lead back up
    for folder, folders, inside in os.walk(root, onerror=_raise, followlinks=True):
        targets = {name: Path(folder, name).resolve() for name in sorted(folders) if not name.startswith(".")}
        folders[:] = [name for name, target in targets.items() if target not in seen]
        seen |= set(targets.values())
        files += [Path(folder, name) for name in inside if not name.startswith(".") and format_of(Path(name))]
    if not files:
        fail(str(root), f"no text in this folder; known are {_KNOWN}")
    return sorted(files)


def _raise(error: OSError) -> None:
    raise error


def _is_path(item: object) -> bool:
    """Whether an item of a list is a file rather than a sentence: a Path, or text that ends or exists like a file."""
    if not isinstance(item, str):
        return isinstance(item, Path)
    # An address of the web alone may be a text; an address of another protocol hardly is.
    remote = is_address(item) and protocol_of(item) not in ("http", "https") and len(item.split()) == 1
    if remote or format_of(Path(item)):
        return True
    try:
        return Path(item).exists()
    except (OSError, ValueError):  # Sentences can be too long for a path, or hold NUL.
        return False


def _files(files: Files, name: str) -> Source:
    states, sizes = zip(*map(_state_of, files), strict=True)
    identity = None if None in states else states
    return Source(name, identity, lambda columns: _read_files(files, columns), _total(sizes))


def _state_of(file: Path | RemoteFile) -> tuple[Sequence[Any] | None, int | None]:
    """State of a file, as JSON, that changes with its content, and its bytes; None if unknown, as for a pipe."""
    if isinstance(file, RemoteFile):
        return file.state, file.size
    about = file.stat()
    known = (str(file.resolve()), about.st_size, about.st_mtime_ns), about.st_size
    return known if file.is_file() else (None, None)


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
