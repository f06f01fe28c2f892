import pytest

from selfsent.evaluation.datasets.published import records
from selfsent.recipes.beside import beside, over, tables
from selfsent.recipes.seeds import Seeds


def rows_of(**wanted):
    return [record for record in records() if all(record[key] == value for key, value in wanted.items())]


def test_ours_stands_beside_the_published_number_of_the_same_data():
    row = rows_of(paper="IS-BERT", table="4", method="SBERT-STSb")
    (found,) = beside(row, {"stsb": {"score": 84.0, "low": 83.0, "high": 84.9}})
    assert found.difference == pytest.approx(84.0 - 84.67)
    assert found.within is True
    (found,) = beside(row, {"stsb": {"score": 80.0, "low": 79.0, "high": 81.0}})
    assert found.within is False
    assert "-4.67" in "".join(str(cell) for column in tables([found])[0].columns for cell in column.cells)


def test_a_development_score_is_compared_with_one():
    (row,) = rows_of(paper="BSL", table="9", method="BSL")
    assert beside([row], {"stsb": {"score": 1.0}})[0].ours is None
    assert beside([row], {"stsb-dev": {"score": 79.0}})[0].ours == 79.0


def test_pearson_and_parts_of_a_task_are_found_by_name():
    row = rows_of(paper="SALBERT", table="1", method="SALBERT", group="fine-tuned on STSb")
    found = beside(row, {"stsb": {"score": 70.0, "low": 69.0, "high": 71.0, "pearson": 72.0}})
    assert {each.record["metric"]: (each.ours, each.low) for each in found} == {
        "spearman": (70.0, 69.0),
        "pearson": (72.0, None),
    }
    row = rows_of(paper="TSDAE", table="2", method="BM25")
    found = beside(row, {"twitterpara": {"score": 70.0, "twitterurl": 71.0, "pit": 69.0}})
    assert {each.record["dataset"]: each.ours for each in found} == {
        "TwitterPara": 70.0,
        "TwitterPara/TURL": 71.0,
        "TwitterPara/PIT": 69.0,
    }


def test_an_average_needs_all_that_it_is_over():
    row = rows_of(paper="SALBERT", table="3", method="SBERT")
    tasks = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb")
    scores = {task: {"score": 60.0 + place, "leaked": task != "stsb"} for place, task in enumerate(tasks)}
    (average,) = [each for each in beside(row, scores) if each.record["dataset"] == "Avg"]
    assert average.ours == pytest.approx(62.5)
    assert average.leaked
    less = beside(row, {task: scores[task] for task in tasks[1:]})
    assert "Avg" not in {each.record["dataset"] for each in less}


def test_without_a_figure_of_ours_the_published_ones_are_shown_alone():
    row = rows_of(paper="IS-BERT", table="4", method="SBERT-STSb")
    assert [each.ours for each in beside(row, {})] == [None]


def test_the_interval_over_seeds_is_that_of_their_mean(tmp_path):
    seeds = Seeds(tmp_path, {0: {"ft: stsb": 80.0}, 1: {"ft: stsb": 82.0}, 2: {"ft: stsb": 84.0}})
    score = over(seeds, "ft")["stsb"]
    assert score["score"] == 82.0
    assert (score["low"], score["high"]) == pytest.approx(
        (82 - 4.3027 * 2 / 3**0.5, 82 + 4.3027 * 2 / 3**0.5), abs=1e-3
    )
