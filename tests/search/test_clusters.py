import math
from collections import Counter

import numpy as np
import pytest

from selfsent.errors import SettingsError
from selfsent.search import clusters as module, find_clusters, telling_words
from selfsent.search.clusters import Clusters


def blobs(sizes, seed=0):
    """Vectors near as many axes, shuffled, and which axis each belongs to."""
    rng = np.random.default_rng(seed)
    axis = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    vectors = np.eye(8)[axis] + 0.05 * rng.normal(size=(len(axis), 8))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), axis


@pytest.mark.parametrize("many", [10**9, 50])
def test_groups_that_lie_apart_are_found_the_largest_first(many, monkeypatch):
    monkeypatch.setattr(module, "MANY", many)
    vectors, axis = blobs([60, 200, 110])
    found = find_clusters(vectors, 3)
    expected = {1: 0, 2: 1, 0: 2}
    assert found.cluster.tolist() == [expected[one] for one in axis]
    assert found.sizes.tolist() == [200, 110, 60]
    centre = vectors[axis == 1].mean(0)
    cosines = vectors[axis == 1] @ (centre / np.linalg.norm(centre))
    np.testing.assert_allclose(found.cosine[axis == 1], cosines, atol=0.01 if many == 50 else 1e-5)
    assert found.typical(0).tolist() == [int(np.flatnonzero(axis == 1)[found.cosine[axis == 1].argmax()])]


def test_the_same_seed_gives_the_same_groups():
    vectors = blobs([30, 30])[0]
    np.testing.assert_array_equal(find_clusters(vectors, 5, 3).cluster, find_clusters(vectors, 5, 3).cluster)


@pytest.mark.parametrize("count", [1, 61])
def test_a_number_that_cannot_be_is_refused(count):
    with pytest.raises(SettingsError, match=f"clusters is {count}"):
        find_clusters(blobs([30, 30])[0], count)


def test_equal_rows_make_one_group():
    found = find_clusters(np.eye(3, dtype=np.float32)[[0, 0, 1, 1, 1]], 4)
    assert found.sizes.tolist() == [3, 2]


def test_telling_words_are_those_of_the_equation():
    texts = ["the cat and the dog", "the cat purrs at 9", "the train and the bus", "a late TRAIN"]
    clusters = Clusters(np.array([0, 0, 1, 1]), np.ones(4, np.float32))
    words = [
        Counter(["the", "cat", "and", "the", "dog", "the", "cat", "purrs", "at"]),
        Counter(["the", "train", "and", "the", "bus", "late", "train"]),
    ]
    total = sum(words, Counter())
    vocabulary = len(total)
    for number, own in enumerate(words):
        other, weight = total - own, {}
        for word, count in own.items():
            p, q = count / own.total(), (other[word] + 0.5) / (other.total() + 0.5 * vocabulary)
            if p / q >= 2:
                weight[word] = p * math.log(p / q)
        expected = sorted(weight, key=lambda word: (-weight[word], word))
        assert telling_words(texts, clusters, 20)[number] == expected
    assert telling_words(texts, clusters, 1) == [["cat"], ["train"]]


def test_a_group_of_most_sentences_has_telling_words_too():
    texts = ["a cat is here"] * 9 + ["a dog is here"]
    clusters = Clusters(np.array([0] * 9 + [1]), np.ones(10, np.float32))
    assert telling_words(texts, clusters) == [["cat"], ["dog"]]


def test_a_word_without_end_is_no_telling_word():
    texts = ["cat " + "x" * 5000, "dog"]
    assert telling_words(texts, Clusters(np.array([0, 1]), np.ones(2, np.float32))) == [["cat"], ["dog"]]


def test_texts_without_words_have_none():
    assert telling_words(["1 2", "..."], Clusters(np.array([0, 1]), np.ones(2, np.float32))) == [[], []]
