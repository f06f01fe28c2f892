"""Sentences with ids and fields in Qdrant, and back by meaning: `python docs/examples/qdrant.py MODEL FILE.csv QUERY`.

FILE.csv has the columns `id` and `text`, and any others, which are kept beside the vectors. Qdrant runs inside this
process and keeps its files in `tickets.qdrant`; with a server, only the line that makes the client differs.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams
from sentence_transformers import SentenceTransformer

NAME, TOGETHER = "tickets", 1000


def store(client: QdrantClient, model: SentenceTransformer, rows: list[dict[str, str]]) -> None:
    """Put rows into a new collection, each with its vector; what the collection held before is gone."""
    if client.collection_exists(NAME):
        client.delete_collection(NAME)
    size = model.get_embedding_dimension()
    client.create_collection(NAME, vectors_config=VectorParams(size=size, distance=Distance.COSINE))
    for start in range(0, len(rows), TOGETHER):
        part = rows[start : start + TOGETHER]
        vectors = model.encode([row["text"] for row in part]).tolist()
        # Qdrant's own ids are numbers; yours stay among the fields.
        points = enumerate(zip(vectors, part, strict=True), start)
        client.upsert(NAME, [PointStruct(id=number, vector=vector, payload=row) for number, (vector, row) in points])


def nearest(
    client: QdrantClient, model: SentenceTransformer, query: str, limit: int = 5
) -> Iterator[tuple[str, str, float]]:
    """Id, text and cosine of the rows nearest to a query."""
    for point in client.query_points(NAME, query=model.encode(query).tolist(), limit=limit).points:
        payload = point.payload or {}
        yield payload["id"], payload["text"], point.score


def main(model: str, file: str, query: str) -> None:
    """Store, ask, print."""
    with Path(file).open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    encoder, client = SentenceTransformer(model), QdrantClient(path=f"{NAME}.qdrant")
    store(client, encoder, rows)
    for name, text, cosine in nearest(client, encoder, query):
        print(f"{cosine:.2f}  {name}  {text}")
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
