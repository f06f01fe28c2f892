"""A stronger model that puts the best of a search in order."""

import numpy as np
import pytest
from torch import nn

from naive import words as naive
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation import evaluate
from selfsent.evaluation.tasks.retrieval import RetrievalTask
from selfsent.index import Index, write_index
from selfsent.lexical.analyzer import words_of
from selfsent.models.cross_encoder import CrossEncoder
from selfsent.models.encoding import encode
from selfsent.models.fingerprint import fingerprint
from selfsent.models.loading import load_encoder
from selfsent.resumable import VectorsOfTexts
from selfsent.scorers.load_scorer import as_reranker, check_model, load_scorer
from selfsent.scorers.rerank import Reranked
from selfsent.search import search

QUERIES = ["ba de fi", "go la nu", "xq zw"]


@pytest.fixture(autouse=True)
def made(tmp_path, monkeypatch):
    """The texts that rerankers have encoded."""
    made = []

    class Counting(VectorsOfTexts):
        def __init__(self, path, encode):
            super().__init__(path, lambda texts: made.extend(texts) or encode(texts))

    monkeypatch.setattr("selfsent.scorers.scorer.VectorsOfTexts", Counting)
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    return made


@pytest.fixture
def strong(encoder_of, tmp_path):
    """Another encoder, with prompts and a weight of words of its own."""
    model = encoder_of("bert", initializer_range=0.9)
    model.lexical_weight = 0.3
    model.sentence_transformer.prompts = {"query": "ko mi ", "document": "sa "}
    model.save(tmp_path / "strong")
    return load_encoder(tmp_path / "strong")


def expected(strong, queries, found, texts, top, weight):
    """The candidates by the cosine of their vectors, prompts in front, and the words that were found."""
    ranked = []
    for query, hits in zip(queries, found, strict=True):
        [asked] = encode(strong, [f"ko mi {query}"]).astype(np.float64)
        scores = {}
        for hit in hits:
            [held] = encode(strong, [f"sa {texts[hit.row]}"]).astype(np.float64)
            cosine = asked @ held / np.linalg.norm(asked) / np.linalg.norm(held)
            scores[hit.row] = cosine, cosine + weight * hit.lexical_score
        ranked.append([(row, scores[row][0]) for row in sorted(scores, key=lambda row: -scores[row][1])[:top]])
    return ranked


@pytest.mark.parametrize(("given", "weight"), [(None, 0.3), (0.9, 0.9), (0, 0)])
def test_a_sentence_encoder_puts_candidates_in_order(encoder, strong, corpus, sentences, tmp_path, given, weight):
    first = search(encoder, corpus, QUERIES, 12)
    found = search(encoder, corpus, QUERIES, 5, lexical_weight=given, rerank=tmp_path / "strong", candidates=12)
    for hits, wanted, before in zip(found, expected(strong, QUERIES, first, sentences, 5, weight), first, strict=True):
        assert [hit.row for hit in hits] == [row for row, _ in wanted]
        np.testing.assert_allclose([hit.dense_score for hit in hits], [cosine for _, cosine in wanted], atol=1e-5)
        assert {(hit.row, hit.lexical_score) for hit in hits} <= {(hit.row, hit.lexical_score) for hit in before}
    assert found != search(encoder, corpus, QUERIES, 5)
    assert search(encoder, corpus, QUERIES, 20, rerank=strong, candidates=3)[0][19:]  # `top` at least
    assert search(encoder, corpus, [], rerank=strong) == []


def test_vectors_are_kept_for_the_next_question(encoder, strong, corpus, tmp_path, made):
    how = {"rerank": str(tmp_path / "strong"), "candidates": 12, "top": 5}
    first = search(encoder, corpus, QUERIES[:2], **how)
    assert sorted(made) == sorted({*made})  # a text that both ask for is encoded once
    texts = len(made)
    assert search(encoder, corpus, QUERIES[:2], **how) == first
    assert len(made) == texts
    search(encoder, corpus, QUERIES, **how)
    assert texts < len(made) <= texts + 12
    strong.sentence_transformer.prompts = {"query": "ko mi ", "document": "fi "}
    strong.save(tmp_path / "strong")  # another prompt, other vectors
    before = len(made)
    assert search(encoder, corpus, QUERIES[:2], **how) != first
    assert len(made) == before + texts
    assert len([*(tmp_path / "cache" / "vectors").iterdir()]) == 2


def test_a_cross_encoder_ranks_by_its_score(encoder, encoder_of, corpus, sentences, tmp_path, made):
    crossing = CrossEncoder(encoder_of("bert", initializer_range=0.9), 1, nn.Sigmoid())
    crossing.save(tmp_path / "crossing")
    first = search(encoder, corpus, QUERIES, 9)
    found = search(encoder, corpus, QUERIES, 4, rerank=tmp_path / "crossing", candidates=9)
    for query, hits, before in zip(QUERIES, found, first, strict=True):
        scores = {hit.row: float(crossing.peer.predict([(query, sentences[hit.row])])[0]) for hit in before}
        assert [hit.row for hit in hits] == sorted(scores, key=lambda row: -scores[row])[:4]
        np.testing.assert_allclose([hit.dense_score for hit in hits], [scores[hit.row] for hit in hits], atol=1e-5)
    assert made == []
    two = CrossEncoder(encoder_of("bert"), 2, nn.Identity())
    two.save(tmp_path / "two")
    with pytest.raises(DataError, match=r"shape \(12, 2\)"):
        search(encoder, corpus, QUERIES[:1], rerank=tmp_path / "two", candidates=12)


def test_an_index_is_reranked(encoder, strong, corpus, sentences, tmp_path):
    write_index(encoder, corpus, tmp_path / "index", "m", fingerprint(encoder))
    index, vectors = Index(tmp_path / "index"), encode(encoder, QUERIES)
    first = index.search(vectors, 12, QUERIES, 0.6)
    found = index.search(vectors, 5, QUERIES, 0.6, as_reranker(strong, 12))
    for hits, wanted in zip(found, expected(strong, QUERIES, first, sentences, 5, 0.6), strict=True):
        assert [hit.row for hit in hits] == [row for row, _ in wanted]
    with pytest.raises(SettingsError, match="give `texts`"):
        index.search(vectors, rerank=strong)


def test_a_judged_search_ranks_as_search_does(encoder, strong, corpus, sentences, tmp_path, made):
    encoder.save(tmp_path / "first")
    name = f"{tmp_path / 'first'}+rerank:{tmp_path / 'strong'}"
    check_model(name)
    assert load_scorer(name).measure.endswith("cos+0.3bm25@200")
    judged = Reranked(load_scorer(str(tmp_path / "first")), as_reranker(str(tmp_path / "strong"), 12))
    scores = judged.query_document_vectors(QUERIES, sentences, search=True)
    ranked = np.argsort(-(scores[0] @ scores[1].T), axis=1, kind="stable")
    first = search(encoder, corpus, QUERIES, 70)
    found = search(encoder, corpus, QUERIES, 12, rerank=strong, candidates=12)
    for order, hits, before in zip(ranked.tolist(), found, first, strict=True):
        assert order[:12] == [hit.row for hit in hits]
        assert order[12:] == [hit.row for hit in before[12:]]
    grades = [{hits[1].row: 1} for hits in found]
    task = RetrievalTask("own", QUERIES, sentences, grades)
    assert task.score(judged).metrics["mrr@10"] == pytest.approx(50)
    assert "cos+0.5bm25>cos+0.3bm25@12" in task.score(judged).signature
    terms = [words_of(text) for text in sentences]
    shares = [naive.bm25_share(words_of(QUERIES[0]), text, terms) for text in terms]
    bm25 = load_scorer(f"bm25+rerank:{tmp_path / 'strong'}").query_document_vectors(QUERIES[:1], sentences, search=True)
    assert np.argmax(bm25[0] @ bm25[1].T) in np.argsort(-np.array(shares))[:100]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("sentence1\tsentence2\tscore\nba\tde\t1\nba\tba\t2\nko\tmi\t3\n")
    with pytest.raises(DataError, match="ranks the documents of a search, so this task cannot use it"):
        evaluate(judged, pairs=pairs)


@pytest.mark.parametrize(
    ("rerank", "candidates", "complaint"),
    [
        ("tfidf", None, "tfidf cannot rerank: give a sentence encoder or a cross-encoder"),
        ("bundled+words", None, "cannot rerank"),
        ("bundled", 0, "`candidates` is 0; it must be at least 1"),
    ],
)
def test_what_cannot_rerank(encoder, corpus, rerank, candidates, complaint):
    with pytest.raises(SettingsError, match=complaint):
        search(encoder, corpus, ["ba"], rerank=rerank, candidates=candidates)
