"""The clients of others, as they are."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from web import finished

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def example(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.fixture(scope="module")
def secured(engine, serving):
    with serving(engine, token="s3cret") as url:
        yield url


def test_openai(secured):
    openai = pytest.importorskip("openai", reason="OpenAI's client is not installed")
    client = openai.OpenAI(base_url=f"{secured}/v1", api_key="s3cret")
    told = client.embeddings.create(model="any", input=["a printer", "an invoice"])
    plain = client.embeddings.create(model="any", input="a printer", encoding_format="float", dimensions=256)
    np.testing.assert_allclose(told.data[0].embedding, plain.data[0].embedding, atol=1e-6)
    assert (len(told.data), told.data[1].index, told.model) == (2, 1, "bundled")
    assert told.usage.total_tokens == 6
    assert [model.id for model in client.models.list()] == ["bundled"]
    with pytest.raises(openai.AuthenticationError, match="give the token"):
        openai.OpenAI(base_url=f"{secured}/v1", api_key="x").embeddings.create(model="any", input="a")
    with pytest.raises(openai.AuthenticationError, match="give the token"):
        openai.OpenAI(base_url=f"{secured}/v1", api_key="x").models.list()
    with pytest.raises(openai.BadRequestError, match="not tokens"):
        client.embeddings.create(model="any", input=[1, 2])


def test_openai_asynchronously(secured):
    openai = pytest.importorskip("openai", reason="OpenAI's client is not installed")
    import asyncio

    async def main():
        async with openai.AsyncOpenAI(base_url=f"{secured}/v1", api_key="s3cret") as client:
            asked = [client.embeddings.create(model="any", input=f"ticket {number}") for number in range(30)]
            return await asyncio.gather(*asked)

    assert len({tuple(told.data[0].embedding) for told in finished(main())}) == 30


def check_vectors(one, several):
    assert (len(one), len(several)) == (256, 2)
    assert np.dot(one, several[0]) > np.dot(one, several[1])


def test_langchain(secured):
    pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    made = example("serve_langchain")
    vectors = made["embeddings"](secured, "s3cret")
    check_vectors(vectors.embed_query("a printer"), vectors.embed_documents(["the printers", "an invoice"]))
    found = made["Retriever"](url=secured, token="s3cret").invoke("the printer does not answer")
    assert (len(found), found[0].metadata["id"]) == (5, "T-1")
    assert found[0].page_content == "The printer on the second floor does not answer."


def test_llamaindex(secured):
    pytest.importorskip("llama_index.embeddings.openai_like", reason="LlamaIndex is not installed")
    made = example("serve_llamaindex")
    vectors = made["embeddings"](secured, "s3cret")
    check_vectors(
        vectors.get_query_embedding("a printer"), vectors.get_text_embedding_batch(["the printers", "an invoice"])
    )
    found = made["Retriever"](secured, "s3cret").retrieve("the printer does not answer")
    assert (len(found), found[0].node.metadata["id"]) == (5, "T-1")


def test_haystack(secured):
    pytest.importorskip("haystack", reason="Haystack is not installed")
    made = example("serve_haystack")
    embedder = made["embedder"](secured, "s3cret")
    check_vectors(
        *(
            embedder.run("a printer")["embedding"],
            [embedder.run(t)["embedding"] for t in ("the printers", "an invoice")],
        )
    )
    found = made["Retriever"](secured, "s3cret").run("the printer does not answer")["documents"]
    assert (len(found), found[0].meta["id"]) == (5, "T-1")
