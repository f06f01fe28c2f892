"""What a search of an index holds in memory: new vectors, lengths of texts, what is deleted, words asked for."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.lexical.scores import K1, B
from selfsent.search.index_files import IndexFiles, condition

Slots = NDArray[np.int64]
Vectors = NDArray[np.float32]

CANDIDATES = 300
"""Nearest texts by the cosine, and best texts by words, that are candidates of a query."""
FEW = 4096
"""Texts up to this number that a condition leaves are all compared."""
_LARGEST_COSINE = 1.01
"""Upper bound of a cosine in 16 bits."""
_STEP = 16
"""One value in so many is in the sample of `_largest`."""
_HELD, _CONDITIONS = 1 << 26, 64
"""Bytes of postings, and conditions, that stay in memory."""


@dataclass(frozen=True)
class Best:
    """The best texts of a query, (n,) each: slots, cosines, lexical scores, and sums that rank them."""

    slots: Slots
    cosines: Vectors
    words: Vectors
    scores: Vectors


class State:
    """A version of an index, read within one transaction.

    Texts have slots, 0, 1, 2, ...; those of deleted texts stay empty until the index is compacted.

    Args:
        files: of the index.
        db: a connection.

    Raises:
        DataError: the index is damaged.
    """

    def __init__(self, files: IndexFiles, db: sqlite3.Connection) -> None:
        self._files, self._ivf = files, files.ivf
        self.version, self.rows = db.execute("SELECT version, rows FROM state").fetchone()
        blocks = db.execute("SELECT lengths, vectors FROM blocks ORDER BY start").fetchall()
        lengths = np.frombuffer(b"".join(each for each, _ in blocks), np.int32).astype(np.float32)
        tail = np.frombuffer(b"".join(each for _, each in blocks if each is not None), np.float16)
        self._first = 0 if self._ivf is None else len(self._ivf)
        """The first slot whose vector is in the database."""
        if tail.size != (len(lengths) - self._first) * files.size:
            raise files.damaged("its files do not fit")
        self._tail = tail.reshape(-1, files.size).astype(np.float32)
        dead = np.array([slot for (slot,) in db.execute("SELECT slot FROM dead")], np.int64)
        self.alive = np.ones(len(lengths), bool)
        self.alive[dead] = False
        self.dead, self.count = len(dead), len(lengths) - len(dead)
        mean = float(lengths[self.alive].mean()) if self.count else 0.0
        self._room = (K1 * (1 - B + B * lengths / max(mean, 1e-9))).astype(np.float32)
        self._postings: dict[str, tuple[Slots, Vectors]] = {}
        self._held = 0
        self._allowed: dict[tuple[str, ...], tuple[NDArray[np.bool_], Any]] = {}

    def words(self, db: sqlite3.Connection, terms: Sequence[str]) -> Vectors:
        """BM25 of the terms of a query, as `selfsent.lexical.BM25` has it, for each slot."""
        found, total = np.zeros(len(self.alive), np.float32), 0.0
        for term, times in Counter(terms).items():
            slots, weights = self._postings.get(term) or self._read_postings(db, term)
            idf = times * float(np.log1p((self.count - len(slots) + 0.5) / (len(slots) + 0.5)))
            found[slots] += np.float32(idf) * weights
            total += idf
        return found / np.float32(total) if total else found

    def _read_postings(self, db: sqlite3.Connection, term: str) -> tuple[Slots, Vectors]:
        parts = db.execute("SELECT slots, counts FROM postings WHERE term = ? ORDER BY start", (term,)).fetchall()
        slots = np.frombuffer(b"".join(part for part, _ in parts), np.int32)
        counts = np.frombuffer(b"".join(part for _, part in parts), np.uint16).astype(np.float32)
        if len(slots) != len(counts) or slots.max(initial=-1) >= len(self.alive) or slots.min(initial=0) < 0:
            raise self._files.damaged("its words are not as they were written")
        if self.dead:
            kept = self.alive[slots]
            slots, counts = slots[kept], counts[kept]
        found = slots.astype(np.int64), counts / (counts + self._room[slots])
        if self._held > _HELD:
            self._postings, self._held = {}, 0
        self._postings[term] = found
        self._held += 12 * len(slots) + 200
        return found

    def allowed(
        self, db: sqlite3.Connection, where: str | Sequence[str] | None
    ) -> tuple[NDArray[np.bool_] | None, Any]:
        """Slots that a search may find, and faiss' selector of those that it holds; None for all.

        Raises:
            SettingsError: an invalid condition.
        """
        key = (where,) if isinstance(where, str) else tuple(where or ())
        if not key and not self.dead:
            return None, None
        if key not in self._allowed:
            mask = self.alive
            if key:
                clause, values = condition(key, self._files.columns)
                found = db.execute(f"SELECT DISTINCT slot FROM inputs WHERE {clause}", values).fetchall()
                mask = np.zeros(len(self.alive), bool)
                mask[np.array(found, np.int64).ravel()] = True
            if len(self._allowed) >= _CONDITIONS:
                self._allowed = {}
            self._allowed[key] = mask, None if self._ivf is None else self._ivf.selector(mask[: self._first])
        return self._allowed[key]

    def best(
        self, queries: Vectors, words: Sequence[Vectors | None], weight: float, top: int, allowed: tuple[Any, Any]
    ) -> list[Best]:
        """The best texts of each query, best first; the smaller slot among equals.

        Candidates are the nearest by the cosine, the best by words, and all texts with vectors in the database.

        Args:
            queries: (q, d) of length 1.
            words: BM25 of each query for each slot; None to leave it out.
            weight: of the words.
            top: number of texts.
            allowed: from `allowed`.
        """
        mask, selector = allowed
        few = np.flatnonzero(mask) if mask is not None and mask.sum() <= max(FEW, top) else None
        near: Any = (np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64))
        if self._ivf is not None and few is None:
            share = 1.0 if mask is None else float(mask.mean())
            near = self._ivf.search(queries, max(top, CANDIDATES), selector, share)
        found = []
        for query, lexical, known, rows in zip(queries, words, *near, strict=True):
            slots = few
            if slots is None:
                parts = [rows[rows >= 0]]
                if lexical is not None:
                    parts.append(_largest(lexical if mask is None else lexical * mask, max(top, CANDIDATES), 0.0))
                scores = self._tail @ query
                if lexical is not None:
                    scores += np.float32(weight) * lexical[self._first :]
                if mask is not None:
                    scores[~mask[self._first :]] = -np.inf
                parts.append(self._first + _largest(scores, top, -np.inf))
                slots = np.unique(np.concatenate(parts))
            cosines = np.full(len(slots), np.nan, np.float32)
            cosines[np.searchsorted(slots, rows[rows >= 0])] = known[rows >= 0]
            others = np.isnan(cosines)
            cosines[others] = self.take(slots[others]) @ query
            if not (np.abs(cosines) < _LARGEST_COSINE).all():
                raise self._files.damaged("its vectors are not as they were written")
            shared = np.zeros_like(cosines) if lexical is None else lexical[slots]
            scores = cosines + np.float32(weight) * shared
            order = np.argsort(-scores, kind="stable")[:top]
            found.append(Best(slots[order], cosines[order], shared[order], scores[order]))
        return found

    def take(self, slots: Slots) -> Vectors:
        """The vectors (n, d) of ascending slots (n,)."""
        border = int(np.searchsorted(slots, self._first))
        tail = self._tail[slots[border:] - self._first]
        return tail if self._ivf is None or not border else np.concatenate([self._ivf.take(slots[:border]), tail])


def _largest(values: Vectors, count: int, above: float) -> Slots:
    """Positions of the largest values above a bound, in no order."""
    # A sample tells where about the border is, so that few values are put in order.
    sample = values[::_STEP]
    at = 2 * count // _STEP + 8
    likely = np.partition(sample, len(sample) - at)[len(sample) - at] if len(sample) > at else above
    places = np.flatnonzero(values > max(likely, above))
    if len(places) < count and likely > above:
        places = np.flatnonzero(values > above)
    if len(places) > count:
        places = places[np.argpartition(-values[places], count - 1)[:count]]
    return places
