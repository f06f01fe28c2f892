import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from selfsent.display import text_of
from selfsent.errors import SettingsError
from selfsent.evaluation.results import Result, Score, measure, signature
from selfsent.evaluation.side_by_side import (
    Spread,
    mean_over_seeds,
    mean_score,
    seeds_of_runs,
    side_by_side,
)
from selfsent.evaluation.stats.metrics import mean
from selfsent.report.evaluation import Report

HARD = np.random.default_rng(0).normal(0.5, 0.2, 200)


def scored(name, values, data="aaaaaa"):
    return measure(name, mean(values), len(values), signature=signature(name, n=len(values), data=data, v=1))


def result(model, gain, data="aaaaaa"):
    tasks = {"a": scored("a", HARD + gain, data), "b": scored("b", HARD[:50] + 2 * gain, data)}
    return Result(model, tasks, "toy", ("a", "b"))


def test_a_steady_gain_is_sure_although_the_intervals_overlap():
    comparison = side_by_side([result("base", 0.0), result("better", 0.01)])
    (difference,) = comparison.differences["a"]
    assert difference.difference == pytest.approx(1.0)
    assert difference.p < 0.01
    base, better = (each.scores["a"] for each in comparison.results)
    assert base.high > better.low
    with pytest.raises(ValueError, match="cannot be paired"):
        better.minus(comparison.results[0].scores["b"])


def test_only_tasks_on_the_same_items_are_compared():
    other = Result("other", {"a": scored("a", HARD), "b": scored("b", HARD[:50], "bbbbbb")}, "toy", ("a", "b"))
    comparison = side_by_side([result("base", 0.0), other])
    assert comparison.tasks == ("a",)
    assert "average" not in comparison.differences
    with pytest.raises(SettingsError, match="no task in common"):
        side_by_side([result("base", 0.0), result("other", 0.0, "cccccc")])
    with pytest.raises(SettingsError, match="two models"):
        side_by_side([other])


def test_json_and_table():
    comparison = side_by_side([result("base", 0.0), result("x", 0.1), result("y", -0.1)])
    plain = json.loads(json.dumps(comparison.to_json()))
    assert plain["against"] == "base"
    assert [row["model"] for row in plain["differences"]["a"]] == ["x", "y"]
    table = comparison.table()
    assert table.row_count == 12  # two tasks and the average, each with three models below it
    assert "differences are to base" in str(comparison)
    model, score, interval, difference, p = (list(map(str, column.cells)) for column in table.columns)
    assert model == ["a", "base", "x", "y", "b", "base", "x", "y", "average", "base", "x", "y"]
    x = comparison.results[1].scores["a"]
    assert (score[2], interval[2]) == (f"{x.score:.2f}", f"{x.low:.2f} to {x.high:.2f}")
    assert (difference[1], p[1]) == ("", "")
    assert difference[2].startswith("+10.00 [")
    low, high = map(float, interval[9].split(" to "))
    assert low < comparison.results[0].average < high


def test_seeds_widen_the_interval_as_much_as_they_differ():
    """Where no item differs from another, what is left is Student's interval of a mean of so many seeds."""
    level = np.array([40.0, 43.0, 47.0, 48.0])
    flat = [Score("a", value, value, value, 10, "a|n:10", samples=np.full(200_000, value)) for value in level]
    mean = mean_score(flat)
    assert mean.score == level.mean()
    low, high = stats.t.interval(0.95, len(level) - 1, level.mean(), stats.sem(level))
    assert (mean.low, mean.high) == pytest.approx((low, high), rel=0.01)


def test_runs_with_the_same_seeds_are_paired():
    """Each seed of one is a point better than the same seed of the other, by much less than seeds differ."""
    levels = [40.0, 45.0, 50.0]
    first, second = (
        mean_score([Score("a", v + by, 0, 0, 10, "a", samples=np.full(1000, v + by)) for v in levels]) for by in (0, 1)
    )
    difference = second.minus(first)
    assert (difference.low, difference.high) == pytest.approx((1, 1))


def test_a_spread_has_the_interval_of_its_mean_by_students_t():
    spread, half = Spread.of([80.0, 82.0, 84.0]), 4.3027 * 2 / 3**0.5
    assert (str(spread), spread.interval) == ("82.00 ± 2.00", pytest.approx((82 - half, 82 + half), abs=1e-3))
    alone = Spread.of([1.0])
    assert (str(alone), alone.deviation, alone.interval) == ("1.00", 0.0, (None, None))


def test_the_mean_over_seeds_is_a_result_of_its_own():
    mean_result = mean_over_seeds([result("m-0", 0.0), result("m-1", 0.01), result("m-2", 0.02)])
    assert mean_result.model == "m-0 and 2 more seeds"
    with pytest.raises(SettingsError, match="two seeds"):
        mean_over_seeds([result("m", 0.0)])
    assert mean_result.shown("a") == f"{100 * HARD.mean() + 1:.2f} ± 1.00"
    assert mean_result.shown("average").endswith("± 1.50")
    plain = json.loads(json.dumps(mean_result.to_json()))
    assert plain["seeds"] == ["m-0", "m-1", "m-2"]
    assert plain["scores"]["a"]["deviation"] == pytest.approx(1)
    assert len(plain["scores"]["a"]["of_seeds"]) == 3
    assert plain["average_deviation"] == pytest.approx(1.5)
    assert plain["scores"]["a"]["signature"].endswith("|seeds:3")
    (difference,) = side_by_side([result("base", 0.0), mean_result]).differences["a"]
    assert difference.difference == pytest.approx(1)
    assert difference.p == pytest.approx(2 * stats.t.sf(np.sqrt(3), 2), abs=0.03)  # seeds that are 0, 1 and 2 better


@pytest.fixture
def run(tmp_path):
    def write(name, **settings):
        path = tmp_path / name
        (path / "model").mkdir(parents=True)
        (path / "run.json").write_text(json.dumps({"asked": {"method": "x", "settings": settings}}))
        return str(path)

    return write


def test_runs_that_differ_in_their_seed_alone_stand_together(run):
    first, other, second = run("a", seed=0, rate=1), run("b", seed=0, rate=2), run("c", seed=1, rate=1)
    second += "/model"
    assert seeds_of_runs([first, "bundled-raw", other, second]) == [[first, second], ["bundled-raw"], [other]]
    with_words = [f"{each}+words" for each in (first, second)]
    assert seeds_of_runs([*with_words, first, second]) == [with_words, [first, second]]
    with pytest.raises(SettingsError, match="nothing but their seed"):
        seeds_of_runs([first, other])
    with pytest.raises(SettingsError, match="the same run with the same seed"):
        seeds_of_runs([first, second, first + "/model"])


def test_an_average_over_less_than_all_tasks_says_so():
    tasks = {name: scored(name, HARD) for name in "abc"}
    without = {name: tasks[name] for name in "ab"}
    comparison = side_by_side([Result("x", without, "toy", tuple("abc")), Result("y", tasks, "toy", tuple("abc"))])
    assert [str(cell) for cell in comparison.table().columns[0].cells][::3] == ["a", "b", "average of 2 of 3"]
    assert comparison.to_json()["average_over"] == ["a", "b"]


def test_neighbours_and_groups_of_labels_stand_in_a_table_of_their_own():
    results = [result("base", 0.0), result("better", 0.01)]
    assert side_by_side(results).secondary_tables() == []
    beside = {"metrics": {"nearest_neighbour": 71.5, "v_measure": 33.25}, "intervals": {"nearest_neighbour": (70, 73)}}
    with_labels = [replace(each, scores={"mine": replace(each.scores["a"], **beside)}) for each in results]
    shown = text_of(Report(with_labels).tables[1])
    assert all(f"{model} " in shown for model in ("base", "better"))
    assert "71.50" in shown
    assert "70.00 to 73.00" in shown
    assert "33.25" in shown


def test_the_seed_of_a_recipe_is_in_every_stage_too(tmp_path):
    for seed in (1, 2):
        asked = {"stages": {"a": {"method": "mlm", "seed": seed}}, "settings": {"seed": seed}}
        (tmp_path / str(seed)).mkdir()
        (tmp_path / str(seed) / "run.json").write_text(json.dumps({"asked": asked}))
    assert seeds_of_runs([str(tmp_path / "1"), str(tmp_path / "2")]) == [[str(tmp_path / "1"), str(tmp_path / "2")]]
