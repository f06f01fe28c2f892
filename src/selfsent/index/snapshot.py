"""A snapshot of an index in memory: new vectors, lengths of texts, tombstones, postings; candidates for queries."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.index.conditions import Where, condition
from selfsent.index.files import IndexFiles
from selfsent.index.limits import LIMITS
from selfsent.index.query_map import QueryMap
from selfsent.lexical.bm25 import BM25Stats, Postings, saturated, score_postings
from selfsent.lexical.hybrid import fuse, top_k_unordered

DocIds = NDArray[np.int64]
Vectors = NDArray[np.float32]

_LARGEST_COSINE = 1.01
"""Upper bound of a cosine in 16 bits."""
_HELD, _CONDITIONS = 1 << 26, 64
"""Maximum bytes of postings, and number of conditions, in memory."""


@dataclass(frozen=True)
class Candidates:
    """Candidates of a query, (n,) each, by ascending document id.

    Args:
        doc_ids: of the texts.
        dense: cosines.
        lexical: BM25, 0 to 1; zeros if not computed.
    """

    doc_ids: DocIds
    dense: Vectors
    lexical: Vectors


class Snapshot:
    """A version of an index, read within one transaction.

    Texts have document ids 0, 1, 2, ...; ids of deleted texts are tombstones until the index is compacted.

    Args:
        files: of the index.
        db: a connection.

    Raises:
        DataError: the index is damaged.
    """

    def __init__(self, files: IndexFiles, db: sqlite3.Connection) -> None:
        self._files, self._ivf = files, files.ivf
        self.version, self.rows = db.execute("SELECT version, rows FROM state").fetchone()
        try:
            self.query_map = QueryMap.read(db)
            """The map of queries of another encoder, if there is one."""
        except (ValueError, KeyError, TypeError) as error:
            raise files.damaged(f"its map of queries: {error!r}") from error
        blocks = db.execute("SELECT lengths, vectors FROM blocks ORDER BY start").fetchall()
        lengths = np.frombuffer(b"".join(each for each, _ in blocks), np.int32).astype(np.float32)
        unindexed = np.frombuffer(b"".join(each for _, each in blocks if each is not None), np.float16)
        self._indexed = 0 if self._ivf is None else len(self._ivf)
        """Number of vectors in the IVF, of the first document ids; the others are in the database."""
        if unindexed.size != (len(lengths) - self._indexed) * files.size:
            raise files.damaged("its files do not fit")
        self._unindexed = unindexed.reshape(-1, files.size).astype(np.float32)
        tombstones = np.array([doc_id for (doc_id,) in db.execute("SELECT doc_id FROM tombstones")], np.int64)
        self.alive = np.ones(len(lengths), bool)
        self.alive[tombstones] = False
        self.tombstones, self.count = len(tombstones), len(lengths) - len(tombstones)
        self._stats = BM25Stats.of(lengths[self.alive])
        self._length_norms = self._stats.length_norms(lengths)
        self._postings: dict[str, Postings] = {}
        self._held = 0
        self._allowed: dict[tuple[str, ...], tuple[NDArray[np.bool_], Any]] = {}

    def bm25(self, db: sqlite3.Connection, terms: Sequence[str]) -> Vectors:
        """BM25 of the terms of a query for each document id, (n,), as `selfsent.lexical.BM25` computes it."""
        counted = Counter(terms).items()
        postings = ((self._postings.get(term) or self._read_postings(db, term), times) for term, times in counted)
        return score_postings(self._stats, postings, len(self.alive))

    @property
    def mean_length(self) -> float:
        """Mean number of terms in a text."""
        return self._stats.mean_length

    def query_weights(self, db: sqlite3.Connection, terms: Sequence[str]) -> dict[int, float]:
        """The terms of a query as a sparse vector: its inner product with that of a text is `bm25`."""

        def frequency(term: str) -> int:
            return (self._postings.get(term) or self._read_postings(db, term)).frequency

        return self._stats.query_weights(terms, frequency)

    def _read_postings(self, db: sqlite3.Connection, term: str) -> Postings:
        parts = db.execute("SELECT doc_ids, counts FROM postings WHERE term = ? ORDER BY start", (term,)).fetchall()
        doc_ids = np.frombuffer(b"".join(part for part, _ in parts), np.int32)
        counts = np.frombuffer(b"".join(part for _, part in parts), np.uint16).astype(np.float32)
        if len(doc_ids) != len(counts) or doc_ids.max(initial=-1) >= len(self.alive) or doc_ids.min(initial=0) < 0:
            raise self._files.damaged("its words are not as they were written")
        if self.tombstones:
            kept = self.alive[doc_ids]
            doc_ids, counts = doc_ids[kept], counts[kept]
        weights = saturated(counts, self._length_norms[doc_ids])
        found = Postings.of(doc_ids.astype(np.int64), weights, len(self.alive))
        if self._held > _HELD:
            self._postings, self._held = {}, 0
        self._postings[term] = found
        self._held += found.weights.nbytes + (0 if found.doc_ids is None else found.doc_ids.nbytes) + 200
        return found

    def allowed(self, db: sqlite3.Connection, where: Where) -> tuple[NDArray[np.bool_] | None, Any]:
        """The document ids (n,) that a search may find, as a mask, and the selector of faiss for it; None for all.

        Raises:
            SettingsError: an invalid condition.
        """
        key = (where,) if isinstance(where, str) else tuple(where or ())
        if not key and not self.tombstones:
            return None, None
        if key not in self._allowed:
            mask = self.alive
            if key:
                clause, values = condition(key, self._files.columns)
                found = db.execute(f"SELECT DISTINCT doc_id FROM inputs WHERE {clause}", values).fetchall()
                mask = np.zeros(len(self.alive), bool)
                mask[np.array(found, np.int64).ravel()] = True
            if len(self._allowed) >= _CONDITIONS:
                self._allowed = {}
            self._allowed[key] = mask, None if self._ivf is None else self._ivf.selector(mask[: self._indexed])
        return self._allowed[key]

    def candidates(
        self, queries: Vectors, bm25: Sequence[Vectors | None], weight: float, top: int, allowed: tuple[Any, Any]
    ) -> list[Candidates]:
        """The candidates of each query, among which are its best `top` texts as far as the IVF finds them.

        They are the nearest by the cosine, the best by BM25, and the best by both among the unindexed vectors; all
        texts if few are allowed.

        Args:
            queries: (q, d) of length 1.
            bm25: BM25 of each query for each document id (n,), from `bm25`; None to leave it out.
            weight: of BM25.
            top: number of wanted texts.
            allowed: from `allowed`.
        """
        mask, selector = allowed
        minimum, max_compared = self._files.limits.candidates, self._files.limits.max_compared
        few = np.flatnonzero(mask) if mask is not None and mask.sum() <= max(max_compared, top) else None
        given = [best_by_words(each, weight, top, mask, minimum) if few is None else few for each in bm25]
        asked = [each is None for each in given]
        near: Any = (np.empty((sum(asked), 0), np.float32), np.empty((sum(asked), 0), np.int64))
        if self._ivf is not None and any(asked):
            share = 1.0 if mask is None else float(mask.mean())
            near = self._ivf.search(queries[asked], max(top, minimum), selector, share)
        nearest = zip(*near, strict=True)
        found = []
        for query, lexical, doc_ids in zip(queries, bm25, given, strict=True):
            known, known_cosines = np.empty(0, np.int64), np.empty(0, np.float32)
            if doc_ids is None:
                cosines, rows = next(nearest)
                known, known_cosines = rows[rows >= 0], cosines[rows >= 0]
                parts = [known, self._indexed + self._best_unindexed(query, lexical, weight, top, mask)]
                if lexical is not None:
                    met = lexical if mask is None else lexical * mask
                    parts.append(top_k_unordered(met, max(top, minimum), 0.0))
                doc_ids = np.sort(np.concatenate(parts))
                # NumPy's unique would import its masked arrays.
                doc_ids = doc_ids[np.diff(doc_ids, prepend=-1) > 0]
            dense = np.full(len(doc_ids), np.nan, np.float32)
            dense[np.searchsorted(doc_ids, known)] = known_cosines
            others = np.isnan(dense)
            dense[others] = self.take(doc_ids[others]) @ query
            if not (np.abs(dense) < _LARGEST_COSINE).all():
                raise self._files.damaged("its vectors are not as they were written")
            found.append(Candidates(doc_ids, dense, np.zeros_like(dense) if lexical is None else lexical[doc_ids]))
        return found

    def _best_unindexed(
        self, query: Vectors, lexical: Vectors | None, weight: float, top: int, mask: NDArray[np.bool_] | None
    ) -> DocIds:
        """Places of the best texts among the unindexed vectors, in no order."""
        scores = self._unindexed @ query
        if lexical is not None:
            scores = fuse(scores, lexical[self._indexed :], weight)
        if mask is not None:
            scores[~mask[self._indexed :]] = -np.inf
        return top_k_unordered(scores, top, -np.inf)

    def take(self, doc_ids: DocIds) -> Vectors:
        """The vectors (n, d) of ascending document ids (n,)."""
        border = int(np.searchsorted(doc_ids, self._indexed))
        unindexed = self._unindexed[doc_ids[border:] - self._indexed]
        if self._ivf is None or not border:
            return unindexed
        return np.concatenate([self._ivf.take(doc_ids[:border]), unindexed])


def best_by_words(
    lexical: Vectors | None,
    weight: float,
    top: int,
    mask: NDArray[np.bool_] | None,
    candidates: int = LIMITS.candidates,
) -> DocIds | None:
    """Ascending document ids among which are the best `top` whatever the cosines are; None if these may decide.

    Args:
        lexical: BM25 of each text (n,); None without.
        weight: of BM25.
        top: number of wanted texts.
        mask: texts that may be found (n,); None for all.
        candidates: minimum number of the best by BM25 that are considered.
    """
    margin = 2 * _LARGEST_COSINE / weight if weight else np.inf
    if lexical is None or margin >= 1:
        return None
    allowed = lexical if mask is None else lexical * mask
    found = top_k_unordered(allowed, max(top, candidates), 0.0)
    scores = allowed[found]
    if len(found) < max(top, 1) or (least := np.partition(scores, -top)[-top] - margin) <= 0:
        return None
    if len(found) >= candidates and scores.min() >= least:
        return None
    return np.sort(found[scores >= least])
