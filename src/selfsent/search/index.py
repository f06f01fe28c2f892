"""An index on disk: vectors in cells, with their texts and columns beside them; search it without encoding again."""

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
from selfsent.search.cells import Cells
from selfsent.search.nearest import Best, Hit
from selfsent.search.rows import KINDS
from selfsent.search.vectors import unit

ABOUT, VECTORS, ROWS, REPEATS = "index.json", "vectors.faiss", "rows.arrow", "repeats.npy"
FILES = (VECTORS, ROWS, REPEATS)
WORDS = "words.npy"
"""Beside them where there are texts: the numbers of words, and in how many texts each is."""
VERSION = 1
"""Of the files in an index: raise it when older ones cannot be read."""
TFIDF_WEIGHT = 0.5
"""Of TF-IDF beside the cosine: an index ranks by it still, and `search` without an index by BM25."""
ORDERED = 300
"""Texts that words put in order: on five tasks of 820 to 8,600 texts as good as all of them, within 0.04 (docs/log)."""
_LARGEST = 1.01
"""Of a cosine, in 16 bits."""
_READ_WHOLE = 1 << 27
"""Bytes of an index that is looked through when it is opened; a larger one is when something is added to it."""


class Index:
    """Texts with their vectors in a directory, as `write_index` leaves them. Vectors and texts stay on disk.

    Args:
        path: the directory.

    Raises:
        SettingsError: faiss is not installed.
        DataError: there is no index, it is damaged, or of another version.

    Example:
        >>> index = Index("tickets.index")  # doctest: +SKIP
        >>> query = "printer does not answer"  # doctest: +SKIP
        >>> [hits] = index.search(model.encode_query([query]), top=3, texts=[query])  # doctest: +SKIP
        >>> index.told(hit.row for hit in hits)  # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        self.path, self.about = path, read_json(path / ABOUT)
        if not is_index(path):
            what = "does not exist" if not path.exists() else "holds no index"
            raise DataError(f"{path} {what}: make one with selfsent index MODEL CORPUS --output {path}")
        if self.about["version"] != VERSION:
            raise DataError(f"{path} was made by another version of selfsent: make the index again")
        try:
            kinds = {kind.__name__: kind for kind in KINDS}
            self.columns: dict[str, type] = {name: kinds[kind] for name, kind in self.about["columns"].items()}
            self.model, self.fingerprint = str(self.about["model"]), str(self.about["fingerprint"])
            self.rows, self.recall = int(self.about["rows"]), float(self.about["recall"])
            self.cells = Cells.read(path / VECTORS)
            self.cells.probed = int(self.about["probed"])
            self._repeats: NDArray[np.int64] = np.load(path / REPEATS, mmap_mode="r", allow_pickle=False)
            whole = len(self) == len(self._repeats) == int(self.about["vectors"]) == len(self.table)
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            raise DataError(f"{path} is damaged ({error}): make the index again") from error
        if not whole:
            raise DataError(f"{path} is damaged (its files do not fit): make the index again")
        if sum((path / name).stat().st_size for name in FILES) <= _READ_WHOLE:
            self.check_files()

    def check_files(self) -> None:
        """Read all files, to see whether they are as they were written; an index of an older version does not say.

        Raises:
            DataError: one is not.
        """
        if name := damaged(self.path, self.about.get("checksums", {})):
            raise DataError(f"{self.path} is damaged ({name} is not as it was written): make the index again")

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def unit(self) -> str:
        """What a text is called."""
        return "sentence" if "sentence" in self.columns else "text"

    @cached_property
    def table(self) -> MappedTable:
        """The columns of each vector."""
        return MappedTable(self.path / ROWS)

    def check_model(self, fingerprint: str, name: str) -> None:
        """Refuse an encoder other than the one that made the vectors.

        Raises:
            DataError: it is another one.
        """
        if fingerprint != self.fingerprint:
            same = name == self.model
            what = "as it was before it changed" if same else self.model
            raise DataError(
                f"{self.path} holds vectors of another model ({what}) than {name}, and their cosines say nothing: "
                + ("index the texts again" if same else f"give --model {self.model}, or index the texts again")
            )

    @cached_property
    def words(self) -> WordCounts | None:
        """In how many of the texts each word is; None where the index has no texts, or was made before it counted.

        Raises:
            DataError: the index is damaged.
        """
        if "text" not in self.columns or not (self.path / WORDS).is_file():
            return None
        try:
            frequencies = np.zeros(BUCKETS, np.int32)
            held = np.load(self.path / WORDS, allow_pickle=False)
            frequencies[held[0]] = held[1]
        except (OSError, ValueError, IndexError, EOFError) as error:
            raise DataError(f"{self.path} is damaged ({error}): make the index again") from error
        return WordCounts(frequencies, len(self))

    def search(
        self,
        queries: NDArray[np.float32],
        top: int = 10,
        texts: Sequence[str] | None = None,
        word_weight: float = TFIDF_WEIGHT,
    ) -> list[list[Hit]]:
        """The numbers of the vectors nearest to each query, best first: by cosine, or by cosine + word_weight · words.

        Args:
            queries: (q, d), of any length but 0.
            top: how many vectors a query.
            texts: the queries themselves: then the 300 with the largest cosines are put in order by words, too, where
                the index has texts.
            word_weight: of the words.

        Raises:
            DataError: the index is damaged.
            SettingsError: a weight that is none, or not one text for each vector.
        """
        check_weight(word_weight)
        if isinstance(texts, str):
            raise SettingsError(ONE_STRING)
        if texts is not None and len(texts) != len(queries):
            raise SettingsError(f"{len(queries)} vectors of queries were given, and {len(texts)} texts of them")
        if texts is None or not word_weight or self.words is None:
            found = self._nearest(queries, top)
            return [[Hit(row, cosine, 0.0) for row, cosine in each] for each in found]
        asked, hits = self.words.weighed(texts), []
        for number, each in enumerate(self._nearest(queries, max(top, ORDERED))):
            rows = np.array([row for row, _ in each], np.int64)
            held = self.words.weighed(self.texts(rows))
            best = Best(1, top)
            cosines = np.array([[cosine for _, cosine in each]], np.float32)
            best.take(rows, cosines, (asked[number] @ held.T).toarray(), word_weight)
            hits += best.hits()
        return hits

    def _nearest(self, queries: NDArray[np.float32], top: int) -> list[list[tuple[int, float]]]:
        """The numbers of the vectors with the largest cosines, and these."""
        cosine, rows = self.cells.search(unit(np.ascontiguousarray(queries, np.float32)), min(top, len(self)))
        if not (np.abs(cosine[rows >= 0]) < _LARGEST).all() or rows.max(initial=-1) >= len(self):
            what = "its vectors or row numbers are not as they were written"
            raise DataError(f"{self.path} is damaged ({what}): make the index again")
        return [
            [(row, near) for row, near in zip(some, nears, strict=True) if row >= 0]
            for some, nears in zip(rows.tolist(), cosine.tolist(), strict=True)
        ]

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        """The texts of some vectors (n,), in any order."""
        return self.table.take([*self.columns].index("text"), rows)

    def told(self, rows: Iterable[int]) -> list[dict[str, Any]]:
        """Of each vector its columns, with `repeats`, how many more rows have its text, before `text`."""
        wanted = np.fromiter(rows, dtype=np.int64)
        columns = {name: self.table.take(place, wanted) for place, name in enumerate(self.columns)}
        last = {"text": columns.pop("text")} if "text" in columns else {}
        columns |= {"repeats": (np.asarray(self._repeats[wanted]) - 1).tolist()} | last
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    @property
    def summary(self) -> str:
        """How many vectors, and what of their neighbours is found, for a line."""
        cells = self.cells
        compared = "all vectors are" if cells.probed >= cells.count else f"{cells.probed / cells.count:.1%} of them are"
        return (
            f"{counted(len(self), 'vector')} in {self.path}; recall@10 {self.recall:.1%} on a sample, where {compared}"
            " compared with a query"
        )


def is_index(path: Path) -> bool:
    """Whether a directory holds an index of some version."""
    return read_json(path / ABOUT).get("kind") == "selfsent index"
