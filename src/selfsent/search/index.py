"""An index on disk: an IVF of vectors and a table with their texts and columns, described by a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.table import MappedTable
from selfsent.display import counted
from selfsent.errors import ONE_STRING, DataError, SettingsError
from selfsent.files import read_json
from selfsent.integrity import damaged
from selfsent.lexical.scores import BUCKETS, WordCounts, check_weight
from selfsent.search.ivf import IVF
from selfsent.search.nearest import Hit, TopHits, rerank_hits
from selfsent.search.vectors import ARROW_TYPES, unit

MANIFEST, VECTORS, ROWS, REPEATS = "index.json", "vectors.faiss", "rows.arrow", "repeats.npy"
FILES = (VECTORS, ROWS, REPEATS)
WORDS = "words.npy"
"""Term ids and document frequencies; missing in older indexes of vectors without texts."""
POSITIONS = ("row", "sentence")
"""Columns with the position of a text in the input."""
VERSION = 1
"""Format version of an index; bump when older ones cannot be read."""
TFIDF_WEIGHT = 0.5
"""Weight of TF-IDF relative to the cosine. An index still ranks by TF-IDF, `search` without an index by BM25."""
RERANKED = 300
"""Nearest texts that are reranked by words: on five tasks within 0.04 of ranking all texts (docs/log)."""
_LARGEST_COSINE = 1.01
"""Upper bound of a cosine in 16 bits."""
_READ_WHOLE = 1 << 27
"""Checksums of an index up to this size in bytes are verified on opening, those of a larger one only before adding."""


class Index:
    """A directory of texts and their vectors, written by `write_index`. Vectors and texts stay on disk.

    Args:
        path: the directory.

    Raises:
        SettingsError: faiss is not installed.
        DataError: no index, a damaged one, or one of another version.

    Example:
        >>> index = Index("tickets.index")  # doctest: +SKIP
        >>> query = "printer does not answer"  # doctest: +SKIP
        >>> [hits] = index.search(model.encode_query([query]), top=3, texts=[query])  # doctest: +SKIP
        >>> index.describe(hit.row for hit in hits)  # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        self.path, self.manifest = path, read_json(path / MANIFEST)
        if not is_index(path):
            what = "does not exist" if not path.exists() else "holds no index"
            raise DataError(f"{path} {what}: make one with selfsent index MODEL CORPUS --output {path}")
        if self.manifest["version"] != VERSION:
            raise DataError(f"{path} was made by another version of selfsent: make the index again")
        try:
            kinds = {kind.__name__: kind for kind in ARROW_TYPES}
            self.columns: dict[str, type] = {name: kinds[kind] for name, kind in self.manifest["columns"].items()}
            self.model, self.fingerprint = str(self.manifest["model"]), str(self.manifest["fingerprint"])
            self.rows, self.recall = int(self.manifest["rows"]), float(self.manifest["recall"])
            self.checksums: dict[str, int] = self.manifest["checksums"]
            self.ivf = IVF.read(path / VECTORS)
            self.ivf.nprobe = int(self.manifest["probed"])
            self.repeats: NDArray[np.int64] = np.load(path / REPEATS, mmap_mode="r", allow_pickle=False)
            if not len(self) == len(self.repeats) == int(self.manifest["vectors"]) == len(self.table):
                raise ValueError("its files do not fit")
        except Exception as error:  # numpy reads a header as Python, so damage raises whatever Python's parser does
            raise self._damaged(error) from error
        if sum((path / name).stat().st_size for name in FILES) <= _READ_WHOLE:
            self.check_files()

    def _damaged(self, why: object) -> DataError:
        return DataError(f"{self.path} is damaged ({why}): make the index again")

    def check_files(self) -> None:
        """Verify the checksums of all files.

        Raises:
            DataError: a file has changed.
        """
        if name := damaged(self.path, self.checksums):
            raise self._damaged(f"{name} is not as it was written")

    def __len__(self) -> int:
        return len(self.ivf)

    @cached_property
    def table(self) -> MappedTable:
        """The columns of each vector."""
        return MappedTable(self.path / ROWS)

    def check_model(self, fingerprint: str, name: str) -> None:
        """Reject an encoder other than the one that made the vectors.

        Raises:
            DataError: it is another one.
        """
        if fingerprint != self.fingerprint:
            same = name == self.model
            what = "as it was before it changed" if same else self.model
            raise DataError(
                f"{self.path} holds vectors of another model ({what}) than {name}, and their cosines say nothing: "
                + ("index the texts again" if same else f"give `model` {self.model}, or index the texts again")
            )

    @cached_property
    def words(self) -> WordCounts | None:
        """Document frequencies of terms; None for an older index without texts.

        Raises:
            DataError: the index is damaged.
        """
        if "text" not in self.columns:
            return None
        frequencies = np.zeros(BUCKETS, np.int32)
        try:
            terms, counts = np.load(self.path / WORDS, allow_pickle=False)
            frequencies[terms] = counts
        except Exception as error:
            raise self._damaged(error) from error
        return WordCounts(frequencies, len(self))

    def search(
        self,
        queries: NDArray[np.float32],
        top: int = 10,
        texts: Sequence[str] | None = None,
        word_weight: float = TFIDF_WEIGHT,
        rerank: Any = None,
        candidates: int | None = None,
    ) -> list[list[Hit]]:
        """The vectors nearest to each query, best first: by cosine, or by cosine + word_weight · words.

        Args:
            queries: (q, d), of any length but 0.
            top: vectors per query.
            texts: of the queries. If given, and the index has texts, the 300 nearest are reranked by words.
            word_weight: of the words.
            rerank: a stronger model that puts the best of these in order, as for `selfsent.search`, with the same
                weight. In a service make it once, by `as_reranker`.
            candidates: of each query, `top` at least; None for 200.

        Raises:
            DataError: the index is damaged, or has no texts to rerank.
            SettingsError: an invalid weight, not one text for each vector, or no model that can rerank.
        """
        check_weight(word_weight)
        if isinstance(texts, str):
            raise SettingsError(ONE_STRING)
        if texts is not None and len(texts) != len(queries):
            raise SettingsError(f"{len(queries)} vectors of queries were given, and {len(texts)} texts of them")
        if rerank is not None:
            from selfsent.evaluation.encoders import as_reranker

            if texts is None:
                raise SettingsError("`rerank` reads the texts of the queries: give `texts`, too")
            if "text" not in self.columns:
                raise DataError(f"{self.path} has no texts to rerank: index the texts again, not their vectors alone")
            reranker = as_reranker(rerank, candidates)
            first = self.search(queries, max(top, reranker.candidates), texts, word_weight)
            return rerank_hits(reranker, texts, first, self, top, word_weight)
        counts = self.words if texts is not None and word_weight else None
        count = min(top if counts is None else max(top, RERANKED), len(self))
        cosines, rows = self.ivf.search(unit(np.ascontiguousarray(queries, np.float32)), count)
        if not (np.abs(cosines[rows >= 0]) < _LARGEST_COSINE).all() or rows.max(initial=-1) >= len(self):
            raise self._damaged("its vectors or row numbers are not as they were written")
        terms: Any = counts.weighed(texts or ()) if counts else None
        found = []
        for number, (near, cosine) in enumerate(zip(rows, cosines, strict=True)):
            near, cosine = near[near >= 0], cosine[near >= 0]
            words = (terms[number] @ counts.weighed(self.texts(near)).T).toarray() if counts else None
            best = TopHits(1, top)
            best.add(near, cosine[None], words, word_weight)
            found += best.hits()
        return found

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        """The texts of vectors (n,), in any order."""
        return self.table.take([*self.columns].index("text"), rows)

    def describe(self, rows: Iterable[int]) -> list[dict[str, Any]]:
        """The columns of each vector, with `repeats` (further rows with the same text) before `text`."""
        numbers = np.fromiter(rows, dtype=np.int64)
        columns = {name: self.table.take(column, numbers) for column, name in enumerate(self.columns)}
        last = {"text": columns.pop("text")} if "text" in columns else {}
        columns |= {"repeats": (np.asarray(self.repeats[numbers]) - 1).tolist()} | last
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    @property
    def summary(self) -> str:
        """Size and recall, in one line."""
        ivf = self.ivf
        compared = "all vectors are" if ivf.nprobe >= ivf.nlist else f"{ivf.nprobe / ivf.nlist:.1%} of them are"
        return (
            f"{counted(len(self), 'vector')} in {self.path}; recall@10 {self.recall:.1%} on a sample, where {compared}"
            " compared with a query"
        )


def is_index(path: Path) -> bool:
    """Whether a directory holds an index of some version."""
    return read_json(path / MANIFEST).get("kind") == "selfsent index"
