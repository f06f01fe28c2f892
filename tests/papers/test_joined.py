import json
import shutil

import pytest

from selfsent.errors import RunError
from selfsent.papers.outline import recipe_file
from selfsent.papers.reproduction import join_runs

DOMAINS = {"askubuntu": 57.0, "cqadupstack": 14.0, "twitterpara": 74.0, "scidocs": 77.0}


def run_of(place, domain, score, method="tsdae", status="finished", seeds=None, **more):
    """A finished run of a domain of TSDAE's table 2, as far as joining reads it."""
    for seed in seeds or [None]:
        run = place if seed is None else place / "seeds" / str(seed)
        scored = run / "stages" / "target"
        scored.mkdir(parents=True)
        shutil.copy(recipe_file("tsdae_unsupervised"), run / "recipe.yaml")
        asked = {"variant": f"{method}, {domain}", "base": "google-bert/bert-base-uncased"}
        (run / "run.json").write_text(json.dumps({"status": status, "asked": asked, **more}))
        own = {"score": score + (seed or 0), "n": 9} | ({"low": score - 1, "high": score + 1} if seed is None else {})
        (scored / "evaluation.json").write_text(json.dumps({"scores": {domain: own}}))
    if seeds:
        (place / "run.json").write_text(json.dumps({"status": status}))
        (place / "seeds.json").write_text(json.dumps({"seeds": {str(seed): {} for seed in seeds}}))
    return place


def joined(tmp_path, **more):
    return join_runs([run_of(tmp_path / domain, domain, score, **more) for domain, score in DOMAINS.items()])


def test_an_average_over_domains_is_compared_once_all_are_given(tmp_path):
    rows = joined(tmp_path, stand_ins=["a stands in for b"])
    assert {row.published["dataset"]: row.ours for row in rows if row.published["dataset"] != "Avg"} == {
        "AskUbuntu": 57.0,
        "CQADupStack": 14.0,
        "TwitterPara": 74.0,
        "SciDocs": 77.0,
    }
    assert rows[0].stand_ins == ("a stands in for b",)
    (average,) = [row for row in rows if row.published["dataset"] == "Avg"]
    assert average.ours == pytest.approx(222 / 4)
    assert (average.low, average.high) == pytest.approx((55.5 - 0.5, 55.5 + 0.5))
    assert average.difference == pytest.approx(55.5 - average.published["value"])
    less = join_runs([tmp_path / domain for domain in list(DOMAINS)[1:]])
    assert "Avg" not in {row.published["dataset"] for row in less}


def test_other_rows_stay_apart(tmp_path):
    joined(tmp_path)
    other = run_of(tmp_path / "ct", "scidocs", 70.0, method="ct")
    rows = join_runs([*(tmp_path / domain for domain in DOMAINS), other])
    assert [(row.published["method"], row.ours) for row in rows if row.published["dataset"] == "SciDocs"] == [
        ("TSDAE", 77.0),
        ("CT", 70.0),
    ]


def test_the_average_over_seeds_has_the_interval_of_the_seeds_averages(tmp_path):
    (average,) = [row for row in joined(tmp_path, seeds=[1, 2, 3]) if row.published["dataset"] == "Avg"]
    assert average.ours == pytest.approx(57.5)
    assert (average.low, average.high) == pytest.approx((57.5 - 4.3027 / 3**0.5, 57.5 + 4.3027 / 3**0.5), abs=1e-3)


def test_a_domain_that_lost_a_seed_leaves_the_average_without_an_interval(tmp_path):
    joined(tmp_path, seeds=[1, 2, 3])
    shutil.rmtree(tmp_path / "scidocs")
    run_of(tmp_path / "scidocs", "scidocs", 77.0, seeds=[1, 3])
    (average,) = [
        row for row in join_runs(tmp_path / domain for domain in DOMAINS) if row.published["dataset"] == "Avg"
    ]
    assert average.ours == pytest.approx((59 + 16 + 76 + 79) / 4)
    assert average.low is None


def test_what_cannot_be_joined(tmp_path):
    one, two = (run_of(tmp_path / name, "scidocs", 70.0) for name in ("one", "two"))
    with pytest.raises(RunError, match=r"one and .*two both score scidocs in one row: give one of them"):
        join_runs([one, two])
    with pytest.raises(RunError, match="holds no finished run of a recipe"):
        join_runs([run_of(tmp_path / "three", "scidocs", 70.0, status="training")])
    with pytest.raises(RunError, match="holds no finished run of a recipe"):
        join_runs([tmp_path / "nowhere"])
