from dataclasses import replace

import numpy as np
import pytest

import selfsent as package
from selfsent.comparison import Selection
from selfsent.evaluation.results import Score

NOISE = np.random.default_rng(0).normal(size=1000)


def score(value, shift=0.0):
    return Score("context", value, value - 2, value + 2, 100, "context", samples=value + NOISE + shift)


def selection(base, **scores):
    run = package.Run(None, {"config": {"settings": {"seed": 0}}}, None, [])
    found = Selection(None, "context", {"untrained": base}, ())
    for name, one in scores.items():
        found = found.with_run(name, run, one)
    return found


def test_an_untrained_base_that_is_best_is_kept():
    found = selection(score(30.0), simcse=score(29.0), mlm=score(20.0))
    assert found.chosen is None
    assert found.best == "untrained"
    assert found.rivals == {}
    assert found.conclusion[1].startswith("No method made it better: use it as it is")
    with pytest.raises(package.errors.SettingsError, match="no model to load"):
        _ = found.model


def test_those_that_cannot_be_told_from_the_best_are_named():
    noise = np.random.default_rng(1).normal(size=1000)
    found = selection(score(20.0), simcse=score(30.0), ntxent=score(29.9, noise), mlm=score(25.0))
    assert found.chosen.name == "simcse"
    assert set(found.rivals) == {"ntxent"}
    assert found.remarks[-1].startswith("The items it was chosen by do not tell simcse from ntxent (p ")


def test_methods_that_had_hardly_any_time_are_named():
    def run(steps, **settings):
        return package.Run(None, {"steps": steps, "config": {"settings": {"seed": 0, **settings}}}, None, [])

    found = Selection(None, "context", {"untrained": score(20.0)}, ())
    for name, ran in {
        "tsdae": run(40, budget=15.0), "simcse": run(1, budget=15.0), "mlm": run(3, budget=None), "zscore": run(0),
    }.items():  # fmt: skip
        found = found.with_run(name, ran, score(15.0))
    assert found.remarks == found.hurried == ["simcse took no more than 1 step: too few to judge it by"]


def test_each_candidate_is_held_against_its_own_base_and_the_choice_against_all():
    run = package.Run(None, {"config": {"settings": {"seed": 0}}}, None, [])
    found = Selection(None, "context", {"a, untrained": score(20.0), "b, untrained": score(40.0)}, ())
    found = found.with_run("mlm from a", run, score(30.0), "a, untrained")
    assert found.candidates[0].gain.difference == pytest.approx(10)
    assert (found.chosen, found.best) == (None, "b, untrained")
    found = found.with_run("mlm from b", run, score(41.0), "b, untrained")
    assert (found.best, found.chosen.start) == ("mlm from b", "b, untrained")
    assert list(found.scores) == ["mlm from b", "b, untrained", "mlm from a", "a, untrained"]


WIDE = 40 * np.random.default_rng(1).normal(size=1000)
"""What makes a difference unsure."""


def concluded(best=35.0, base=30.0, tfidf=20.0, bm25=19.0, tests=None, unsure=0, was_strong=False):
    """The conclusion from scores, of which one shared noise leaves every difference sure but those of `unsure`."""
    words = {"TF-IDF": score(tfidf, unsure), "BM25": score(bm25, unsure)}
    found = selection(score(base), simcse=score(best))
    return replace(found, baselines=words, tests=tests or {}, was_strong=was_strong).conclusion


def test_an_encoder_that_beats_words_and_its_base_is_used():
    headline, advice = concluded()
    assert headline == "simcse beats TF-IDF and BM25 here"
    assert advice == "Use its model. It beats the untrained base, too: +5.00 [+5.00, +5.00]."


def test_from_a_sentence_encoder_a_choice_without_labels_is_for_what_its_score_asks():
    """From such a base it was worth nothing by labels of topics and paraphrases: docs/log/evaluation.md."""
    assert concluded(was_strong=True) == (
        "simcse beats TF-IDF and BM25 here",
        "Use its model where what it was chosen by is what you need: it beats the untrained base, +5.00 [+5.00, +5.00]."
        " For topics and paraphrases use the untrained base, which is a sentence encoder already, or label a hundred"
        " pairs with selfsent label, and choose by them with dev=FILE.",
    )
    tests = {"simcse": score(35.0), "untrained": score(36.0)}
    assert concluded(tests=tests, was_strong=True)[1].startswith("It does worse than the untrained base: ")


def test_not_told_apart_from_words_is_no_beating():
    headline, advice = concluded(unsure=WIDE)
    assert headline == "No encoder is shown to beat TF-IDF and BM25 here"
    assert advice.startswith("Use TF-IDF, ")
    assert concluded(tfidf=36.0, unsure=WIDE)[0] == headline  # nor is it being beaten


def test_documents_apart_decide_where_there_are_any():
    """The best of several is chosen by luck, too: on other documents it may lose what it had won by."""
    tests = {"simcse": score(22.0), "untrained": score(21.0), "TF-IDF": score(24.0), "BM25": score(10.0)}
    assert concluded(tests=tests)[0] == "TF-IDF still beats the best encoder, simcse, here"
    tests["TF-IDF"] = score(12.0)
    assert concluded(tests=tests)[0] == "simcse beats TF-IDF and BM25 here"
    tests["untrained"] = score(21.0, WIDE)
    assert concluded(tests=tests)[1].startswith("It is not shown to beat the untrained base: ")
    tests["untrained"] = score(25.0)
    assert concluded(tests=tests)[1].startswith(
        "It does worse than the untrained base: -3.00 [-3.00, -3.00]. Use that as it is"
    )


def test_the_best_base_decides_whichever_the_chosen_one_began_from():
    found = Selection(None, "context", {"a": score(30.0), "untrained b": score(20.0)}, ())
    found = found.with_run("mlm from b", None, score(31.0), "untrained b")
    tests = {"mlm from b": score(30.0), "untrained b": score(20.0), "a": score(33.0)}
    headline, advice = replace(found, tests=tests).conclusion
    assert headline == "mlm from b has the best score here"
    assert advice.startswith("It does worse than a: -3.00")
    assert found.conclusion[1].startswith("Use its model. It beats a, too: +1.00")


def test_the_best_of_many_that_are_no_better_is_seldom_said_to_be():
    """Without documents apart, the best of ten is tested on what it was picked by: Romano and Wolf's correction."""
    rng = np.random.default_rng(0)
    said = 0
    for _ in range(100):
        weights = rng.multinomial(200, np.full(200, 1 / 200), 500) / 200
        base, *methods = (
            Score("own", values.mean(), 0, 0, 200, "own", samples=weights @ values)
            for values in rng.normal(size=(11, 200))
        )
        found = selection(base, **{f"m{number}": each for number, each in enumerate(methods)})
        said += found.conclusion[1].startswith("Use its model")
    assert said < 8  # 30 without it
