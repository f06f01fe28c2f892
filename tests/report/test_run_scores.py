import pytest

from selfsent.report.scores import differences, ranked, summary

BASE, TFIDF = {"score": 4.0, "low": 3.0, "high": 5.0}, {"score": -9.0, "low": -11.0, "high": -7.0}


def test_differences_are_named_by_the_two_that_are_held_against_each_other():
    scores = {"base": {}, "trained": {}, "tfidf": {}, "over_tfidf": TFIDF, "difference": BASE}
    assert list(differences(scores).items()) == [(("trained", "untrained"), BASE), (("trained", "TF-IDF"), TFIDF)]
    search = {**scores, "words_over_bm25": BASE, "asked": "this"}
    assert next(iter(differences(search))) == ("(trained + words)", "BM25")


def test_the_best_one_is_first_and_what_was_not_scored_is_left_out():
    assert list(ranked({"base": BASE, "tfidf": TFIDF, "trained": {"score": 5.0}})) == ["trained", "base", "tfidf"]


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.5, 2, "is ahead of BM25: the difference is +1.25, and its 95 % interval, +0.50 to +2.00, does not hold"),
        (-2, -0.5, "is behind BM25: the difference is -1.25, and its 95 % interval, -2.00 to -0.50, does not hold"),
        (-1, 1, "is level with BM25: the difference is +0.00, and its 95 % interval, -1.00 to +1.00, holds zero"),
    ],
)
def test_search_is_said_to_be_ahead_of_bm25_only_where_it_is(low, high, said):
    less = {"score": (low + high) / 2, "low": low, "high": high}
    text = summary({"asked": "a title finds its text", "words_over_bm25": less})
    assert text.startswith("Asked: a title finds its text. ")
    assert said in text
