"""Nearest neighbours among many vectors: an inverted file (IVF) of faiss."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from selfsent.errors import DataError, SettingsError, install

Bits = Literal["float16", "int8"]
Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]

MAX_LISTS, POINTS = 4096, 64
"""Maximum number of lists, and training vectors per list: they bound the memory of training."""
NEIGHBOURS, SAMPLE = 10, 256
"""Neighbours and sample size of the recall."""
_ITERATIONS, _MOST_POINTS = 20, 256
"""Iterations of k-means, and maximum number of vectors for each of its centroids."""
_SAME = 1e-5
"""Rounding error between two computations of the cosine of 16-bit vectors."""


class IVF:
    """Inverted file of unit vectors: a search visits some lists, and misses neighbours in others.

    Cosines are of the stored vectors, in 16 bits within 0.0001 of float32, in 8 bits within 0.01.

    Args:
        index: of faiss.
    """

    def __init__(self, index: Any) -> None:
        self._index = index
        self.nprobe = 1
        """Number of lists visited by a search."""

    @classmethod
    def trained(cls, sample: Vectors, rows: int, seed: int = 0, precision: Bits = "float16") -> IVF:
        """A trained, empty index.

        Args:
            sample: (m, d) unit vectors, a random sample of the vectors to add; see `training_rows` for m.
            rows: number of vectors to add.
            seed: of the centroids.
            precision: of the vectors.

        Raises:
            SettingsError: faiss is not installed.
        """
        faiss, size = require_faiss(), sample.shape[1]
        centroids = centroids_of(sample, min(_lists(rows), len(sample)), seed)
        quantizer, kinds = faiss.IndexFlatIP(size), faiss.ScalarQuantizer
        quantizer.add(centroids)
        bits = kinds.QT_8bit if precision == "int8" else kinds.QT_fp16
        # False: vectors instead of residuals to the centroid, so that they can be read back unchanged.
        how = len(centroids), bits, faiss.METRIC_INNER_PRODUCT, False
        index = faiss.IndexIVFScalarQuantizer(quantizer, size, *how)
        index.train(sample)  # the range of each dimension
        return cls(index)

    @classmethod
    def read(cls, path: Path, mapped: bool = True) -> IVF:
        """Read a file; if `mapped`, vectors stay on disk and nothing can be added.

        Raises:
            SettingsError: faiss is not installed.
            DataError: another kind of file.
        """
        faiss = require_faiss()
        try:
            found = cls(faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0))
            _ = found._index.invlists, found._index.sq  # attributes of this kind of index alone
        except (RuntimeError, AttributeError) as error:
            raise DataError(f"{path} is damaged, or no index of selfsent: make it again") from error
        return found

    def write(self, path: Path) -> None:
        """Write a file; vectors can be taken from it."""
        self._index.make_direct_map()
        require_faiss().write_index(self._index, str(path))

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def nlist(self) -> int:
        """Number of lists."""
        return int(self._index.nlist)

    def add(self, vectors: Vectors, rows: Rows) -> None:
        """Add unit vectors (n, d) under row numbers (n,)."""
        self._index.add_with_ids(vectors, rows)

    def search(self, queries: Vectors, top: int, selector: Any = None, share: float = 1.0) -> tuple[Vectors, Rows]:
        """Cosines and rows (q, top) of the nearest, best first; row -1 if the lists hold fewer.

        Args:
            queries: (q, d) of length 1.
            top: rows per query.
            selector: of the allowed rows, from `selector`; None for all.
            share: of the selected rows; more lists are visited for a smaller share.
        """
        nprobe = self.nprobe if selector is None else int(self.nprobe / max(share, 1e-9)) + 1
        only = {} if selector is None else {"sel": selector}
        how = require_faiss().SearchParametersIVF(nprobe=min(self.nlist, nprobe), **only)
        cosine, rows = self._index.search(queries, top, params=how)
        return cosine, rows.astype(np.int64, copy=False)

    @staticmethod
    def selector(mask: NDArray[np.bool_]) -> Any:
        """A selector of the rows where a mask (n,) is true, for `search`."""
        return require_faiss().IDSelectorBitmap(np.packbits(mask, bitorder="little"))

    def take(self, rows: Rows) -> Vectors:
        """The vectors (n, d) of rows (n,), where all rows of an index are 0, 1, 2, ..."""
        if self._index.direct_map.no():  # an index from a file has one, and threads may share it
            self._index.make_direct_map()
        return np.asarray(self._index.reconstruct_batch(rows), np.float32)

    def emptied(self) -> IVF:
        """This index in memory without its vectors; the trained lists stay."""
        self._index.reset()
        self._index.set_direct_map_type(require_faiss().DirectMap.NoMap)
        return self

    def tune(self, recall: float, sample_size: int = SAMPLE) -> float:
        """Set `nprobe` to the smallest, within an eighth, with this recall of a sample's neighbours.

        Args:
            recall: the minimum, 0 to 1.
            sample_size: number of vectors whose neighbours are searched.

        Returns:
            The recall.
        """
        sample = np.sort(np.random.default_rng(0).permutation(len(self))[:sample_size])
        queries, top = self.take(sample), min(NEIGHBOURS, len(self) - 1)
        self.nprobe = self.nlist
        if not top:
            return 1.0
        cosine, rows = self.search(queries, top + 1)
        # The vector itself ranks first, or anywhere among equals.
        last = np.where((rows == sample[:, None]).any(1), cosine[:, -1], cosine[:, -2])

        def recall_of(nprobe: int) -> float:
            self.nprobe = nprobe
            cosine, rows = self.search(queries, top + 1)
            near = (cosine >= last[:, None] - _SAME) & (rows >= 0) & (rows != sample[:, None])
            return float(np.minimum(near.sum(1), top).mean()) / top

        low, high = 0, 1
        while (found := recall_of(high)) < recall and high < self.nlist:
            low, high = high, min(2 * high, self.nlist)
        while high - low > max(1, high // 8):
            middle = (low + high) // 2
            if (of_middle := recall_of(middle)) >= recall:
                high, found = middle, of_middle
            else:
                low = middle
        self.nprobe = high
        return found


def training_rows(rows: int) -> int:
    """The sample size for `IVF.trained`."""
    return min(rows, POINTS * _lists(rows))


def _lists(rows: int) -> int:
    return max(1, min(4 * int(rows**0.5), rows // 39, MAX_LISTS))


def centroids_of(sample: Vectors, count: int, seed: int) -> Vectors:
    """Centroids (count, d) by k-means of two levels: of the sample, and of each of the √count groups that it makes.

    One level compares every vector with every centroid, which took fourteen times as long for 1,264 lists.
    """
    top = _k_means(sample, round(count**0.5), seed)
    groups = top.search(sample, 1)[1].ravel()
    ends = np.bincount(groups, minlength=top.ntotal).cumsum() * count // len(sample)
    found = []
    for group, size in enumerate(np.diff(ends, prepend=0).tolist()):
        if size:
            found.append(_k_means(sample[groups == group], size, seed).reconstruct_n(0, size))
    return np.concatenate(found)


def _k_means(sample: Vectors, count: int, seed: int) -> Any:
    """Spherical k-means: an index of faiss with the centroids."""
    faiss, size = require_faiss(), sample.shape[1]
    clustering, found = faiss.Clustering(size, count), faiss.IndexFlatIP(size)
    clustering.spherical, clustering.niter, clustering.seed = True, _ITERATIONS, seed + 1
    clustering.min_points_per_centroid = 1  # faiss warns below 39
    clustering.max_points_per_centroid = _MOST_POINTS
    clustering.train(sample, found)
    return found


def require_faiss() -> Any:
    """Import faiss.

    Raises:
        SettingsError: not installed.
    """
    try:
        import faiss
    except ImportError:
        others = "selfsent pairs without --approximate and selfsent search without --index need none"
        raise SettingsError(f"an index of many texts needs faiss: {install('index')}; {others}") from None
    return faiss
