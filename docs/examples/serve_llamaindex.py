"""LlamaIndex over `selfsent serve`: vectors for any index of LlamaIndex's, and the index itself as a retriever."""

import httpx
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.embeddings.openai_like import OpenAILikeEmbedding


class Retriever(BaseRetriever):
    def __init__(self, url, token="none"):
        self._url, self._headers = url, {"Authorization": f"Bearer {token}"}
        super().__init__()

    def _retrieve(self, query):
        asked = {"query": query.query_str, "top": 5}
        answer = httpx.post(f"{self._url}/search", json=asked, headers=self._headers).raise_for_status()
        hits = answer.json()["hits"]
        return [NodeWithScore(node=TextNode(text=hit.pop("text"), metadata=hit), score=hit["score"]) for hit in hits]


def embeddings(url, token="none"):
    return OpenAILikeEmbedding(api_base=f"{url}/v1", api_key=token, model_name="selfsent")
