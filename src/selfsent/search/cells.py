"""Many vectors, and where to look for those near another: in the cells of an inverted file of faiss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError, SettingsError

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]

MOST_CELLS, POINTS = 4096, 64
"""Cells at most, and vectors for each of them that decide where its centre lies: memory for these is bounded."""
NEAREST = 10
"""Neighbours of a vector that the recall asks for."""
SAMPLE = 256
"""Vectors whose neighbours are also found exactly, to see what the index misses."""
_SAME = 1e-5
"""Rounding errors between two ways to compute a cosine of 16-bit vectors."""


class Cells:
    """Vectors of length 1 in 16 bits, each in the cell of the centre that is nearest to it.

    A search compares a query with the vectors of the nearest cells. Cosines are those of the stored vectors, within
    0.0001 of float32; what lies in other cells is missed.

    Args:
        index: an inverted file of faiss with half-precision vectors.
    """

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def around(cls, sample: Vectors, rows: int, seed: int = 0) -> Cells:
        """No vectors yet, in cells around the centres of a sample.

        Args:
            sample: (m, d) of length 1, at random from those that will be added; see `wanted`.
            rows: how many will be added.
            seed: of the centres.

        Raises:
            SettingsError: faiss is not installed.
        """
        faiss = require_index()
        size = sample.shape[1]
        index = faiss.IndexIVFScalarQuantizer(
            faiss.IndexFlatIP(size),
            size,
            min(_cells(rows), len(sample)),
            faiss.ScalarQuantizer.QT_fp16,
            faiss.METRIC_INNER_PRODUCT,
            False,  # vectors, not what is left of them beside the centre: so they can be read back as they are
        )
        index.cp.seed = seed + 1
        index.cp.max_points_per_centroid = POINTS
        index.cp.min_points_per_centroid = 1  # of fewer than 39 vectors a cell faiss warns
        index.train(sample)
        return cls(index)

    @classmethod
    def read(cls, path: Path, mapped: bool = True) -> Cells:
        """From a file; `mapped` leaves the vectors on disk, and nothing can be added then.

        Raises:
            SettingsError: faiss is not installed.
            DataError: it is no such file.
        """
        faiss = require_index()
        try:
            found = cls(faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0))
            _ = found._index.invlists, found._index.sq  # which only this kind has
        except (RuntimeError, AttributeError) as error:
            raise DataError(f"{path} is damaged, or no index of selfsent: make it again") from error
        return found

    def write(self, path: Path) -> None:
        """Into a file."""
        require_index().write_index(self._index, str(path))

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def size(self) -> int:
        """Numbers of a vector."""
        return int(self._index.d)

    @property
    def count(self) -> int:
        """How many cells there are."""
        return int(self._index.nlist)

    @property
    def probed(self) -> int:
        """How many cells a search looks into."""
        return int(self._index.nprobe)

    @probed.setter
    def probed(self, count: int) -> None:
        self._index.nprobe = count

    def add(self, vectors: Vectors, rows: Rows | None = None) -> None:
        """Add vectors (n, d) of length 1, under the next numbers, or those given (n,)."""
        if rows is None:
            self._index.add(vectors)
        else:
            self._index.add_with_ids(vectors, rows)

    def search(self, queries: Vectors, top: int) -> tuple[Vectors, Rows]:
        """Cosines and rows (q, top) of what is nearest, best first; row -1 where the cells hold fewer."""
        cosine, rows = self._index.search(queries, top)
        return cosine, rows.astype(np.int64, copy=False)

    def parts(self) -> Iterator[tuple[Rows, Vectors]]:
        """The rows (n,) and vectors (n, d) of each cell that has any."""
        faiss = require_index()
        lists = self._index.invlists
        for cell in range(self.count):
            if count := lists.list_size(cell):
                codes, ids = lists.get_codes(cell), lists.get_ids(cell)
                stored = faiss.rev_swig_ptr(codes, count * lists.code_size).view(np.float16)
                rows = faiss.rev_swig_ptr(ids, count).astype(np.int64)
                vectors = stored.reshape(count, self.size).astype(np.float32)
                lists.release_codes(cell, codes)
                lists.release_ids(cell, ids)
                yield rows, vectors

    def take(self, rows: Rows) -> Vectors:
        """The vectors (n, d) of some rows (n,), in ascending order; all cells are gone through."""
        found = np.empty((len(rows), self.size), np.float32)
        for numbers, vectors in self.parts():
            here = np.isin(numbers, rows)
            found[np.searchsorted(rows, numbers[here])] = vectors[here]
        return found

    def tune(self, wanted: float, seed: int = 0, advance: Callable[[int], None] = lambda count: None) -> float:
        """Have searches look into as few cells as find the share `wanted` of the nearest neighbours; the share found.

        The `NEAREST` neighbours of `SAMPLE` random vectors are found by comparing these with all others, and then by
        searching 1, 2, 4, ... cells. All cells find everything.

        Args:
            wanted: 0 to 1.
            seed: of the sample.
            advance: called with the number of vectors compared since the last call; there are `len(self)`.
        """
        sample = np.sort(np.random.default_rng(seed).permutation(len(self))[:SAMPLE])
        queries, top = self.take(sample), min(NEAREST, len(self) - 1)
        if not top:
            self.probed = 1
            return 1.0
        last = _farthest(queries, sample, top, self.parts(), advance)
        for probed in (*(1 << power for power in range(self.count.bit_length())), self.count):
            self.probed = min(probed, self.count)
            cosine, rows = self.search(queries, top + 1)
            near = (cosine >= last[:, None] - _SAME) & (rows >= 0) & (rows != sample[:, None])
            recall = float(np.minimum(near.sum(1), top).mean()) / top
            if recall >= wanted:
                break
        return recall


def wanted(rows: int) -> int:
    """How many vectors of so many `Cells.around` should see."""
    return min(rows, POINTS * _cells(rows))


def _cells(rows: int) -> int:
    return max(1, min(4 * int(rows**0.5), rows // 39, MOST_CELLS))


def _farthest(
    queries: Vectors, own: Rows, top: int, parts: Iterable[tuple[Rows, Vectors]], advance: Callable[[int], None]
) -> Vectors:
    """The cosine (q,) of the last of the `top` nearest neighbours of each query, which is row `own` itself."""
    best = np.full((len(queries), top), -np.inf, np.float32)
    for rows, vectors in parts:
        cosine = queries @ vectors.T
        cosine[own[:, None] == rows] = -np.inf
        best = np.hstack([best, cosine])
        if best.shape[1] > top:
            best = np.partition(best, best.shape[1] - top, axis=1)[:, -top:]
        advance(len(rows))
    return np.asarray(best.min(1))


def require_index() -> Any:
    """The library of the index.

    Raises:
        SettingsError: it is not installed.
    """
    try:
        import faiss
    except ImportError:
        raise SettingsError(
            "an index needs faiss: pip install 'selfsent[index]'; pairs without --approximate and search without"
            " --index need none"
        ) from None
    return faiss
