"""Cached directories, written once, with checksums of their files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from selfsent.files import atomic_directory, cache_folder, read_json
from selfsent.integrity import checksums, damaged, warn_damaged

_SUMS = "sums.json"


def cached_directory(kind: str, identity: str, files: tuple[str, ...], write: Callable[[Path], None]) -> Path:
    """The cached directory of an identity, written if its files are missing or damaged.

    Args:
        kind: a folder of the cache.
        identity: everything the content depends on.
        files: required names; all files have checksums.
        write: fills an empty directory, which is then moved into the cache.

    Raises:
        OutputError: it cannot be written.
    """
    digest = hashlib.blake2b(identity.encode(errors="surrogateescape"), digest_size=8).hexdigest()
    path = cache_folder() / kind / digest
    if path.is_dir():
        sums = read_json(path / _SUMS)
        if sums.keys() >= set(files) and damaged(path, sums) is None:
            return path
        warn_damaged(path)
    with atomic_directory(path) as folder:
        write(folder)
        sums = checksums(folder, sorted(each.name for each in folder.iterdir()))
        (folder / _SUMS).write_text(json.dumps(sums))
    return path
