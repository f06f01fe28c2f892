"""Brings a collection in a database to the state of an index: only what differs is sent."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from selfsent.errors import SettingsError
from selfsent.index import Index
from selfsent.index.scan import Row
from selfsent.progress import SILENT, Progress
from selfsent.push.target import (
    DIGEST,
    KEY,
    LENGTH,
    NUMBERS,
    OWN,
    REPEATS,
    TEXT,
    WEIGHTS,
    Address,
    Record,
    Target,
    told,
)

DRIFT = 0.01
"""Share by which the mean length of texts may move before the weights of all words are sent again."""


class Pushed(NamedTuple):
    """Counts of rows: new, changed, deleted, and those that were there as they are."""

    new: int
    changed: int
    deleted: int
    kept: int


def push(
    index: Index,
    target: Target,
    address: Address,
    texts: bool = False,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> Pushed:
    """Write the rows that a collection lacks or holds otherwise, and delete those that the index has no more.

    The collection itself says what it holds, so a push that was stopped goes on where it was. It takes some 50 bytes
    of memory a row.

    Args:
        index: with the rows.
        target: the collection.
        address: of the collection, for errors.
        texts: whether texts go with them.
        overwrite: also delete the rows of another index.
        progress: receives the number of rows done.

    Raises:
        SettingsError: the collection holds rows of another index alone, or the index has a column with a name of ours.
        OutputError: the database cannot be reached or refuses.
    """
    if taken := sorted({*OWN, NUMBERS, WEIGHTS} & index.columns.keys()):
        raise SettingsError(f"{index.path} has a column {taken[0]!r}, as every pushed row has: rename it")
    with index.snapshot(), told(target, address):
        keys = index.keys()
        held = np.fromiter(target.stamps(), [(KEY, np.int64), (DIGEST, np.int64), (LENGTH, np.float64)])
        held.sort(order=KEY)
        gone = np.setdiff1d(held[KEY], keys)
        if len(held) and len(gone) == len(held) and not overwrite:
            problem = f"{address} holds {len(held):,} rows of another index, which would be deleted"
            raise SettingsError(f"{problem}: name another collection, or give `overwrite`")
        length = mean_length_of(index.mean_length, float(held[LENGTH][0]) if len(held) else None)
        columns = {name: kind for name, kind in index.columns.items() if name != TEXT}
        if index.id_column is not None:
            columns.pop("row")  # it moves when an index is made again, and the id does not
        if (size := target.size()) is None:
            target.create(index.size, columns)
        elif size != index.size:
            raise SettingsError(f"{address} holds vectors of {size} numbers, not {index.size}: name another collection")
        new = changed = 0
        count = progress.counting("pushing", len(keys))
        for rows in index.scan(length, target.together):
            records = [record_of(row, length, texts) for row in rows]
            own, digests = (np.array([each.fields[name] for each in records], np.int64) for name in (KEY, DIGEST))
            places = np.minimum(np.searchsorted(held[KEY], own), max(0, len(held) - 1))
            known = held[KEY][places] == own if len(held) else np.zeros(len(own), bool)
            moved = known & (held[DIGEST][places] != digests) if len(held) else known
            added = [each for each, old in zip(records, known, strict=True) if not old]
            other = [each for each, differs in zip(records, moved, strict=True) if differs]
            if added or other:
                target.upsert(added, other)
            new, changed = new + len(added), changed + len(other)
            count(len(rows))
        for part in _parts(gone.tolist(), target.together):
            target.delete(part)
        target.finish()  # also where nothing was sent: an earlier push may have been stopped just before
    return Pushed(new, changed, len(gone), len(keys) - new - changed)


def mean_length_of(now: float, held: float | None) -> float:
    """The mean length of texts that weights have: the one in the database while it is right within `DRIFT`.

    Every addition moves it a little, and it is in the weight of every word.
    """
    return now if held is None or abs(now - held) > DRIFT * held else held


def record_of(row: Row, length: float, texts: bool) -> Record:
    """A row as a database gets it."""
    fields = {**row.columns, TEXT: row.text if texts else None}
    told_of = repr((sorted(fields.items()), row.repeats, length, sorted(row.terms.items()))).encode()
    digest = int.from_bytes(blake2b(told_of + row.vector.tobytes(), digest_size=8).digest()) >> 1
    own = {KEY: row.key, DIGEST: digest, LENGTH: length, REPEATS: row.repeats}
    return Record({**own, **fields}, row.vector, row.words, row.terms)


def _parts(keys: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]
