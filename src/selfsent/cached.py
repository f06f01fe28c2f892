"""Inventory of the cache folder: tables of text, vectors, word vectors, untrained networks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from selfsent.files import cache_folder, is_half_written, read_json, remove

_KINDS = {
    "corpora": "text",
    "vectors": "vectors",
    "word-vectors": "word vectors",
    "recurrent": "untrained network",
    "titles": "titles of groups",
}
"""Folders of the cache, and their content."""


@dataclass(frozen=True)
class Entry:
    """One file or directory of the cache.

    Args:
        path: its path.
        kind: one of `text`, `vectors`, `word vectors` or `untrained network`.
        source: where a text comes from, as it was given; empty for the rest.
        size: bytes on disk.
        age: seconds since it was last written.
    """

    path: Path
    kind: str
    source: str
    size: int
    age: float

    def is_of(self, source: str) -> bool:
        """Whether the entry holds the text of a source: by its full name, or the name of the file alone."""
        own = Path(self.source)
        return bool(self.source) and (source in (self.source, own.name) or own.resolve() == Path(source).resolve())


def entries(folder: Path | None = None) -> Iterator[Entry]:
    """Inventory of the cache folder, or of another one, the largest first."""
    found = []
    for name, kind in _KINDS.items():
        parent = cache_folder(folder) / name
        for path in parent.iterdir() if parent.is_dir() else ():
            try:
                states = [each.stat() for each in (path, *path.rglob("*"))]
            except FileNotFoundError:  # another process was first
                continue
            about = read_json(path / "corpus.json")
            source = str(about.get("source", "half-written" if is_half_written(path) else ""))
            age = time.time() - max(state.st_mtime for state in states)
            found.append(Entry(path, kind, source, sum(state.st_size for state in states), age))
    yield from sorted(found, key=lambda entry: -entry.size)


def clear(chosen: list[Entry]) -> None:
    """Remove entries; they are made again when they are needed."""
    for entry in chosen:
        remove(entry.path)
