"""Milvus, on a server or in a file by Milvus Lite: two searches, and the scores that one of them lacks by two more."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from selfsent.push.target import DIGEST, EMBEDDING, KEY, LENGTH, REPEATS, WORDS, Address, Record, Stamp, Target, client


def search(collection: Any, vector: Any, terms: dict[int, float], weight: float, limit: int = 10) -> list[Any]:
    """Rows by dense + weight · lexical, best first, among the 300 nearest and the 300 best by words."""
    database, name = collection
    asked = {"embedding": vector.tolist()} | ({"words": terms} if terms else {})

    def scores(part: str, where: str, count: int) -> dict[int, float]:
        [found] = database.search(name, data=[asked[part]], anns_field=part, filter=where, limit=count)
        return {hit["selfsent_key"]: hit["distance"] for hit in found}

    found = {part: scores(part, "selfsent_repeats == false", max(300, limit)) for part in asked}
    keys = {key for scored in found.values() for key in scored}
    for part, scored in found.items():
        if missing := sorted(keys - scored.keys()):
            scored.update(scores(part, f"selfsent_key in {missing}", len(missing)))
    dense, lexical = found["embedding"], found.get("words", {})
    total = {key: dense.get(key, 0.0) + weight * lexical.get(key, 0.0) for key in keys}
    best = sorted(total, key=total.__getitem__, reverse=True)[:limit]
    rows = {row["selfsent_key"]: row for row in database.get(name, ids=best, output_fields=["*"])} if best else {}
    return [{field: value for field, value in rows[key].items() if field not in asked} for key in best]


class Milvus(Target):
    """A collection on a server, by `MILVUS_TOKEN` if set, or in a file. Columns are dynamic fields."""

    packages = ("pymilvus", "milvus-lite")
    imports = "import os\n\nfrom pymilvus import MilvusClient\n"

    def __init__(self, address: Address) -> None:
        from_client = client("pymilvus", self.packages)
        type(self).errors = (OSError, ValueError, from_client.exceptions.MilvusException)
        self._name = address.name
        place = address.place if address.files else f"http://{address.place}"
        made = f"database = MilvusClient({place!r}, token=os.environ.get('MILVUS_TOKEN', ''))"
        self.code = f"{made}\ndatabase.load_collection({{name!r}})\ncollection = database, {{name!r}}"
        self._file = address.place if address.files else ""
        if address.files:
            client("milvus_lite", self.packages)
        self._client = from_client.MilvusClient(place, token=os.environ.get("MILVUS_TOKEN", ""))
        if self._client.has_collection(self._name):
            self._client.load_collection(self._name)

    def stamps(self) -> Iterable[Stamp]:
        """Keys and digests of its rows."""
        if not self._client.has_collection(self._name):
            return
        rows = self._client.query_iterator(self._name, batch_size=1000, output_fields=[KEY, DIGEST, LENGTH])
        while batch := rows.next():
            yield from ((row[KEY], row[DIGEST], row[LENGTH]) for row in batch)
        rows.close()

    def size(self) -> int | None:
        """Dimension of the vectors."""
        if not self._client.has_collection(self._name):
            return None
        fields = {each["name"]: each for each in self._client.describe_collection(self._name)["fields"]}
        return int(fields[EMBEDDING]["params"]["dim"]) if EMBEDDING in fields else 0

    def create(self, size: int, columns: dict[str, type]) -> None:
        """Make the collection; columns need no field."""
        from pymilvus import DataType

        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=True)
        schema.add_field(KEY, DataType.INT64, is_primary=True)
        for name, kind in {DIGEST: DataType.INT64, LENGTH: DataType.DOUBLE, REPEATS: DataType.BOOL}.items():
            schema.add_field(name, kind)
        schema.add_field(EMBEDDING, DataType.FLOAT_VECTOR, dim=size)
        schema.add_field(WORDS, DataType.SPARSE_FLOAT_VECTOR)
        lookups = self._client.prepare_index_params()
        lookups.add_index(EMBEDDING, index_type="AUTOINDEX", metric_type="IP")
        lookups.add_index(WORDS, index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        how = {"schema": schema, "index_params": lookups, "consistency_level": "Strong"}
        self._client.create_collection(self._name, **how)

    def upsert(self, new: Sequence[Record], changed: Sequence[Record]) -> None:
        """Write rows."""
        rows = [{**each.fields, EMBEDDING: each.vector.tolist(), WORDS: each.terms} for each in (*new, *changed)]
        self._client.upsert(self._name, rows)

    def delete(self, keys: Sequence[int]) -> None:
        """Remove rows."""
        self._client.delete(self._name, ids=list(keys))

    def search(self, vector: NDArray[Any], terms: dict[int, float], weight: float, limit: int) -> list[dict[str, Any]]:
        """The best rows."""
        return search((self._client, self._name), vector, terms, weight, limit)

    def close(self) -> None:
        """Release the file."""
        self._client.close()
        if self._file:
            # A client that is closed leaves its server running, which holds the file.
            client("milvus_lite.server_manager", self.packages).server_manager_instance.release_server(self._file)
