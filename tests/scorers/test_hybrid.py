import numpy as np
import pytest

import tiny
from naive import words as naive
from selfsent.comparison.trials import known_bases
from selfsent.data.vector_files import inner, unit
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation import evaluate
from selfsent.evaluation.tasks.published import finds_its_row as by_translation
from selfsent.lexical import Analyzer
from selfsent.scorers.lexical import Hybrid
from selfsent.scorers.load_scorer import check_model, load_scorer
from selfsent.scorers.scorer import Scorer

TEXTS = ["the red car stops", "a red bus, a red Car", "the train is late again", "late", "!?", "the red car stops"]
QUERIES = ["red car", "the late train", "unknown words", "red red bus", "?"]


def vectors_of(texts):
    return np.array([[len(text), text.count("a") + 1, 3.0] for text in texts], np.float32)


def test_words_are_added_to_the_cosine():
    plain = Scorer(vectors_of, "m")
    plain.lexical_weight = 0.7
    encoder = Hybrid(plain)
    found = inner(*encoder.query_document_vectors(QUERIES, TEXTS))
    cosines = unit(vectors_of(QUERIES)) @ unit(vectors_of(TEXTS)).T
    english = Analyzer("english")
    terms = [english(text) for text in TEXTS]
    words = [[naive.bm25_share(english(query), text, terms) for text in terms] for query in QUERIES]
    np.testing.assert_allclose(found, cosines + 0.7 * np.array(words), rtol=1e-5)
    asked, goals = encoder.query_document_vectors(QUERIES, TEXTS)
    np.testing.assert_allclose(inner(asked[1:3], goals), found[1:3], rtol=1e-6)
    assert goals.shape == (len(TEXTS), 3)
    assert by_translation(*encoder.query_document_vectors(TEXTS[:2], TEXTS[:2])).tolist() == [1, 1]
    broken = Hybrid(Scorer(lambda texts: np.full((len(texts), 2), np.nan), "m"))
    broken.similarity(["a"], ["b"])
    assert broken.broken == 2
    left, right = ["red car", "the late train"], ["the red car stops", "late"]
    both = [*left, *right]
    expected = [
        float(unit(vectors_of([a]))[0] @ unit(vectors_of([b]))[0]) + 0.5 * naive.shared_words(a, b, both, english)
        for a, b in zip(left, right, strict=True)
    ]
    np.testing.assert_allclose(encoder.similarity(left, right), expected, rtol=1e-5)


def test_a_name_with_words(base_of, tmp_path):
    base = base_of("bert")
    encoder = load_scorer(f"{base}+words")
    assert (encoder.name, encoder.measure, encoder.has_vectors) == (f"{base}+words", "cos+0.5bm25", False)
    rows = [{"query": "red car", "text": "the red car"}, {"query": "late train", "text": "a train is late"}]
    score = evaluate(f"{base}+words", relevance=tiny.write_table(tmp_path / "r.jsonl", rows)).scores
    assert "cos+0.5bm25" in next(iter(score.values())).signature
    with pytest.raises(DataError, match="has no vectors, so this task cannot use it"):
        encoder(["a"])
    check_model(f"{base}+words")
    with pytest.raises(SettingsError, match=r"leave .*\+words out of `base`"):
        known_bases([str(base), f"{base}+words"])
    with pytest.raises(SettingsError, match="TF-IDF counts words already"):
        check_model("tfidf+words")
    with pytest.raises(DataError, match="has no vectors to add words to"):
        load_scorer("bm25+words")
    (tmp_path / "odd+words").mkdir()
    assert not isinstance(load_scorer(Scorer(vectors_of, str(tmp_path / "odd+words"))), Hybrid)
