import numpy as np
import pytest

from selfsent.errors import DataError
from selfsent.evaluation.encoders import as_encoder
from selfsent.papers.analysis import word_importance
from selfsent.papers.words import tag


def only_nouns(texts):
    """Vectors in which only long words count, each by a direction of its own."""

    def vector(word):
        return np.random.default_rng(list(word.encode())).normal(size=32)

    start = np.full(32, 0.01)
    return np.stack([sum((vector(w) for w in text.split() if len(w) > 4), start.copy()) for text in texts])


def test_the_decisive_words_are_those_the_model_looks_at():
    left = ["the garden is big", "we saw a kitchen", "it was on paper"]
    found = word_importance(as_encoder(only_nouns), left, ["big garden", "kitchen", "paper"])
    assert found.decisive == {"NOUN": 1.0}
    assert found.sentences == 3
    assert sum(found.present.values()) == pytest.approx(1)
    assert found.present["NOUN"] < 0.5


def test_a_tagger_can_be_given_and_single_words_are_left_out():
    found = word_importance(
        as_encoder(only_nouns), ["one garden", "garden"], ["garden"] * 2, lambda words: ["X"] * len(words)
    )
    assert found.decisive == {"X": 1.0}
    assert found.sentences == 1
    with pytest.raises(DataError, match="two words"):
        word_importance(as_encoder(only_nouns), ["garden"], ["garden"])


def test_tags_of_plain_sentences():
    words = ["The", "old", "dog", "quickly", "followed", "Maria", "to", "3", "gardens", "."]
    assert tag(words) == ["DET", "ADJ", "NOUN", "ADV", "VERB", "PROPN", "PART", "NUM", "NOUN", "PUNCT"]
    assert tag(["They", "argue", "about", "movement"]) == ["PRON", "VERB", "ADP", "NOUN"]
    assert tag([]) == []
