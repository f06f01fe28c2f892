import numpy as np
import pytest

from naive.metrics import cosine
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.tasks import grouping
from selfsent.evaluation.tasks.grouping import nearest_neighbours, v_measures
from selfsent.evaluation.tasks.own import OWN

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(grouping, "ROWS", 400)
    monkeypatch.setattr(grouping, "DRAWS", 4)
    monkeypatch.setattr(grouping, "BLOCK", 7)


def test_nearest_neighbours_by_hand():
    vectors = RNG.standard_normal((40, 3)).astype(np.float32)
    labels = RNG.integers(0, 3, 40)
    texts = [f"text {n % 31}" for n in range(40)]  # nine are there twice
    found = nearest_neighbours(vectors, labels, texts)
    for row in range(40):
        others = [n for n in range(40) if texts[n] != texts[row]]
        nearest = max(others, key=lambda n: cosine(vectors[row], vectors[n]))
        assert found[row] == (labels[nearest] == labels[row])


def test_equal_vectors_are_right_as_often_as_chance():
    labels = np.array([0, 0, 0, 1])
    found = nearest_neighbours(np.ones((4, 2), np.float32), labels, list("abcd"))
    np.testing.assert_allclose(found, [2 / 3, 2 / 3, 2 / 3, 0])


def test_rows_that_are_all_one_text_have_no_neighbour():
    assert not nearest_neighbours(np.ones((3, 2), np.float32), np.zeros(3, np.int64), ["a"] * 3).any()


def test_groups_that_are_apart_have_a_v_measure_of_one():
    labels = np.repeat([0, 1, 2], 30)
    vectors = np.eye(3, 5, dtype=np.float32)[labels] + 0.01 * RNG.standard_normal((90, 5)).astype(np.float32)
    assert v_measures(vectors, labels) == pytest.approx([1.0] * 4)
    random = v_measures(RNG.standard_normal((90, 5)).astype(np.float32), labels)
    assert max(random) < 0.3
    assert len(set(random)) > 1
    assert v_measures(vectors, labels) == v_measures(vectors, labels)


def test_labels_have_both_beside_the_accuracy(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text(
        "".join(f"{'good' if n % 2 else 'bad'} text {n}\t{'plus' if n % 2 else 'minus'}\n" for n in range(40))
    )
    read, score = OWN["labels"]
    aside = as_encoder(lambda texts: np.array([[text.startswith("good"), 1] for text in texts], np.float32))
    found = score(read(path), aside)
    assert found.metrics == pytest.approx({"nearest_neighbour": 100, "v_measure": 100})
    assert found.intervals["nearest_neighbour"] == (100, 100)
    assert found.to_json()["v_measures"] == pytest.approx([100] * 4)
    assert "nearest_neighbour 100.00 (100.00 to 100.00)  v_measure 100.00" in "  ".join(found.beside)
