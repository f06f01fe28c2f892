"""Directories of the cache that were made once, with checksums of what they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selfsent.files import atomic_directory, cache_folder, read_json
from selfsent.integrity import checksums, damaged, warn_damaged

_SUMS = "sums.json"


def kept_place(room: str, identity: str) -> Path:
    """Where in the cache something lies that `identity` stands for."""
    digest = hashlib.blake2b(identity.encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return cache_folder() / room / digest


def is_kept(place: Path, *names: str) -> bool:
    """Whether these files are there as `keeping` wrote them; what is damaged is named in a warning."""
    if not place.is_dir():
        return False
    sums = read_json(place / _SUMS)
    if sums.keys() >= set(names) and damaged(place, sums) is None:
        return True
    warn_damaged(place)
    return False


@contextmanager
def keeping(place: Path) -> Iterator[Path]:
    """A directory to fill, which takes this place when the block ends without an error, with checksums of its files.

    Raises:
        OutputError: it cannot be written.
    """
    with atomic_directory(place) as folder:
        yield folder
        sums = checksums(folder, sorted(each.name for each in folder.iterdir()))
        (folder / _SUMS).write_text(json.dumps(sums))
