"""Bands of signatures: texts with an equal key are candidates for near-copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from selfsent.encoding.batches import BatchColumn, cleaned, names_of_cleaners
from selfsent.encoding.stages import Integers
from selfsent.lexical import WordCounts
from selfsent.search.near import BANDS, TOGETHER, signatures

_ODD = np.uint64(0x9E3779B97F4A7C15)


class BatchBands(BatchColumn):
    """A callable that adds the keys of a text's bands, 40: texts with an equal key are candidates for near-copies.

    Args:
        counts: how many texts have each word, of the whole collection.
        text_column: column of texts.
        band_column: name of the new column: lists of integers, empty for texts without words.
        clean: cleaners to apply, as for `BatchEncoder`.

    Examples:
        >>> import numpy as np
        >>> from selfsent.search.near import near_words
        >>> counts = WordCounts(near_words)
        >>> counts.add(["a red car", "a Red Car!", "rain"])
        >>> bands = BatchBands(counts)({"text": np.array(["a red car", "a Red Car!", ""])})["bands"]
        >>> len(bands[0]), bands[0].tolist() == bands[1].tolist(), len(bands[2])
        (40, True, 0)
    """

    def __init__(
        self,
        counts: WordCounts,
        text_column: str = "text",
        band_column: str = "bands",
        *,
        clean: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__([text_column], band_column)
        self._counts, self.clean = counts, names_of_cleaners(clean)

    @property
    def type(self) -> pa.DataType:
        """Lists of integers."""
        return pa.list_(pa.int64())

    def array(self, *columns: Iterable[Any]) -> pa.Array:
        """The keys of a column of texts, (n,)."""
        keys = band_keys(cleaned(columns[0], self.clean), self._counts)
        held = keys.any(1)
        ends = np.cumsum([0, *np.where(held, BANDS, 0)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(ends), pa.array(keys[held].ravel()))


def band_keys(texts: Sequence[str], counts: WordCounts) -> Integers:
    """The keys of the bands of texts, (n, BANDS): two bands have none in common; 0 for texts without words."""
    keys = np.zeros((len(texts), BANDS), np.uint64)
    for start in range(0, len(texts), TOGETHER):
        keys[start : start + TOGETHER] = signatures(texts[start : start + TOGETHER], counts)
    own = (keys ^ (np.arange(BANDS, dtype=np.uint64) * _ODD)) * _ODD
    mixed: Integers = (
        np.where(keys > 0, own ^ (own >> np.uint64(32)) | np.uint64(1), 0).astype(np.uint64).view(np.int64)
    )
    return mixed
