from selfsent.report.differences import differences

BASE, TFIDF = {"score": 4.0, "low": 3.0, "high": 5.0}, {"score": -9.0, "low": -11.0, "high": -7.0}


def test_differences_are_named_by_what_the_trained_encoder_is_held_against():
    scores = {"base": {}, "trained": {}, "tfidf": {}, "over_tfidf": TFIDF, "difference": BASE}
    assert list(differences(scores).items()) == [("base", BASE), ("TF-IDF", TFIDF)]
    assert list(differences(scores, "untrained")) == ["untrained", "TF-IDF"]


def test_a_run_of_an_earlier_version_has_one():
    assert differences({"difference": BASE}) == {"base": BASE}
