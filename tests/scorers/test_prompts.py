"""Prompts for queries and documents: used where queries are looked for among texts, and nowhere else."""

import numpy as np
import pytest

import tiny
from selfsent.data.vector_files import unit
from selfsent.errors import SettingsError
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.models.prompts import Prompts
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.load_scorer import load_scorer
from selfsent.scorers.scorer import Scorer

LINES = tiny.make_sentences(10, seed=3)
QUERIES, TEXTS = [*LINES[:3], LINES[0]], LINES[2:]
PROMPTS = {"query": "ba du ka ", "document": "fi ", "other": "lu lu "}
KINDS = {
    "both sides": {"prompts": PROMPTS, "default_prompt_name": "other"},
    "queries alone": {"prompts": {"query": "ba du ka "}},
    "passages": {"prompts": {"query": "", "passage": "fi ", "document": "fi "}},
    "a prompt that the pooling leaves out": {"prompts": PROMPTS, "include_prompt": False},
}


@pytest.fixture(scope="module")
def peer_of(base_of):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    def of(include_prompt=True, **options):
        pooling = Pooling(tiny.SIZE, "mean", include_prompt=include_prompt)
        return SentenceTransformer(modules=[Transformer(str(base_of("bert"))), pooling], device="cpu", **options)

    return of


def assert_sides(encoder, peer, queries=QUERIES, texts=TEXTS):
    """Searched as the peer would, and as single texts without a side elsewhere."""
    found = encoder.query_document_vectors(queries, texts, search=True)
    for vectors, theirs in zip(found, (peer.encode_query(queries), peer.encode_document(texts)), strict=True):
        np.testing.assert_allclose(vectors, unit(theirs), atol=2e-5)
    for vectors, each in zip(encoder.query_document_vectors(queries, texts), (queries, texts), strict=True):
        np.testing.assert_allclose(vectors, unit(peer.encode(each)), atol=2e-5)
    np.testing.assert_allclose(encoder(texts), peer.encode(texts), atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_are_encoded_as_sentence_transformers_does(kind, peer_of, tmp_path):
    peer = peer_of(**KINDS[kind])
    peer.save(str(tmp_path), create_model_card=False)
    for encoder in (load_scorer(peer), load_scorer(str(tmp_path))):
        assert_sides(encoder, peer)
        assert_sides(encoder, peer, TEXTS, QUERIES)  # what one side has seen is no vector of the other
    vectors = peer.encode_query(QUERIES), peer.encode_document(TEXTS)
    hybrid = Hybrid(load_scorer(peer)).query_document_vectors(QUERIES, TEXTS, search=True)
    np.testing.assert_allclose(
        hybrid[0].vectors @ hybrid[1].vectors.T, unit(vectors[0]) @ unit(vectors[1]).T, atol=2e-5
    )


def test_queries_and_documents_that_go_ways_of_their_own(base_of, peer_of):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Router, Transformer

    modules = [[Transformer(str(base_of("bert"))), Pooling(tiny.SIZE, mode)] for mode in ("mean", "max")]
    router = Router.for_query_document(query_modules=modules[0], document_modules=modules[1])
    peer = SentenceTransformer(modules=[router], device="cpu")
    found = load_scorer(peer).query_document_vectors(QUERIES, TEXTS, search=True)
    for vectors, theirs in zip(found, (peer.encode_query(QUERIES), peer.encode_document(TEXTS)), strict=True):
        np.testing.assert_allclose(vectors, unit(theirs), atol=2e-5)
    assert not np.allclose(peer.encode_query(TEXTS), peer.encode_document(TEXTS))


def test_without_prompts_each_text_is_encoded_once(peer_of):
    peer, seen = peer_of(), []
    encode = peer.encode
    peer.encode = lambda texts, **more: seen.extend(texts) or encode(texts, **more)
    encoder = load_scorer(peer)
    encoder.query_document_vectors(QUERIES, TEXTS, search=True)
    encoder.query_document_vectors(TEXTS, QUERIES)
    assert sorted(seen) == sorted(LINES)


class Two:
    """A model with methods of its own for both sides: queries look up, documents look down."""

    def __init__(self):
        self.seen = {"text": [], "query": [], "document": []}

    def _vectors(self, side, texts):
        self.seen[side] += texts
        numbers = np.array([[len(text), text.count("a") + 1.0] for text in texts])
        return numbers if side == "text" else -numbers if side == "query" else numbers[:, ::-1]

    def encode(self, texts):
        return self._vectors("text", texts)

    def encode_query(self, texts):
        return self._vectors("query", texts)

    def encode_document(self, texts):
        return self._vectors("document", texts)


def test_each_text_of_a_side_is_encoded_once(tmp_path):
    from selfsent.evaluation.suites import evaluate

    model = Two()
    task = RetrievalTask("toy", QUERIES, TEXTS, [{0: 1}, {1: 1}, {2: 1}, {0: 1}])
    encoder = load_scorer(model)
    assert task.score(encoder) == task.score(encoder)
    assert sorted(model.seen["query"]) == sorted(set(QUERIES))
    assert sorted(model.seen["document"]) == sorted(TEXTS)
    assert model.seen["text"] == []
    (tmp_path / "faq.tsv").write_text("".join(f"{query}\t{text}\n" for query, text in zip(TEXTS, TEXTS[::-1])))
    evaluate(Two(), relevance=tmp_path / "faq.tsv")
    evaluate(encoder, relevance=tmp_path / "faq.tsv")
    assert model.seen["text"] == []


def test_texts_of_one_kind_have_no_side():
    model = Two()
    load_scorer(model).query_document_vectors(QUERIES, TEXTS)
    assert (model.seen["query"], model.seen["document"]) == ([], [])


def test_vectors_of_a_side_that_are_not_finite_are_counted():
    def broken(texts):
        return np.full((len(texts), 2), np.nan)

    encoder = Scorer(lambda texts: np.ones((len(texts), 2)), "odd", searching=(broken, None))
    for _ in range(2):
        encoder.query_document_vectors(["a", "b"], ["c"], search=True)
    assert encoder.broken == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_asked_without_its_prompts_or_with_others(kind, peer_of, tmp_path):
    peer = peer_of(**KINDS[kind])
    peer.save(str(tmp_path), create_model_card=False)
    bare = load_scorer(str(tmp_path), prompts=Prompts()).query_document_vectors(QUERIES, TEXTS, search=True)
    include = KINDS[kind].get("include_prompt", True)
    plain = peer_of(include_prompt=include)
    for vectors, texts in zip(bare, (QUERIES, TEXTS), strict=True):
        np.testing.assert_allclose(vectors, unit(plain.encode(texts)), atol=2e-5)
    other = peer_of(include_prompt=include, prompts={"query": "ga ", "document": "ko "})
    found = load_scorer(f"{tmp_path}+words", prompts=Prompts("ga ", "ko ")).scorer
    found = found.query_document_vectors(QUERIES, TEXTS, search=True)
    for vectors, theirs in zip(found, (other.encode_query(QUERIES), other.encode_document(TEXTS)), strict=True):
        np.testing.assert_allclose(vectors, unit(theirs), atol=2e-5)


def test_prompts_are_for_one_encoder_that_has_some(peer_of, tmp_path):
    peer_of().save(str(tmp_path), create_model_card=False)
    with pytest.raises(SettingsError, match="has no prompts that could be left out"):
        load_scorer(str(tmp_path), prompts=Prompts())
    for name in ("bm25", f"bundled+rerank:{tmp_path}"):
        with pytest.raises(SettingsError, match="prompts are for one encoder of a directory or hub id"):
            load_scorer(name, prompts=Prompts())
