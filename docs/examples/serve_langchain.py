"""LangChain over `selfsent serve`: vectors for any store of LangChain's, and the index itself as a retriever."""

import httpx
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_openai import OpenAIEmbeddings


class Retriever(BaseRetriever):
    url: str
    token: str = "none"

    def _get_relevant_documents(self, query, *, run_manager):
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.post(f"{self.url}/search", json={"query": query, "top": 5}, headers=headers).raise_for_status()
        return [Document(hit.pop("text"), metadata=hit) for hit in answer.json()["hits"]]


def embeddings(url, token="none"):
    # Without the last argument LangChain sends numbers of tokens of OpenAI's in place of texts.
    return OpenAIEmbeddings(base_url=f"{url}/v1", api_key=token, model="selfsent", check_embedding_ctx_length=False)
