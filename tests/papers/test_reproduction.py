import json

import pytest

from selfsent.papers.published import AGGREGATION, records
from selfsent.papers.reproduction import reproduced, scores_of, tables


def rows_of(**wanted):
    return [record for record in records() if all(record[key] == value for key, value in wanted.items())]


def test_ours_stands_beside_the_published_number_of_the_same_data():
    row = rows_of(paper="IS-BERT", table="4", method="SBERT-STSb")
    (found,) = reproduced(row, {"stsb": {"score": 84.0, "low": 83.0, "high": 84.9}})
    assert found.difference == pytest.approx(84.0 - 84.67)
    assert found.within is True
    (found,) = reproduced(row, {"stsb": {"score": 80.0, "low": 79.0, "high": 81.0}})
    assert found.within is False
    assert [each.ours for each in reproduced(row, {})] == [None]  # shown alone
    assert "-4.67" in "".join(str(cell) for column in tables([found])[0].columns for cell in column.cells)


def test_a_development_score_is_compared_with_one():
    (row,) = rows_of(paper="BSL", table="9", method="BSL")
    assert reproduced([row], {"stsb": {"score": 1.0}})[0].ours is None
    assert reproduced([row], {"stsb-dev": {"score": 79.0}})[0].ours == 79.0


def test_pearson_and_parts_of_a_task_are_found_by_name():
    row = rows_of(paper="SALBERT", table="1", method="SALBERT", group="fine-tuned on STSb")
    found = reproduced(row, {"stsb": {"score": 70.0, "low": 69.0, "high": 71.0, "pearson": 72.0}})
    assert {each.published["metric"]: (each.ours, each.low) for each in found} == {
        "spearman": (70.0, 69.0),
        "pearson": (72.0, None),
    }
    row = rows_of(paper="TSDAE", table="2", method="BM25")
    found = reproduced(row, {"twitterpara": {"score": 70.0, "twitterurl": 71.0, "pit": 69.0}})
    assert {each.published["dataset"]: each.ours for each in found} == {
        "TwitterPara": 70.0,
        "TwitterPara/TURL": 71.0,
        "TwitterPara/PIT": 69.0,
    }


def test_an_average_needs_all_that_it_is_over():
    row = rows_of(paper="SALBERT", table="3", method="SBERT")
    tasks = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb")
    scores = {task: {"score": 60.0 + place, "leaked": task != "stsb"} for place, task in enumerate(tasks)}
    (average,) = [each for each in reproduced(row, scores) if each.published["dataset"] == "Avg"]
    assert average.ours == pytest.approx(62.5)
    assert average.leaked
    assert "†" in str(tables([average])[-1].caption)
    less = reproduced(row, {task: scores[task] for task in tasks[1:]})
    assert "Avg" not in {each.published["dataset"] for each in less}


def test_an_average_has_an_interval_as_narrow_as_the_tasks_are_many():
    row = rows_of(paper="SALBERT", table="3", method="SBERT")
    tasks = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb")
    scores = {task: {"score": 80.0, "low": 78.0, "high": 81.0} for task in tasks}
    (average,) = [each for each in reproduced(row, scores) if each.published["dataset"] == "Avg" and each.low]
    assert (average.low, average.high) == pytest.approx((80 - 2 / 6**0.5, 80 + 1 / 6**0.5))
    assert average.within is not None
    del scores["sts12"]["low"]
    assert [each.low for each in reproduced(row, scores) if each.published["dataset"] == "Avg"] == [None]


def test_weighted_means_are_compared_with_weighted_means():
    row = rows_of(paper="BSL", table="1", method="BERT-flow")
    years = {"sts12": 50.0, "sts13": 60.0, "sts14": 60.0, "sts15": 70.0, "sts16": 70.0}
    scores = {task: {"score": 10.0, "low": 9.0, "high": 11.0, "wmean": value} for task, value in years.items()}
    scores["sts12"]["intervals"] = {"wmean": [49.0, 52.0]}
    scores |= {task: {"score": 55.0, "low": 54.0, "high": 56.0} for task in ("stsb", "sickr-test")}
    found = {each.published["dataset"]: each for each in reproduced(row, scores)}
    assert (found["STS12"].ours, found["STS12"].low, found["STS12"].high) == (50.0, 49.0, 52.0)
    assert found["Avg"].ours == pytest.approx((310 + 110) / 7)
    assert found["STSb"].notes == ()
    assert "ours too" in found["STS12"].notes[0]
    without = reproduced(row, {task: {"score": 10.0, "low": 9.0, "high": 11.0} for task in scores})
    assert {each.published["dataset"]: each.notes for each in without}["STS12"] == (AGGREGATION,)
    assert {each.published["dataset"]: each.notes for each in without}["STSb"] == ()


def test_defects_differences_and_stand_ins_are_marked_beside_the_numbers():
    row = [{**record, "differs": "ours deletes words"} for record in rows_of(paper="IS-BERT", table="1", method="SDAE")]
    scores = {"sts14": {"score": 37.0, "low": 36.0, "high": 38.0, "stand_ins": ("a.txt stands in for b.txt",)}}
    (found,) = reproduced(row, scores)
    assert found.to_json()["notes"] == found.notes
    assert [note.split(",")[0] for note in found.notes] == ["two digits", "ours deletes words"]
    assert found.to_json()["published"] in rows_of(paper="IS-BERT", table="1", method="SDAE")
    assert found.to_json()["stand_ins"] == ("a.txt stands in for b.txt",)
    (table,) = tables([found])
    cells = [str(next(iter(column.cells))) for column in table.columns]
    assert cells[1:3] == ["12 (1,2)", "37.00 (3)"]
    assert "(2) ours deletes words\n(3) a.txt stands in for b.txt\nwithin: " in str(table.caption)


def seeds_in(place, scores, stage="ft"):
    """Seeds whose runs have scored a stage."""
    for seed, found in enumerate(scores):
        (place / "seeds" / str(seed) / "stages" / stage).mkdir(parents=True)
        (place / "seeds" / str(seed) / "run.json").write_text(json.dumps({"stand_ins": ["a stands in for b"]}))
        file = place / "seeds" / str(seed) / "stages" / stage / "evaluation.json"
        file.write_text(json.dumps({"scores": found}))
    (place / "seeds.json").write_text(json.dumps({"seeds": {str(seed): {} for seed in range(len(scores))}}))
    return place


def test_over_seeds_no_row_is_lost_and_averages_have_the_interval_of_the_seeds(tmp_path):
    row = rows_of(paper="SALBERT", table="1", method="SALBERT", group="fine-tuned on STSb")
    seeds = seeds_in(tmp_path / "stsb", [{"stsb": {"score": 70.0 + n, "pearson": 72.0 + n}} for n in (0, 2)])
    found = reproduced(row, scores_of(seeds, "ft"))
    assert {each.published["metric"]: each.ours for each in found} == {"spearman": 71.0, "pearson": 73.0}
    assert all(each.low is not None and each.stand_ins == ("a stands in for b",) for each in found)
    one = reproduced(row, scores_of(seeds_in(tmp_path / "one", [{"stsb": {"score": 1.0}}]), "ft"))
    assert [(each.ours, each.low) for each in one] == [(1.0, None)]
    row = rows_of(paper="SALBERT", table="3", method="SBERT")
    tasks = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb")
    # What one task gains the other loses: the average is the same with every seed.
    scores = [{task: {"score": 80.0 + sign * (-1) ** k} for k, task in enumerate(tasks)} for sign in (1, -1)]
    (average,) = [
        each
        for each in reproduced(row, scores_of(seeds_in(tmp_path / "sts", scores), "ft"))
        if each.published["dataset"] == "Avg" and each.published["metric"] == "spearman"
    ]
    assert (average.low, average.ours, average.high) == pytest.approx((80, 80, 80))
