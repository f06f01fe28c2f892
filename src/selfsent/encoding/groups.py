"""The groups of a saved clustering, for rows of a table that is larger than a machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from selfsent.data.vector_files import unit
from selfsent.encoding.batches import BatchColumn, cleaned
from selfsent.search.clusters import Centres, read_clusters, without_content
from selfsent.search.exact import corpus_language

if TYPE_CHECKING:
    from selfsent.encoding.encoder import BatchEncoder

GROUP = pa.struct([("cluster", pa.int64()), ("cosine", pa.float32())])
"""Number of a group, -1 for none, and the cosine to its centre, or to the nearest one."""


class BatchGroups(BatchColumn):
    """A callable that adds the group of each text, as `selfsent cluster --to` does.

    Args:
        clusters: a file that `selfsent cluster --output` wrote. It is read, and its texts encoded, once, here; workers
            get the centres alone.
        encode: makes the vectors, by the encoder that made the groups.
        group_column: name of the new column: `cluster` and `cosine`.
        vector_column: column with vectors that `encode` made, if there is one: no text is encoded again then.

    Raises:
        DataError: the file has no groups.

    Examples:
        >>> from selfsent.encoding import BatchEncoder, BatchGroups
        >>> group = BatchGroups("groups.csv", BatchEncoder("bundled"))  # doctest: +SKIP
    """

    def __init__(
        self, clusters: str, encode: BatchEncoder, group_column: str = "group", vector_column: str | None = None
    ) -> None:
        super().__init__([*encode.inputs, *([vector_column] if vector_column else [])], group_column)
        texts, cluster = read_clusters(clusters)
        self._encode, self._language = encode, corpus_language(texts)
        self._centres = Centres.of(unit(encode.vectors([each for batch in texts.batches() for each in batch])), cluster)

    @property
    def type(self) -> pa.DataType:
        """A struct of a number and a cosine."""
        return GROUP

    def array(self, *columns: Iterable[Any]) -> pa.Array:
        """The groups of a column of texts, (n,), with or without their vectors."""
        texts = cleaned(columns[0], self._encode.clean)
        vectors = (
            self._encode.vectors(texts) if len(columns) == 1 else np.array([*map(_listed, columns[1])], np.float32)
        )
        vectors = vectors.reshape(len(texts), -1) if texts else np.zeros((0, self._centres.size), np.float32)
        empty = without_content(texts, self._language) | np.array([not text for text in texts], bool)
        found = self._centres.assign(unit(vectors), empty=empty)
        return pa.StructArray.from_arrays([pa.array(found.cluster), pa.array(found.cosine)], fields=list(GROUP))


def _listed(vector: Any) -> Any:
    return vector.as_py() if isinstance(vector, pa.Scalar) else vector
