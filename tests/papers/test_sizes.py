import pytest

from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.datasets.declared import Rows, Store
from selfsent.papers.sizes import sizes


class Held:
    """A store that holds one data set."""

    def __init__(self, **columns):
        self.rows = Rows("made", columns, "000000")

    def load(self, dataset):
        return self.rows


def test_candidates_are_counted_by_query_and_each_text_once():
    store = Held(
        query=["1", "1", "1", "2", "2"],
        sentence1=["a b", "a b", "a b", "c", "c"],
        sentence2=["d e f", "c", "g", "d e f", ""],
        relevant=[1, 0, 1, 0, 1],
    )
    found = sizes("askubuntu", store)
    assert found["here"] == {
        "queries": 2,
        "relevant per query": 1.5,
        "candidates per query": 2.5,
        "words per text": (2 + 1 + 3 + 1) / 4,
    }
    assert found["published"]["relevant per query"] == 5.4  # of the test queries, not of the development's


def test_a_query_of_two_subsets_is_two():
    store = Held(
        subset=["cite", "cite", "coread"],
        query=["1", "1", "1"],
        sentence1=["a"] * 3,
        sentence2=["b", "c", "d"],
        relevant=[1, 0, 1],
    )
    assert sizes("scidocs", store)["here"]["queries"] == 2
    assert sizes("scidocs", store)["here"]["candidates per query"] == 1.5


def test_the_candidates_of_a_forum_are_its_posts_without_the_queries():
    store = Held(
        forum=["x"] * 4 + ["y"] * 3, id=list("abcdefg"), text=["t"] * 7, relevant=["c d", "d", "", "", "f g", "", ""]
    )
    assert sizes("cqadupstack", store)["here"] == {
        "queries": 3,
        "relevant per query": 5 / 3,
        "candidates per query": 2,
        "words per text": 1,
    }


def test_debatable_pairs_are_no_paraphrases():
    store = Held(sentence1=["a"] * 4, sentence2=["b c"] * 4, score=[5.0, 4.0, 3.0, 1.0], subset=["pit"] * 4)
    assert sizes("twitterpara", store)["here"] == {"paraphrases": 2, "other pairs": 2, "words per text": 1.5}


def test_what_is_not_here_or_no_task_of_useb(tmp_path):
    with pytest.raises(SettingsError, match=r"tasks of USEB, and stsb is none; there are askubuntu, .*scidocs$"):
        sizes("stsb", Store(tmp_path))
    with pytest.raises(DataError, match="askubuntu is absent"):
        sizes("askubuntu", Store(tmp_path))
