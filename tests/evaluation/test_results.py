import json

import pytest

from selfsent.evaluation.results import Result, measure, signature
from selfsent.stats.metrics import mean


def scored(name, values=(0.2, 0.4, 0.9), **more):
    return measure(name, mean(values), len(values), signature=signature(name, "mean", n=len(values), v=1), **more)


def test_json_has_the_agreed_keys():
    result = Result("m", {"a": scored("a", metrics={"other": mean([1, 0, 0])})}, "toy", ("a",))
    plain = json.loads(json.dumps(result.to_json()))
    assert plain["model"] == "m"
    assert plain["average"] == pytest.approx(50)
    score = plain["scores"]["a"]
    assert score["score"] == pytest.approx(50)
    assert score["low"] <= 50 <= score["high"]
    assert score["n"] == 3
    assert score["signature"] == "a|mean|n:3|v:1"
    assert score["other"] == pytest.approx(100 / 3)
    assert "samples" not in score


def test_average_over_an_incomplete_suite_says_so():
    result = Result("m", {"a": scored("a")}, "toy", ("a", "b"), {"b": "nowhere"})
    assert result.missing == ("b",)
    assert result.average_label == "average of 1 of 2"
    plain = result.to_json()
    assert plain["average_complete"] is False
    assert plain["average_over"] == ["a"]
    assert plain["absent"] == {"b": "nowhere"}
    assert "average of 1 of 2" in result.to_markdown()
    assert "b is absent: nowhere" in result.to_markdown()


def test_printed_it_is_what_the_terminal_shows():
    text = str(Result("[b]m", {"a": scored("a")}, "toy", ("a", "b"), {"b": "nowhere"}))
    assert text.startswith("[b]m\n")
    for part in ("│ a ", " 50.00 │", "average of 1 of 2", "\na|mean|n:3|v:1\n"):
        assert part in text
    assert text.endswith("\nb is absent: nowhere")


def test_names_are_shown_as_they_are_and_forge_nothing():
    name = "a|data:000000|`<b>[x](y)\n*z*"
    result = Result("<i>m</i>", {name: scored(name)})
    assert result.scores[name].signature == "a_data:000000__<b>[x](y)_*z*|mean|n:3|v:1"
    cells = next(line for line in result.to_markdown().splitlines() if "data" in line)
    assert cells.startswith("| a\\|data:000000\\|\\`\\<b>\\[x\\](y) \\*z\\* |")
