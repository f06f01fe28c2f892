"""Output to files, or to standard output as `-`."""

from __future__ import annotations

import glob
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from selfsent.errors import OutputError, SettingsError

STANDARD_OUTPUT = "-"


def check_outputs(files: Mapping[str, str | None], read: Sequence[str | None] = ()) -> None:
    """Reject files that cannot be written, before any slow work.

    Args:
        files: flag -> file, `-` or None.
        read: inputs: files, directories, patterns, or None.

    Raises:
        SettingsError: two results in one file, or a result that would replace an input.
        OutputError: a file that is a directory, or cannot be created.
    """
    taken: dict[str, str] = {}
    for flag, file in files.items():
        if file is None:
            continue
        if not file:
            raise SettingsError(f"{flag} is empty: name a file")
        if file != STANDARD_OUTPUT and any(_is_read(Path(file).resolve(), source) for source in read if source):
            raise SettingsError(f"{flag} would replace {file}, which is read: name another file")
        target = file if file == STANDARD_OUTPUT else str(Path(file).resolve())
        if target in taken:
            where = "standard output" if file == STANDARD_OUTPUT else file
            raise SettingsError(f"{taken[target]} and {flag} cannot both go to {where}: name another file for one")
        taken[target] = flag
    from selfsent.files import check_file

    for path in (Path(file) for file in files.values() if file and file != STANDARD_OUTPUT):
        check_file(path)
        parent = next(parent for parent in path.absolute().parents if parent.exists())
        if not parent.is_dir():
            raise OutputError(f"{path} cannot be written: {parent} is a file")
        try:
            tempfile.TemporaryFile(dir=parent).close()
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error


def _is_read(file: Path, source: str) -> bool:
    """Whether a file exists and belongs to a source."""
    if not file.is_file():
        return False
    from selfsent.data.corpus.formats import format_of
    from selfsent.data.corpus.remote import path_of

    source = str(path_of(source))
    if file == Path(source).resolve():
        return True

    if not format_of(file):  # not read as text
        return False
    named = [Path(source), *map(Path, glob.glob(source, recursive=True))]  # noqa: PTH207 — patterns may be absolute
    return any(file == path.resolve() or path.resolve() in file.parents for path in named)


def as_line(plain: Any) -> str:
    """Plain data as a line of JSON."""
    return json.dumps(plain, ensure_ascii=False) + "\n"


def write_outputs(contents: Mapping[str | None, Callable[[], str]]) -> bool:
    """Write each text to its file; returns whether one went to standard output, which then gets nothing else.

    Args:
        contents: file, `-` or None -> function that returns its text.

    Raises:
        OutputError: a file cannot be written.
    """
    from selfsent.files import write_text

    for file, text in contents.items():
        if file is not None and file != STANDARD_OUTPUT:
            write_text(Path(file), text())
    if STANDARD_OUTPUT in contents:
        shown = contents[STANDARD_OUTPUT]()
        if (buffer := getattr(sys.stdout, "buffer", None)) is None:
            sys.stdout.write(shown)
        else:  # UTF-8 as in a file, whatever the terminal's encoding
            sys.stdout.flush()
            buffer.write(shown.encode("utf-8", "backslashreplace"))
            buffer.flush()
    return STANDARD_OUTPUT in contents
