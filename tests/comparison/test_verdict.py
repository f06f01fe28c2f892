from dataclasses import replace

import numpy as np
import pytest

import selfsent as package
from selfsent.comparison import Selection
from selfsent.evaluation.results import Score


def score(value, shift=0.0):
    samples = value + np.random.default_rng(0).normal(size=1000) + shift
    return Score("context", value, value - 2, value + 2, 100, "context", {"tfidf": 50.0}, samples=samples)


def selection(base, **scores):
    run = package.Run(None, {"steps": 3}, None, [])
    found = Selection(
        None, "context", base, (), seeds=max(len(s) if isinstance(s, list) else 1 for s in scores.values())
    )
    for name, given in scores.items():
        for number, one in enumerate(given if isinstance(given, list) else [given]):
            found = found.beside(name, replace(run, record={"asked": {"settings": {"seed": number}}}), one)
    return found


def test_an_untrained_base_that_is_best_is_kept():
    found = selection(score(30.0), simcse=score(29.0), mlm=score(20.0))
    assert found.chosen is None
    assert found.rivals == {}
    assert "No method made the base better" in found.verdict()[-1]
    with pytest.raises(package.errors.SettingsError, match="no model to load"):
        _ = found.model


def test_those_that_cannot_be_told_from_the_best_are_named():
    noise = np.random.default_rng(1).normal(size=1000)
    found = selection(score(20.0), simcse=score(30.0), ntxent=score(29.9, noise), mlm=score(25.0))
    assert found.chosen.name == "simcse"
    assert set(found.rivals) == {"ntxent"}
    assert found.verdict()[-1].startswith("Not told apart from it by these items: ntxent (p ")


def test_a_method_that_hangs_on_its_seed_is_not_told_from_one_that_does_not():
    still, wild = [score(30.0)] * 3, [score(20.0), score(31.0), score(42.0)]
    found = selection(score(5.0), steady=still, wild=wild, fragile=score(6.0))
    assert found.chosen.shown == "31.00 ± 11.00"
    assert set(found.rivals) == {"steady"}
    assert found.verdict() == [
        "Chosen: wild; the model is its run with seed 2",
        f"Not told apart from it by these items and seeds: steady (p {found.rivals['steady']:.2f})",
    ]


def test_methods_that_had_hardly_any_time_are_named():
    def run(steps, **settings):
        return package.Run(None, {"steps": steps, "asked": {"settings": {"seed": 0, **settings}}}, None, [])

    found = Selection(None, "context", score(20.0), ())
    for name, ran in {
        "tsdae": run(40, budget=15.0), "simcse": run(1, budget=15.0), "mlm": run(3, budget=None), "zscore": run(0),
    }.items():  # fmt: skip
        found = found.beside(name, ran, score(15.0))
    assert found.verdict()[:-1] == found.hurried == ["simcse took no more than 1 step: too few to judge it by"]
