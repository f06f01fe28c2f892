import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import tiny
from naive import words as naive
from selfsent.data.vector_files import inner
from selfsent.lexical import Analyzer, WordCounts, WordWeights, words_of

TEXTS = ["the red cars stop", "a red bus, a red car", "the train is late again", "late", "!?", "the red cars stop"]
QUERIES = ["red car", "the late train", "unknown words", "red red bus", "?", ""]


def counts_of(*parts, analyzer=None):
    counts = WordCounts(analyzer=analyzer)
    for part in parts:
        counts.add(part)
    return counts


@pytest.mark.parametrize("analyzer", [None, Analyzer("english")])
@pytest.mark.parametrize("parts", [(TEXTS,), (TEXTS[:2], [], TEXTS[2:])])
def test_shared_words_are_as_by_loops(parts, analyzer):
    counts = counts_of(*parts, analyzer=analyzer)
    found = inner(counts.weighed(QUERIES), counts.weighed(TEXTS))
    terms = analyzer or naive.words_of
    expected = [[naive.shared_words(query, text, TEXTS, terms) for text in TEXTS] for query in QUERIES]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert counts.texts == len(TEXTS)
    assert counts.weighed([]).shape == (0, counts.frequencies.size)


def test_scripts_without_spaces_count_pairs_of_signs():
    texts = ["東京タワーに行く", "猫が好き"]
    counts = counts_of(texts)
    assert (inner(counts.weighed(["東京の猫"]), counts.weighed(texts))[0] > 0).tolist() == [True, False]


def test_word_weights_are_scikit_learn_s_bit_for_bit():
    texts = [*TEXTS, *tiny.make_sentences(300, seed=3, words=(1, 30))]
    theirs = TfidfVectorizer(dtype=np.float32, analyzer=words_of)
    expected, found = theirs.fit_transform(texts), WordWeights(texts)
    for one, other in ((expected, found.rows), (theirs.transform(QUERIES), found.weighed(QUERIES))):
        assert one.shape == other.shape
        assert np.array_equal(one.toarray(), other.toarray())
        assert other.dtype == np.float32
    assert found.rows.nnz > 1000


def test_texts_without_words_weigh_nothing():
    weights = WordWeights(["!?", ""])
    assert weights.rows.shape == (2, 1)
    assert weights.rows.nnz == weights.weighed(["a word"]).nnz == 0
