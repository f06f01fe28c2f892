"""OpenSearch, over HTTP: a k-NN script and `rank_feature` clauses add up to our sum. Not tried on a server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from selfsent.errors import SettingsError
from selfsent.push.target import (
    DIGEST,
    EMBEDDING,
    KEY,
    LENGTH,
    OWN,
    TEXT,
    WORDS,
    Address,
    Record,
    Stamp,
    Target,
    client,
)

_TYPES = {str: "keyword", int: "long", float: "double", bool: "boolean"}


def search(collection: Any, vector: Any, terms: dict[int, float], weight: float, limit: int = 10) -> list[Any]:
    """Rows by dense + weight · lexical, best first, of all rows."""
    server, name = collection
    about = {"field": "embedding", "query_value": vector.tolist(), "space_type": "cosinesimil"}
    script = {"lang": "knn", "source": "knn_score", "params": about}  # 1 + cosine
    parts: list[Any] = [{"script_score": {"query": {"match_all": {}}, "script": script}}]
    for term, share in terms.items():
        if weight:
            parts.append({"rank_feature": {"field": f"words.{term}", "boost": weight * share, "linear": {}}})
    first = [{"term": {"selfsent_repeats": False}}]
    query = {"bool": {"filter": first, "should": parts}}
    body = {"size": limit, "query": query, "_source": {"excludes": ["embedding", "words"]}}
    found = server.post(f"/{name}/_search", json=body).raise_for_status().json()
    return [hit["_source"] for hit in found["hits"]["hits"]]


class OpenSearch(Target):
    """An index of a server, by `OPENSEARCH_USER` and `OPENSEARCH_PASSWORD` if set: over HTTPS then."""

    packages = ("httpx",)
    imports = "import os\n\nimport httpx\n"

    def __init__(self, address: Address) -> None:
        httpx = client("httpx", self.packages)
        if address.files:
            raise SettingsError(f"{address} is no server: give opensearch://HOST:PORT/NAME")
        type(self).errors = (OSError, ValueError, httpx.HTTPError)
        self._name = address.name
        user, word = (os.environ.get(f"OPENSEARCH_{each}") for each in ("USER", "PASSWORD"))
        place = f"{'https' if user else 'http'}://{address.place}"
        auth = '(os.environ["OPENSEARCH_USER"], os.environ["OPENSEARCH_PASSWORD"])' if user else "None"
        self.code = f"collection = httpx.Client(base_url={place!r}, auth={auth}, timeout=60), {{name!r}}"
        self._server = httpx.Client(base_url=place, auth=(user, word or "") if user else None, timeout=60)

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        return self._server.request(method, f"/{self._name}{path}", **more).raise_for_status().json()

    def stamps(self) -> Iterable[Stamp]:
        """Keys and digests of its rows."""
        if self.size() is None:
            return
        self._ask("POST", "/_refresh")
        body: dict[str, Any] = {"size": 1000, "_source": [KEY, DIGEST, LENGTH], "sort": [{KEY: "asc"}]}
        while hits := self._ask("POST", "/_search", json=body)["hits"]["hits"]:
            yield from ((hit["_source"][KEY], hit["_source"][DIGEST], hit["_source"][LENGTH]) for hit in hits)
            body["search_after"] = hits[-1]["sort"]

    def size(self) -> int | None:
        """Dimension of the vectors."""
        if self._server.head(f"/{self._name}").status_code == 404:
            return None
        fields = self._ask("GET", "/_mapping")[self._name]["mappings"].get("properties", {})
        if KEY not in fields or EMBEDDING not in fields:
            raise SettingsError(f"the index {self._name} holds rows that no push wrote: name another")
        return int(fields[EMBEDDING]["dimension"])

    def create(self, size: int, columns: dict[str, type]) -> None:
        """Make the index."""
        fields: dict[str, Any] = {name: {"type": _TYPES[kind]} for name, kind in {**OWN, **columns}.items()}
        fields |= {TEXT: {"type": "text"}, WORDS: {"type": "rank_features"}}
        fields[EMBEDDING] = {"type": "knn_vector", "dimension": size}
        self._ask("PUT", "", json={"settings": {"index": {"knn": True}}, "mappings": {"properties": fields}})

    def upsert(self, new: Sequence[Record], changed: Sequence[Record]) -> None:
        """Write rows."""
        lines = list[Mapping[str, Any]]()
        for each in (*new, *changed):
            words = {str(term): weight for term, weight in each.terms.items()}
            own = {EMBEDDING: each.vector.tolist(), **({WORDS: words} if words else {})}
            lines += [{"index": {"_id": str(each.key)}}, {**each.fields, **own}]
        self._bulk(lines)

    def delete(self, keys: Sequence[int]) -> None:
        """Remove rows."""
        self._bulk([{"delete": {"_id": str(key)}} for key in keys])

    def _bulk(self, lines: Iterable[Mapping[str, Any]]) -> None:
        body = "".join(json.dumps(line) + "\n" for line in lines)
        found = self._ask("POST", "/_bulk", content=body, headers={"Content-Type": "application/x-ndjson"})
        if found["errors"]:
            wrong = next(about["error"] for item in found["items"] for about in item.values() if "error" in about)
            raise ValueError(f"{wrong.get('type')}: {wrong.get('reason')}")

    def finish(self) -> None:
        """Let searches see what was written."""
        self._ask("POST", "/_refresh")

    def search(self, vector: NDArray[Any], terms: dict[int, float], weight: float, limit: int) -> list[dict[str, Any]]:
        """The best rows."""
        return search((self._server, self._name), vector, terms, weight, limit)

    def close(self) -> None:
        """Leave the server."""
        self._server.close()
