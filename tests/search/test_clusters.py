import math
from collections import Counter

import numpy as np
import pytest

from selfsent.errors import SettingsError
from selfsent.search import clusters as module
from selfsent.search import find_clusters, telling_words
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
    with pytest.raises(SettingsError, match=f"--clusters is {count}"):
        find_clusters(blobs([30, 30])[0], count)


def test_equal_rows_make_one_group():
    with pytest.warns(match="distinct clusters"):
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
    expected = []
    for own in words:
        weight = {}
        for word, count in own.items():
            p, q = count / own.total(), total[word] / total.total()
            if p / q >= 2 - 1e-9:
                weight[word] = p * math.log(p / q)
        expected.append(sorted(weight, key=lambda word: (-weight[word], word))[:3])
    found = telling_words(texts, clusters, 3)
    assert found[1] == expected[1] == ["train", "bus", "late"]
    assert "the" not in found[0] + found[1]


def test_texts_without_words_have_none():
    assert telling_words(["1 2", "..."], Clusters(np.array([0, 1]), np.ones(2, np.float32))) == [[], []]
