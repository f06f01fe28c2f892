import math

import numpy as np
import pytest

from selfsent.errors import DataError
from selfsent.evaluation.encoders import as_encoder
from selfsent.papers.analysis import alignment, uniformity, word_importance
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


def test_alignment_and_uniformity_match_their_definitions():
    texts = [f"words{n} words{n + 1} words{n * 2}" for n in range(12)]
    encoder = as_encoder(only_nouns)
    unit = np.asarray(encoder(texts), np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    pairs = [(i, j) for i in range(12) for j in range(12) if i != j]
    potential = np.mean([math.exp(-2 * np.sum((unit[i] - unit[j]) ** 2)) for i, j in pairs])
    assert uniformity(encoder, [*texts, texts[0]]) == pytest.approx(math.log(potential), abs=1e-5)
    expected = np.mean([np.sum((unit[i] - unit[i + 6]) ** 2) for i in range(6)])
    assert alignment(encoder, texts[:6], texts[6:]) == pytest.approx(expected, abs=1e-5)
    with pytest.raises(DataError, match="two distinct"):
        uniformity(encoder, ["a", "a"])


def test_uniformity_of_zero_vectors_is_that_of_one_point():
    def encode(texts):
        return np.array([[float(text != "zero"), 0.0] for text in texts])

    assert uniformity(as_encoder(lambda texts: np.zeros((len(texts), 4))), ["a", "b", "c"]) == 0
    assert uniformity(as_encoder(encode), ["zero", "a", "b"]) == pytest.approx(math.log((1 + 2 * math.exp(-2)) / 3))
