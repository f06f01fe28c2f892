import math
from collections import Counter

import numpy as np
import pytest

from selfsent.errors import SettingsError
from selfsent.search import find_clusters
from selfsent.search.clusters import Centres, Clusters, parents_of, telling_words
from selfsent.search.timeline import bars, counts_over


def blobs(sizes, seed=0):
    """Vectors near as many axes, shuffled, and which axis each belongs to."""
    rng = np.random.default_rng(seed)
    axis = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    vectors = np.eye(8)[axis] + 0.05 * rng.normal(size=(len(axis), 8))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), axis


@pytest.mark.parametrize("many", [10**9, 50])
def test_groups_that_lie_apart_are_found_the_largest_first(many):
    vectors, axis = blobs([60, 200, 110])
    found = find_clusters(vectors, 3, many=many)
    expected = {1: 0, 2: 1, 0: 2}
    assert found.cluster.tolist() == [expected[one] for one in axis]
    assert found.sizes.tolist() == [200, 110, 60]
    centre = vectors[axis == 1].mean(0)
    cosines = vectors[axis == 1] @ (centre / np.linalg.norm(centre))
    np.testing.assert_allclose(found.cosine[axis == 1], cosines, atol=0.01 if many == 50 else 1e-5)
    assert found.typical(0).tolist() == [int(np.flatnonzero(axis == 1)[found.cosine[axis == 1].argmax()])]


def test_copies_of_a_row_take_no_row_out_of_its_group():
    vectors, axis = blobs([60, 60, 60])
    found = find_clusters(np.concatenate([vectors, vectors[:1].repeat(20, axis=0)]), 3)
    assert found.outliers == 0
    assert len({*zip(axis.tolist(), found.cluster.tolist(), strict=False)}) == 3


def test_the_same_seed_gives_the_same_groups():
    vectors = blobs([30, 30])[0]
    np.testing.assert_array_equal(find_clusters(vectors, 5, 3).cluster, find_clusters(vectors, 5, 3).cluster)


def test_the_number_is_that_of_the_groups_and_what_is_like_nothing_is_in_none():
    vectors, axis = blobs([60, 200, 110, 50])
    odd = np.random.default_rng(1).normal(size=(3, 8)) - 3
    odd = (odd / np.linalg.norm(odd, axis=1, keepdims=True)).astype(np.float32)
    found = find_clusters(np.vstack([vectors, odd]))
    order = {1: 0, 2: 1, 0: 2, 3: 3}
    right = np.array([order[one] for one in axis])
    inside = found.cluster[: len(axis)]
    assert len(found.sizes) == 4
    assert ((inside == right) | (inside == -1)).all()
    assert (inside == -1).mean() < 0.1
    assert (found.cluster[len(axis) :] == -1).all()
    assert found.outliers == (found.cluster == -1).sum()
    assert found.sizes.sum() + found.outliers == len(vectors) + 3


@pytest.mark.parametrize("rows", [2, 9, 40])
def test_rows_too_few_or_all_alike_are_one_group(rows):
    found = find_clusters(np.tile(np.eye(3, dtype=np.float32)[:1], (rows, 1)))
    assert found.sizes.tolist() == [rows]
    assert found.outliers == 0


def test_new_rows_join_the_groups_of_old_ones_or_none():
    vectors, _ = blobs([60, 200, 110])
    old = find_clusters(vectors, 3)
    new, expected = blobs([20, 0, 5], seed=2)
    far = np.eye(8, dtype=np.float32)[7:]
    found = Centres.of(vectors, old.cluster).assign(np.vstack([new, far]), np.arange(1, 27))
    order = {1: 0, 2: 1, 0: 2}
    kept = found.cluster[:-1] >= 0
    assert kept.mean() > 0.8
    assert found.cluster[:-1][kept].tolist() == [order[one] for one in expected[kept]]
    assert found.cluster[-1] == -1
    assert len(found.sizes) == 3
    assert found.sizes[0] == 0
    assert found.outliers >= 26


def test_texts_over_time():
    dates = ["2026-01-30", "2026-02-02 10:00", None, "", "2026-02-02T08:00:00Z", "2026-02-03"]
    periods, counts, _ = counts_over(dates, np.array([0, 0, 0, 1, 1, -1]), 2, "created")
    assert (periods[0], periods[-1], len(periods)) == ("2026-01-30", "2026-02-03", 5)
    assert counts.tolist() == [[1, 0, 0, 1, 0], [0, 0, 0, 1, 0]]
    assert counts_over(["2024-05", "2026-01-01"], np.array([0, 0]), 1, "x")[0][::20] == ["2024-05", "2026-01"]
    assert len(counts_over([1999, 2026], np.array([0, 0]), 1, "x")[0]) == 28
    assert bars(counts[0].tolist()) == "█··█·"
    assert counts_over(["20260130", 20260201, "NaT", "nan"], np.zeros(4, np.int64), 1, "x")[1].tolist() == [[1, 0, 1]]
    far = counts_over(["2026-01-30", "9999-12-31", "0001-01-01", "2026-01-31"], np.zeros(4, np.int64), 1, "x")
    assert (far[0], far[2]) == (["2026-01-30", "2026-01-31"], 2)
    for wrong, told in (
        (["01.02.2026"], "'01.02.2026' is no date"),
        (["", None, "NaT"], "has no date"),
        (["today"], "'today' is no date"),
        ([1735689600], "'1735689600' is no date .* seconds"),
        ([1735689600000.0], "'1735689600000.0' is no date .* seconds"),
        (["20261301"], "'20261301' is no date"),
        (["2026-02-30"], "'2026-02-30' is no date"),
    ):
        with pytest.raises(SettingsError, match=told):
            counts_over(wrong, np.zeros(len(wrong), np.int64), 1, "created")


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


def test_words_of_a_language_have_no_stop_words_and_one_of_each_stem():
    texts = ["that is not printing, the printer prints", "that is the invoice, not paid"] * 3
    clusters = Clusters(np.array([0, 1] * 3), np.ones(6, np.float32))
    assert telling_words(texts, clusters, language="english") == [["printer", "printing"], ["invoice", "paid"]]


def test_a_group_of_most_sentences_has_telling_words_too():
    texts = ["a cat is here"] * 9 + ["a dog is here"]
    clusters = Clusters(np.array([0] * 9 + [1]), np.ones(10, np.float32))
    assert telling_words(texts, clusters) == [["cat"], ["dog"]]


def test_a_word_without_end_is_no_telling_word():
    texts = ["cat " + "x" * 5000, "dog"]
    assert telling_words(texts, Clusters(np.array([0, 1]), np.ones(2, np.float32))) == [["cat"], ["dog"]]


def test_words_of_marks_are_whole_and_written_as_in_the_text():
    texts = ["मेरा प्रिंटर काम नहीं", "प्रिंटर में नहीं", "नया पासवर्ड चाहिए", "पासवर्ड नया"]
    found = Clusters(np.array([0, 0, 1, 1]), np.ones(4, np.float32))
    assert [{*words[:2]} for words in telling_words(texts, found)] == [{"प्रिंटर", "नहीं"}, {"पासवर्ड", "नया"}]
    texts = ["die Straße", "der STRASSE", "das oﬃce", "dem office"]
    assert [words[0] for words in telling_words(texts, found, 1)] == ["straße", "oﬃce"]


@pytest.mark.parametrize(
    ("language", "texts", "names"),
    [
        ("turkish", ["IŞIK ve ışıklar", "İNTERNET veya internete"], [["ışık"], ["internet", "internete"]]),
        ("polish", ["drukarka nie drukuje", "faktura jest za duża"], [["drukarka", "drukuje"], ["duża", "faktura"]]),
        ("korean", ["프린터는 프린터", "비밀번호가 비밀번호를"], [["프린터"], ["비밀번호가"]]),
        ("ukrainian", ["принтер і принтери", "пароль та об'єкт"], [["принтер"], ["об'єкт", "пароль"]]),
    ],
)
def test_groups_have_names_in_other_languages(language, texts, names):
    found = telling_words(texts, Clusters(np.array([0, 1]), np.ones(2, np.float32)), language=language)
    assert [sorted(words) for words in found] == names


def test_texts_without_words_have_none():
    assert telling_words(["1 2", "..."], Clusters(np.array([0, 1]), np.ones(2, np.float32))) == [[], []]


def test_a_word_counts_once_a_text():
    texts = ["rain onur onur onur onur onur", "rain wind", "rain sun", "goal match", "goal team", "goal cup"]
    found = Clusters(np.array([0, 0, 0, 1, 1, 1]), np.ones(6, np.float32))
    assert [words[0] for words in telling_words(texts, found)] == ["rain", "goal"]


def test_courtesies_name_no_group():
    texts = [
        "hello please reset my password",
        "hi the printer jams",
        "hello please a new password",
        "printer, thanks",
    ] * 3
    found = Clusters(np.array([0, 1] * 6), np.ones(12, np.float32))
    assert telling_words(texts, found, language="english") == [["password", "new", "reset"], ["printer", "jams"]]


def test_texts_of_nothing_but_courtesies_are_in_no_group_unless_a_number_is_asked_for():
    vectors, labels = blobs([40, 30, 20])
    empty = labels == 2
    found = find_clusters(vectors, empty=empty)
    assert len(found.sizes) == 2
    assert (found.cluster[empty] == -1).all()
    assert sorted(find_clusters(vectors, 3, empty=empty).sizes.tolist()) == [20, 30, 40]
    assert find_clusters(vectors, empty=np.ones(90, np.bool_)).outliers < 90


def test_a_new_text_of_courtesies_alone_joins_no_group():
    vectors, labels = blobs([30, 30])
    empty = np.arange(60) == 0
    assert Centres.of(vectors, labels).assign(vectors, empty=empty).cluster.tolist() == [-1, *labels[1:].tolist()]


def test_parents_are_the_parts_of_the_hierarchy_that_lie_apart():
    vectors, _ = blobs([20, 20])
    near = np.concatenate([vectors[:3], vectors[3:6]])
    axes = [int(each.argmax()) for each in near]
    order = dict.fromkeys(axes)
    assert parents_of(near).tolist() == [list(order).index(axis) for axis in axes]
    assert parents_of(near[:3]).tolist() == [0, 0, 0]


def test_many_texts_are_named_by_some_of_them():
    texts = ["the printer jams", "unread", "a lost password", "unread"] * 5
    found = Clusters(np.array([0, 0, 1, 1] * 5), np.ones(20, np.float32))
    assert telling_words(texts, found, language="english", maximum=10) == [["jams", "printer"], ["lost", "password"]]
