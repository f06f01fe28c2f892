"""Qdrant, on a server or in files: the candidates of vectors and words are scored by both, and it adds the scores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from selfsent.errors import SettingsError
from selfsent.push.target import DIGEST, EMBEDDING, LENGTH, REPEATS, WORDS, Address, Record, Stamp, Target, client


def search(collection: Any, vector: Any, terms: dict[int, float], weight: float, limit: int = 10) -> list[Any]:
    """Rows by dense + weight · lexical, best first, among the 300 nearest and the 300 best by words."""
    from qdrant_client.models import (
        FieldCondition,
        Filter,
        FormulaQuery,
        MatchValue,
        MultExpression,
        Prefetch,
        SparseVector,
        SumExpression,
    )

    database, name = collection
    first = Filter(must=[FieldCondition(key="selfsent_repeats", match=MatchValue(value=False))])
    asked = {"embedding": vector.tolist()}
    if not terms:
        found = database.query_points(name, asked["embedding"], using="embedding", query_filter=first, limit=limit)
        return [point.payload for point in found.points]
    asked["words"] = SparseVector(indices=[*terms], values=[*terms.values()])
    depth = max(300, limit)
    near = [Prefetch(query=query, using=part, filter=first, limit=depth) for part, query in asked.items()]
    both = [Prefetch(prefetch=near, query=query, using=part, limit=2 * depth) for part, query in asked.items()]
    words = MultExpression(mult=[weight, "$score[1]"])
    total = FormulaQuery(formula=SumExpression(sum=["$score[0]", words]), defaults={"$score[1]": 0.0})
    return [point.payload for point in database.query_points(name, total, prefetch=both, limit=limit).points]


class Qdrant(Target):
    """A collection on a server, by `QDRANT_API_KEY` if set, or in a folder."""

    packages = ("qdrant-client",)
    imports = "import os\n\nfrom qdrant_client import QdrantClient\n"

    def __init__(self, address: Address) -> None:
        from_client = client("qdrant_client", self.packages)
        failures = client("qdrant_client.http.exceptions", self.packages)
        type(self).errors = (OSError, RuntimeError, ValueError, failures.ApiException)
        self._name, self._files = address.name, address.files
        self.code = "collection = QdrantClient(path={place!r}), {name!r}"
        if address.files:
            self._client = from_client.QdrantClient(path=address.place)
        else:
            key = os.environ.get("QDRANT_API_KEY")
            server = f"{'https' if key else 'http'}://{address.place}"
            self.code = f"collection = QdrantClient({server!r}, api_key=os.environ.get('QDRANT_API_KEY')), {{name!r}}"
            self._client = from_client.QdrantClient(server, api_key=key, check_compatibility=False)

    def stamps(self) -> Iterable[Stamp]:
        """Keys and digests of its rows."""
        if not self._client.collection_exists(self._name):
            return
        offset = None
        while True:
            how = {"limit": 1000, "offset": offset, "with_payload": [DIGEST, LENGTH]}
            points, offset = self._client.scroll(self._name, **how)
            for point in points:
                if DIGEST not in point.payload:
                    raise SettingsError(f"the collection {self._name} holds rows that no push wrote: name another")
                yield point.id, point.payload[DIGEST], point.payload[LENGTH]
            if offset is None:
                return

    def size(self) -> int | None:
        """Dimension of the vectors."""
        if not self._client.collection_exists(self._name):
            return None
        held = self._client.get_collection(self._name).config.params.vectors
        if not isinstance(held, dict) or EMBEDDING not in held:
            raise SettingsError(f"the collection {self._name} has no vectors of a push: name another")
        return int(held[EMBEDDING].size)

    def create(self, size: int, columns: dict[str, type]) -> None:
        """Make the collection, with a lookup of what the query leaves out."""
        from qdrant_client.models import Distance, PayloadSchemaType, SparseVectorParams, VectorParams

        dense = {EMBEDDING: VectorParams(size=size, distance=Distance.DOT)}
        sparse = {WORDS: SparseVectorParams()}
        self._client.create_collection(self._name, vectors_config=dense, sparse_vectors_config=sparse)
        if not self._files:
            self._client.create_payload_index(self._name, REPEATS, PayloadSchemaType.BOOL)

    def upsert(self, new: Sequence[Record], changed: Sequence[Record]) -> None:
        """Write rows."""
        from qdrant_client.models import PointStruct, SparseVector

        points = [
            PointStruct(
                id=each.key,
                vector={
                    EMBEDDING: each.vector.tolist(),
                    WORDS: SparseVector(indices=[*each.terms], values=[*each.terms.values()]),
                },
                payload=each.fields,
            )
            for each in (*new, *changed)
        ]
        self._client.upsert(self._name, points)

    def delete(self, keys: Sequence[int]) -> None:
        """Remove rows."""
        self._client.delete(self._name, list(keys))

    def search(self, vector: NDArray[Any], terms: dict[int, float], weight: float, limit: int) -> list[dict[str, Any]]:
        """The best rows."""
        return search((self._client, self._name), vector, terms, weight, limit)

    def close(self) -> None:
        """Release the folder."""
        self._client.close()
