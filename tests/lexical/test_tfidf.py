import numpy as np
import pytest

from naive import words as naive
from selfsent.data.vector_files import inner
from selfsent.lexical import Analyzer, WordCounts

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
