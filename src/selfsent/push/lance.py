"""LanceDB, in files: its own BM25 of our terms and the nearest vectors give candidates, which our sum puts in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.push.target import (
    DIGEST,
    EMBEDDING,
    KEY,
    LENGTH,
    NUMBERS,
    OWN,
    TEXT,
    WEIGHTS,
    WORDS,
    Address,
    Record,
    Stamp,
    Target,
    client,
)


def search(collection: Any, vector: Any, terms: dict[int, float], weight: float, limit: int = 10) -> list[Any]:
    """Rows by dense + weight · lexical, best first, among the 300 nearest and the 300 best by words."""
    from lancedb.query import MatchQuery

    asked = [collection.search(vector, vector_column_name="embedding").distance_type("dot")]
    if terms:
        asked.append(collection.search(MatchQuery(" ".join(map(str, terms)), "words"), query_type="fts"))
    found: dict[int, Any] = {}
    for each in asked:
        rows = each.where("NOT selfsent_repeats", prefilter=True).limit(max(300, limit)).to_list()
        found |= {row["selfsent_key"]: row for row in rows}

    def score(row: Any) -> Any:
        held = zip(row["term_numbers"], row["term_weights"], strict=True)
        return np.dot(vector, row["embedding"]) + weight * sum(terms.get(n, 0.0) * w for n, w in held)

    return sorted(found.values(), key=score, reverse=True)[:limit]


class Lance(Target):
    """A table in a folder, or in LanceDB Cloud by `LANCEDB_API_KEY`."""

    packages = ("lancedb",)
    together = 5000
    imports = "import lancedb"
    code = "collection = lancedb.connect({place!r}).open_table({name!r})"
    errors = (OSError, RuntimeError, ValueError)

    def __init__(self, address: Address) -> None:
        self._db, self._name = client("lancedb", self.packages).connect(address.place), address.name
        names = self._db.list_tables().tables
        self._table: Any = self._db.open_table(self._name) if self._name in names else None

    def stamps(self) -> Iterable[Stamp]:
        """Keys and digests of its rows."""
        if self._table is None:
            return
        for batch in self._table.search().select([KEY, DIGEST, LENGTH]).to_batches(10_000):
            columns = (batch.column(name).to_pylist() for name in (KEY, DIGEST, LENGTH))
            yield from zip(*columns, strict=True)

    def size(self) -> int | None:
        """Dimension of the vectors."""
        return None if self._table is None else int(self._table.schema.field(EMBEDDING).type.list_size)

    def create(self, size: int, columns: dict[str, type]) -> None:
        """Make the table."""
        import pyarrow as pa

        types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
        fields = {name: types[kind] for name, kind in {**OWN, **columns, TEXT: str}.items()}
        fields |= {EMBEDDING: pa.list_(pa.float32(), size), WORDS: pa.string()}
        fields |= {NUMBERS: pa.list_(pa.int32()), WEIGHTS: pa.list_(pa.float32())}
        self._table = self._db.create_table(self._name, schema=pa.schema(fields.items()))

    def upsert(self, new: Sequence[Record], changed: Sequence[Record]) -> None:
        """Write rows."""
        if new:
            self._table.add(self._arrow(new))
        if changed:
            merge = self._table.merge_insert(KEY).when_matched_update_all().when_not_matched_insert_all()
            merge.execute(self._arrow(changed))

    def _arrow(self, records: Sequence[Record]) -> Any:
        import pyarrow as pa

        rows = [
            {
                **each.fields,
                EMBEDDING: each.vector,
                WORDS: " ".join(map(str, each.words)),
                NUMBERS: [*each.terms],
                WEIGHTS: [*each.terms.values()],
            }
            for each in records
        ]
        return pa.Table.from_pylist(rows, schema=self._table.schema)

    def delete(self, keys: Sequence[int]) -> None:
        """Remove rows."""
        self._table.delete(f"{KEY} IN ({', '.join(map(str, keys))})")

    def finish(self) -> None:
        """Make the lookup of words, and merge the parts; LanceDB removes older versions after seven days."""
        if not self._table.list_indices():
            words = {"base_tokenizer": "whitespace", "stem": False, "remove_stop_words": False}
            self._table.create_fts_index(WORDS, **words, lower_case=False, ascii_folding=False)
        self._table.optimize()

    def search(self, vector: NDArray[Any], terms: dict[int, float], weight: float, limit: int) -> list[dict[str, Any]]:
        """The best rows."""
        return search(self._table, vector, terms, weight, limit)
