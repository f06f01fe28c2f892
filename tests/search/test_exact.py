import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import selfsent
import tiny
from naive import words as naive
from selfsent.data.corpus import read_corpus
from selfsent.data.vector_files import VectorsFile
from selfsent.errors import BaseEncoderError, SettingsError
from selfsent.lexical.analyzer import words_of
from selfsent.models.encoding import encode
from selfsent.models.loading import load_encoder
from selfsent.scorers.load_scorer import load_scorer
from selfsent.search import encode_to_file, search
from selfsent.search.exact import TopHits, best_parts


def in_chunks(chunk, encoder, corpus, folder):
    """Vectors of a corpus that are read some at a time."""
    encode_to_file(encoder, corpus, folder / "v.npy")
    return VectorsFile(folder / "v.npy", chunk)


@pytest.mark.parametrize("chunk", [7, 4096])
def test_search_is_exact(encoder, corpus, sentences, chunk, tmp_path):
    queries = ["ba de fi", sentences[3]]
    vectors = encode(encoder, sentences).astype(np.float64)
    wanted = encode(encoder, queries).astype(np.float64)
    cosines = wanted @ vectors.T / np.linalg.norm(wanted, axis=1)[:, None] / np.linalg.norm(vectors, axis=1)
    told, file = [], in_chunks(chunk, encoder, corpus, tmp_path)
    found = search(encoder, corpus, queries, top=5, progress=tiny.counts(told), file=file, lexical_weight=0)
    assert sum(told) == 70
    for hits, expected in zip(found, cosines, strict=True):
        assert [hit.row for hit in hits] == np.argsort(-expected, kind="stable")[:5].tolist()
        np.testing.assert_allclose([hit.dense_score for hit in hits], np.sort(expected)[::-1][:5], atol=1e-5)
    assert found[1][0][:4] == (3, *[pytest.approx(1, abs=1e-5)] * 2, 0)


def test_a_text_without_tokens_has_cosine_zero(encoder, corpus, sentences, monkeypatch):
    vectors = encode(encoder, sentences)
    vectors[69] = 0
    monkeypatch.setattr("selfsent.search.vectors.encode_stream", lambda *_: iter([vectors]))
    (hits,) = search(encoder, corpus, [sentences[3]], top=1000, lexical_weight=0)
    assert hits[0].row == 3
    assert len(hits) == 70
    assert {hit.row: hit.dense_score for hit in hits}[69] == 0


def test_more_is_asked_for_than_there_is(encoder, corpus):
    (hits,) = search(encoder, corpus, ["ba"], top=1000)
    assert sorted(hit.row for hit in hits) == list(range(70))
    assert search(encoder, corpus, []) == []


@pytest.mark.parametrize("chunk", [7, 4096])
def test_words_are_weighed_beside_the_cosine(encoder, chunk, tmp_path):
    sentences = tiny.make_sentences(300)  # more than are counted together
    corpus = read_corpus(sentences, cache=tmp_path / "cache")
    queries, file = ["ba de fi", sentences[3], "nothing of it"], in_chunks(chunk, encoder, corpus, tmp_path)
    cosines = {hit.row: hit.dense_score for hit in search(encoder, corpus, queries, 300, lexical_weight=0)[0]}
    terms = [words_of(text) for text in sentences]
    for query, hits in zip(
        queries, search(encoder, corpus, queries, 300, file=file, lexical_weight=0.7, language="none"), strict=True
    ):
        shared = [naive.bm25_share(words_of(query), text, terms) for text in terms]
        np.testing.assert_allclose([hit.lexical_score for hit in hits], [shared[hit.row] for hit in hits], atol=1e-5)
        scores = [hit.dense_score + 0.7 * hit.lexical_score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        if query == queries[0]:
            assert {hit.row: hit.dense_score for hit in hits} == pytest.approx(cosines, abs=1e-6)
            few = search(encoder, corpus, queries, 4, lexical_weight=0.7, language="none")[0]
            assert [hit.row for hit in few] == [hit.row for hit in hits[:4]]


def test_a_query_without_known_words_ranks_by_the_cosine(encoder, corpus):
    alone, both = (search(encoder, corpus, ["xq zw!"], 70, lexical_weight=weight)[0] for weight in (0, 3))
    assert [hit.row for hit in alone] == [hit.row for hit in both]


def test_the_encoder_says_what_words_weigh_and_the_texts_their_language(encoder, tmp_path, monkeypatch):
    texts = ["the printers are printing", "an old house by the sea", "we shall go there in spring"]
    corpus = read_corpus(texts, cache=tmp_path)
    monkeypatch.setattr(encoder, "lexical_weight", 0.0)
    assert {hit.lexical_score for hit in search(encoder, corpus, ["printer"])[0]} == {0}
    monkeypatch.setattr(encoder, "lexical_weight", 100.0)
    (hits,) = search(encoder, corpus, ["printer"])
    assert (hits[0].row, hits[0].lexical_score > 0.3) == (0, True)
    assert {hit.lexical_score for hit in search(encoder, corpus, ["printer"], language="none")[0]} == {0}
    with pytest.raises(SettingsError, match="there is no language 'klingon'"):
        search(encoder, corpus, ["printer"], language="klingon")


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf"), 1001.0])
def test_a_weight_that_is_none(encoder, corpus, weight):
    with pytest.raises(SettingsError, match="`lexical_weight` is"):
        search(encoder, corpus, ["ba"], lexical_weight=weight)


@pytest.mark.parametrize(("kind", "default"), [("static", 1.5), ("bert", 0.5)])
def test_the_weight_of_words_goes_with_the_model(base_of, tmp_path, kind, default):
    model = load_encoder(base_of(kind))
    assert model.lexical_weight == default
    model.save(tmp_path / "usual")
    assert not (tmp_path / "usual" / "search.json").exists()
    model.lexical_weight = 0.25
    model.save(tmp_path / "own")
    assert load_encoder(tmp_path / "own").lexical_weight == 0.25
    assert load_scorer(f"{tmp_path / 'own'}+words").lexical_weight == 0.25
    SentenceTransformer(str(tmp_path / "own"), device="cpu")
    how = {"steps": 1, "quiet": True, "delete_words": 0.3}
    selfsent.train(tiny.make_sentences(40), "simcse", tmp_path / "own", tmp_path / "run", **how)
    assert load_encoder(tmp_path / "run").lexical_weight == 0.25
    (tmp_path / "own" / "search.json").write_text('{"lexical_weight": "much"}')
    with pytest.raises(BaseEncoderError, match=r"search.json must say lexical_weight, a number of 0 to 1,000"):
        load_encoder(tmp_path / "own")


@pytest.mark.parametrize("seed", range(4))
def test_the_best_part_of_each_owner_stays(seed):
    rng = np.random.default_rng(seed)
    owners, scores = np.sort(rng.integers(0, 5, 17)), rng.integers(0, 4, (3, 17)).astype(np.float32)
    found = best_parts(scores, owners)
    for query in range(3):
        for owner in np.unique(owners):
            own = np.flatnonzero(owners == owner)
            best = own[scores[query, own].argmax()]
            assert found[query, best] == scores[query, best]
            assert np.isneginf(found[query, own[own != best]]).all()


@pytest.mark.parametrize("cut", [1, 7, 16])
def test_an_owner_whose_parts_come_in_two_calls_is_one_hit(cut):
    rng = np.random.default_rng(0)
    owners, cosines = np.repeat(np.arange(5), [3, 1, 6, 2, 5]), rng.normal(size=(2, 17)).astype(np.float32)
    whole, parted = (TopHits(2, 4, 0.0, owners) for _ in range(2))
    whole.add(np.arange(17), cosines, None)
    for rows in (np.arange(cut), np.arange(cut, 17)):
        parted.add(rows, cosines[:, rows], None)
    assert parted.hits() == whole.hits()
    for query, hits in enumerate(whole.hits()):
        best = [max(cosines[query, owners == owner]) for owner in range(5)]
        np.testing.assert_allclose([hit.dense_score for hit in hits], sorted(best, reverse=True)[:4])
