import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import selfsent
import tiny
from naive.similar import most_similar
from naive.words import shared_words
from selfsent.data.corpus import read_corpus
from selfsent.errors import SettingsError
from selfsent.search.pairs import Pair, TopPairs, approximate_pairs, by_tfidf, candidates_for, most_similar_pairs


def some_vectors(count, size=8, seed=0, values=None):
    """Vectors of length 1; of few values, many cosines are equal to the last bit."""
    draw = np.random.default_rng(seed)
    if values:
        vectors = np.eye(size, dtype=np.float32)[draw.integers(values, size=count)]
    else:
        vectors = draw.normal(size=(count, size)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def same(found, expected):
    assert [pair[1:3] for pair in found] == [pair[1:3] for pair in expected]
    np.testing.assert_allclose([pair[0] for pair in found], [pair[0] for pair in expected], atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(0, 70),
    top=st.integers(0, 90),
    threshold=st.sampled_from([-1.0, 0.0, 0.5, 0.999]),
    values=st.sampled_from([None, 1, 2, 5]),
    rows=st.integers(1, 9),
    columns=st.integers(1, 3),
)
def test_pairs_are_those_of_the_whole_matrix(count, top, threshold, values, rows, columns):
    vectors = some_vectors(count, seed=count, values=values)
    told = []
    found = most_similar_pairs(vectors, top, threshold, tiny.counts(told), block=(rows, rows * columns))
    assert sum(told) == count
    same(found, most_similar(vectors, top, threshold))


def test_a_pair_that_comes_twice_counts_once():
    best = TopPairs(3)
    best.add(np.float32([0.5, 0.5, 0.9]), np.array([1, 2, 4]), np.array([2, 1, 3]))
    assert best.pairs() == [Pair(pytest.approx(0.9), 3, 4), Pair(0.5, 1, 2)]


TEXTS = ["red car", "red cars", "a blue car", "the car is red red", "rain", "grey rain", "wet rain", "snow"]


@pytest.mark.parametrize(("top", "threshold", "weight"), [(100, -1.0, 0.5), (5, -1.0, 2.0), (100, 0.3, 0.5)])
def test_words_put_pairs_in_order_as_all_pairs_would_be(tmp_path, top, threshold, weight):
    corpus, vectors = read_corpus(TEXTS, cache=tmp_path), some_vectors(len(TEXTS))
    pairs = most_similar_pairs(vectors, *candidates_for(top, threshold, weight))
    found = by_tfidf(pairs, corpus, top, threshold, weight, "none", batch_size=3)
    scores = {
        (first, second): (float(vectors[first] @ vectors[second]) + weight * shared_words(one, other, TEXTS))
        / (1 + weight)
        for first, one in enumerate(TEXTS)
        for second, other in enumerate(TEXTS)
        if first < second
    }
    expected = sorted((-score, *rows) for rows, score in scores.items() if score >= threshold)[:top]
    assert [pair[1:3] for pair in found] == [each[1:] for each in expected]
    np.testing.assert_allclose([-pair.score(weight) for pair in found], [each[0] for each in expected], atol=1e-6)


def test_words_are_compared_by_their_stems(tmp_path):
    corpus = read_corpus(TEXTS, cache=tmp_path)
    pairs = [Pair(0.5, 0, 1), Pair(0.5, 0, 3)]
    words = {pair.second: round(pair.lexical_score, 2) for pair in by_tfidf(pairs, corpus, language="none")}
    assert words == {1: 0.41, 3: 0.69}
    stemmed = by_tfidf(pairs, corpus, language="english")
    assert stemmed[0] == Pair(0.5, 0, 1, pytest.approx(1))
    with pytest.raises(SettingsError, match="no language 'klingon'"):
        by_tfidf(pairs, corpus, language="klingon")


def test_the_index_finds_near_pairs_and_knows_how_many_it_misses():
    vectors = tiny.vectors_in_groups(200, noise=0.1)
    told = []
    found, recall = approximate_pairs(vectors, 50, progress=tiny.counts(told))
    assert sum(told) == 2000
    expected = most_similar_pairs(vectors, 50)
    shared = {pair[1:3] for pair in found} & {pair[1:3] for pair in expected}
    assert len(shared) >= 48
    assert recall > 0.95
    for pair in found:
        assert pair.cosine == pytest.approx(float(vectors[pair.first] @ vectors[pair.second]), abs=1e-5)


def test_recall_says_when_the_index_misses_much():
    few = {"nprobe": 1, "sample_size": 200}
    vectors = some_vectors(2000, size=24)
    found, recall = approximate_pairs(vectors, 400, **few)
    exact = {pair[1:3] for pair in most_similar_pairs(vectors, 400)}
    share = len({pair[1:3] for pair in found} & exact) / 400
    assert recall < 0.9
    assert recall == pytest.approx(share, abs=0.15)
    some, recall_of_fewer = approximate_pairs(vectors, 50, **few)
    assert approximate_pairs(vectors, 50, candidates=400, **few) == (found, recall_of_fewer)
    assert found[:50] == some
    assert recall_of_fewer != recall


def test_a_few_sentences_and_none_that_count(capfd):
    vectors = some_vectors(5)
    found, recall = approximate_pairs(vectors, 100)
    same(found, most_similar(vectors, 100))
    assert recall == 1
    assert approximate_pairs(some_vectors(5), 3, threshold=0.9999) == ([], None)
    assert capfd.readouterr().err == ""  # faiss warns of so few


def test_without_the_library_of_the_index(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(SettingsError, match=r"needs faiss: .*\[index\]"):
        approximate_pairs(some_vectors(50))


def test_pairs_in_python_are_rows_of_the_input(encoder, tmp_path):
    rows = [{"id": f"t{n}", "text": text} for n, text in enumerate(["", "ko mi", "ko mi", "ba de", "ko mi!"])]
    corpus = read_corpus(rows, metadata_columns="id", cache=tmp_path)
    encoder.save(tmp_path / "m")
    best, *_ = selfsent.pairs(tmp_path / "m", corpus, top=3)
    assert (best.first, best.second, best.ids, best.sentences) == (1, 4, ("t1", "t4"), (None, None))
