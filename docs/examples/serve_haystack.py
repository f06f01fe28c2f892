"""Haystack over `selfsent serve`: vectors for any store of Haystack's, and the index itself as a component."""

import httpx
from haystack import Document, component
from haystack.components.embedders import OpenAITextEmbedder
from haystack.utils import Secret


@component
class Retriever:
    def __init__(self, url, token="none"):
        self._url, self._headers = url, {"Authorization": f"Bearer {token}"}

    @component.output_types(documents=list[Document])
    def run(self, query: str):
        asked = {"query": query, "top": 5}
        answer = httpx.post(f"{self._url}/search", json=asked, headers=self._headers).raise_for_status()
        hits = answer.json()["hits"]
        return {"documents": [Document(content=hit.pop("text"), meta=hit, score=hit["score"]) for hit in hits]}


def embedder(url, token="none"):
    return OpenAITextEmbedder(api_base_url=f"{url}/v1", api_key=Secret.from_token(token), model="selfsent")
