import numpy as np
import pytest

from naive import words as naive
from selfsent.data.vector_files import inner
from selfsent.evaluation import evaluate
from selfsent.lexical import Analyzer, language_of
from selfsent.scorers.load_scorer import load_scorer

TEXTS = ["the red car stops", "a red bus, a red car", "the train is late again", "late", "!?", "the red car stops"]
QUERIES = ["red car", "the late train", "unknown words", "red red bus"]


def by_hand(kind, query, text, texts):
    if kind == "bm25":
        terms = Analyzer(language_of(texts))
        return naive.bm25_share(terms(query), terms(text), [terms(each) for each in texts])
    return naive.tfidf_cosine(query, text, texts)


@pytest.mark.parametrize("kind", ["tfidf", "bm25"])
def test_texts_are_found_as_by_loops(kind):
    found = inner(*load_scorer(kind).query_document_vectors(QUERIES, TEXTS))
    expected = [[by_hand(kind, query, text, TEXTS) for text in TEXTS] for query in QUERIES]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["tfidf", "bm25"])
def test_pairs_are_weighed_by_the_texts_of_both_sides(kind):
    left, right = ["red car", "the late train", "late"], ["the red car", "late", "late"]
    texts = [*dict.fromkeys([*left, *right])]
    expected = [by_hand(kind, a, b, texts) for a, b in zip(left, right, strict=True)]
    assert load_scorer(kind).similarity(left, right) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["tfidf", "bm25"])
def test_texts_without_words_are_near_nothing(kind):
    assert inner(*load_scorer(kind).query_document_vectors(["!"], ["?", ""])).tolist() == [[0, 0]]
    assert load_scorer(kind).similarity(["!"], ["?"]).tolist() == [0]


@pytest.mark.parametrize("kind", ["tfidf", "bm25"])
def test_they_are_models_where_no_vectors_are_needed(kind, tmp_path):
    (tmp_path / "pairs.tsv").write_text("a red car\tthe red car\t5\na red car\tlate trains\t0\nred bus\tred car\t3\n")
    (tmp_path / "found.tsv").write_text("red car\tthe red car stops\nlate train\tthe train is late\nbus\tthe bus\n")
    found = evaluate(kind, pairs=tmp_path / "pairs.tsv", relevance=tmp_path / "found.tsv")
    assert found.scores["pairs"].score == found.scores["found"].score == 100
    assert f"|pool:{kind}|" in found.scores["pairs"].signature
