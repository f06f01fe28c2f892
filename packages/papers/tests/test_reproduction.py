"""Our scores beside the published numbers: of one run, over seeds, and of several runs of one row."""

import json
import shutil

import pytest

from selfsent.errors import RunError
from selfsent_papers.outline import recipe_file
from selfsent_papers.published import AGGREGATION, records
from selfsent_papers.reproduction import join_runs, reproduced, scores_of, tables

STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb")
DOMAINS = {"askubuntu": 57.0, "cqadupstack": 14.0, "twitterpara": 74.0, "scidocs": 77.0}


def rows_of(paper, table, method, **wanted):
    wanted |= {"paper": paper, "table": table, "method": method}
    return [record for record in records() if all(record[key] == value for key, value in wanted.items())]


def by_data(found):
    return {each.published["dataset"]: each for each in found}


def average_of(found):
    return next(each for each in found if each.published["dataset"] == "Avg" and each.published["metric"] != "pearson")


def test_ours_stands_beside_the_published_number_of_the_same_data():
    row = rows_of("IS-BERT", "4", "SBERT-STSb")
    (found,) = reproduced(row, {"stsb": {"score": 84.0, "low": 83.0, "high": 84.9}})
    assert (found.difference, found.within) == (pytest.approx(84.0 - 84.67), True)
    (found,) = reproduced(row, {"stsb": {"score": 80.0, "low": 79.0, "high": 81.0}})
    assert found.within is False
    assert "-4.67" in "".join(str(cell) for column in tables([found])[0].columns for cell in column.cells)
    assert [each.ours for each in reproduced(row, {})] == [None]  # shown alone


@pytest.mark.parametrize(("score", "expected"), [(84.3, True), (84.28, False), (85.06, False)])
def test_where_the_paper_has_a_spread_ours_is_held_against_it(score, expected):
    row = rows_of("IS-BERT", "4", "SBERT-STSb")  # 84.67, with a standard deviation of 0.19
    (found,) = reproduced(row, {"stsb": {"score": score}})
    assert (found.in_spread, found.to_json()["in_spread"]) == (expected, expected)
    (table,) = tables([found])
    assert [str(next(iter(column.cells))) for column in table.columns][1] == "84.67 ± 0.19 (1)"
    assert [str(cell) for cell in table.columns[-1].cells] == [f" / {'yes' if expected else 'no'}"]
    assert "after /: whether ours is within two" in str(table.caption)
    (plain,) = tables(reproduced(rows_of("IS-BERT", "1", "SDAE"), {"sts14": {"score": 37.0}}))
    assert "after /" not in str(plain.caption)


@pytest.mark.parametrize(
    ("row", "scores", "expected"),
    [
        (("BSL", "9", "BSL"), {"stsb": {"score": 1.0}}, {None}),  # a development score is compared with one
        (("BSL", "9", "BSL"), {"stsb-dev": {"score": 79.0}}, {79.0}),
        (("TSDAE", "2", "BM25"), {"twitterpara": {"score": 70.0, "twitterurl": 71.0, "pit": 69.0}}, {70.0, 71.0, 69.0}),
    ],
)
def test_scores_are_compared_with_numbers_of_the_same_kind(row, scores, expected):
    assert {each.ours for each in reproduced(rows_of(*row), scores)} == expected


def test_pearson_is_compared_with_pearson():
    row = rows_of("SALBERT", "1", "SALBERT", group="fine-tuned on STSb")
    found = reproduced(row, {"stsb": {"score": 70.0, "low": 69.0, "high": 71.0, "pearson": 72.0}})
    assert {each.published["metric"]: (each.ours, each.low) for each in found} == {
        "spearman": (70.0, 69.0),
        "pearson": (72.0, None),
    }


def test_an_average_needs_all_its_tasks_and_has_a_narrower_interval():
    row = rows_of("SALBERT", "3", "SBERT")
    scores = {task: {"score": 80.0, "low": 78.0, "high": 81.0, "leaked": task != "stsb"} for task in STS}
    average = average_of(reproduced(row, scores))
    assert (average.low, average.ours, average.high) == pytest.approx((80 - 2 / 6**0.5, 80, 80 + 1 / 6**0.5))
    assert average.leaked
    assert "†" in str(tables([average])[-1].caption)
    assert "Avg" not in by_data(reproduced(row, {task: scores[task] for task in STS[1:]}))
    del scores["sts12"]["low"]
    assert average_of(reproduced(row, scores)).low is None


def test_weighted_means_are_compared_with_weighted_means():
    row = rows_of("BSL", "1", "BERT-flow")
    plain = {"score": 10.0, "low": 9.0, "high": 11.0}
    scores = {task: {**plain, "wmean": 50.0 + place} for place, task in enumerate(STS[:5])}
    scores["sts12"]["intervals"] = {"wmean": [49.0, 52.0]}
    scores |= {task: {"score": 55.0, "low": 54.0, "high": 56.0} for task in ("stsb", "sickr-test")}
    found = by_data(reproduced(row, scores))
    assert (found["STS12"].ours, found["STS12"].low, found["STS12"].high) == (50.0, 49.0, 52.0)
    assert found["Avg"].ours == pytest.approx((5 * 52 + 110) / 7)
    assert "ours too" in found["STS12"].notes[0]
    without = by_data(reproduced(row, dict.fromkeys(scores, plain)))
    assert (without["STS12"].notes, without["STSb"].notes, found["STSb"].notes) == ((AGGREGATION,), (), ())


def test_defects_differences_and_stand_ins_are_footnotes():
    row = [{**record, "differs": "ours deletes words"} for record in rows_of("IS-BERT", "1", "SDAE")]
    scores = {"sts14": {"score": 37.0, "low": 36.0, "high": 38.0, "stand_ins": ("a.txt stands in for b.txt",)}}
    (found,) = reproduced(row, scores)
    assert [note.split(",")[0] for note in found.notes] == ["two digits", "ours deletes words"]
    assert found.to_json()["published"] in rows_of("IS-BERT", "1", "SDAE")
    assert found.to_json()["stand_ins"] == ("a.txt stands in for b.txt",)
    (table,) = tables([found])
    assert [str(next(iter(column.cells))) for column in table.columns][1:3] == ["12 (1,2)", "37.00 (3)"]
    assert "(2) ours deletes words\n(3) a.txt stands in for b.txt\nwithin: " in str(table.caption)


def seeds_in(place, scores):
    """Seeds whose runs have scored the stage `ft`."""
    for seed, found in enumerate(scores):
        stage = place / "seeds" / str(seed) / "stages" / "ft"
        stage.mkdir(parents=True)
        (place / "seeds" / str(seed) / "run.json").write_text(json.dumps({"stand_ins": ["a stands in for b"]}))
        (stage / "evaluation.json").write_text(json.dumps({"scores": found}))
    (place / "seeds.json").write_text(json.dumps({"seeds": {str(seed): {} for seed in range(len(scores))}}))
    return scores_of(place, "ft")


def test_over_seeds_no_row_is_lost_and_averages_have_the_interval_of_the_seeds(tmp_path):
    row = rows_of("SALBERT", "1", "SALBERT", group="fine-tuned on STSb")
    two = seeds_in(tmp_path / "two", [{"stsb": {"score": 70.0 + n, "pearson": 72.0 + n}} for n in (0, 2)])
    found = reproduced(row, two)
    assert {each.published["metric"]: each.ours for each in found} == {"spearman": 71.0, "pearson": 73.0}
    assert all(each.low is not None and each.stand_ins == ("a stands in for b",) for each in found)
    one = reproduced(row, seeds_in(tmp_path / "one", [{"stsb": {"score": 1.0}}]))
    assert [(each.ours, each.low) for each in one] == [(1.0, None)]
    # What one task gains the other loses: the average is the same with every seed.
    scores = [{task: {"score": 80.0 + sign * (-1) ** k} for k, task in enumerate(STS)} for sign in (1, -1)]
    average = average_of(reproduced(rows_of("SALBERT", "3", "SBERT"), seeds_in(tmp_path / "sts", scores)))
    assert (average.low, average.ours, average.high) == pytest.approx((80, 80, 80))


def run_of(place, domain, score, method="tsdae", status="finished", seeds=None):
    """A finished run of a domain of TSDAE's table 2, as far as joining reads it."""
    for seed in seeds or [None]:
        run = place if seed is None else place / "seeds" / str(seed)
        (run / "stages" / "target").mkdir(parents=True)
        shutil.copy(recipe_file("tsdae_unsupervised"), run / "recipe.yaml")
        config = {"variant": f"{method}, {domain}", "base": "google-bert/bert-base-uncased"}
        record = {"status": status, "config": config, "stand_ins": ["a stands in for b"]}
        (run / "run.json").write_text(json.dumps(record))
        own = {"score": score + (seed or 0), "n": 9} | ({"low": score - 1, "high": score + 1} if seed is None else {})
        (run / "stages" / "target" / "evaluation.json").write_text(json.dumps({"scores": {domain: own}}))
    if seeds:
        (place / "run.json").write_text(json.dumps({"status": status}))
        (place / "seeds.json").write_text(json.dumps({"seeds": {str(seed): {} for seed in seeds}}))
    return place


def domains(tmp_path, **seeds):
    """Runs of all four domains."""
    return [
        run_of(tmp_path / domain, domain, score, seeds=seeds.get(domain, seeds.get("all")))
        for domain, score in DOMAINS.items()
    ]


def test_an_average_over_domains_is_compared_once_all_are_given(tmp_path):
    places = domains(tmp_path)
    rows = by_data(join_runs(places))
    assert {name: row.ours for name, row in rows.items() if name != "Avg"} == {
        "AskUbuntu": 57.0,
        "CQADupStack": 14.0,
        "TwitterPara": 74.0,
        "SciDocs": 77.0,
    }
    assert rows["SciDocs"].stand_ins == ("a stands in for b",)
    assert (rows["Avg"].low, rows["Avg"].ours, rows["Avg"].high) == pytest.approx((55.0, 55.5, 56.0))
    assert "Avg" not in by_data(join_runs(places[1:]))
    other = run_of(tmp_path / "ct", "scidocs", 70.0, method="ct")
    shown = [row for row in join_runs([*places, other]) if row.published["dataset"] == "SciDocs"]
    assert [(row.published["method"], row.ours) for row in shown] == [("TSDAE", 77.0), ("CT", 70.0)]


def test_the_average_over_seeds_has_the_interval_of_the_seeds_averages(tmp_path):
    average = average_of(join_runs(domains(tmp_path / "all", all=[1, 2, 3])))
    half = 4.3027 / 3**0.5
    assert (average.low, average.ours, average.high) == pytest.approx((57.5 - half, 57.5, 57.5 + half), abs=1e-3)
    average = average_of(join_runs(domains(tmp_path / "lost", all=[1, 2, 3], scidocs=[1, 3])))
    assert (average.ours, average.low) == (pytest.approx((59 + 16 + 76 + 79) / 4), None)


def test_what_cannot_be_joined(tmp_path):
    one, two = (run_of(tmp_path / name, "scidocs", 70.0) for name in ("one", "two"))
    with pytest.raises(RunError, match=r"one and .*two both score scidocs in one row: give one of them"):
        join_runs([one, two])
    for place in (run_of(tmp_path / "three", "scidocs", 70.0, status="training"), tmp_path / "nowhere"):
        with pytest.raises(RunError, match="holds no finished run of a recipe"):
            join_runs([place])
