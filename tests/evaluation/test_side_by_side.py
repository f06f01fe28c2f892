import json
from dataclasses import replace

import numpy as np
import pytest

from selfsent.display import text_of
from selfsent.errors import SettingsError
from selfsent.evaluation.results import Result, measure, signature
from selfsent.evaluation.side_by_side import side_by_side
from selfsent.recipes.seeds import Spread
from selfsent.report.evaluation import Report
from selfsent.stats.metrics import mean

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


def test_a_spread_has_the_interval_of_its_mean_by_students_t():
    spread, half = Spread.of([80.0, 82.0, 84.0]), 4.3027 * 2 / 3**0.5
    assert (str(spread), spread.interval) == ("82.00 ± 2.00", pytest.approx((82 - half, 82 + half), abs=1e-3))
    alone = Spread.of([1.0])
    assert (str(alone), alone.deviation, alone.interval) == ("1.00", 0.0, (None, None))


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
