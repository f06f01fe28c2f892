"""The runs behind the claims: what is declared can be run, and what comes out is what the protocol says."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selfsent.errors import CorpusError, SettingsError, TrainingError
from selfsent.methods import METHODS
from selfsent.training.plan import Plan

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "experiments"))
import claim_runs  # noqa: E402 — a script

DECLARED = claim_runs.declared()


@pytest.mark.parametrize("name", DECLARED["groups"])
def test_a_group_can_be_planned_and_its_rows_differ_in_steps_only_where_sentences_are_equal(name):
    runner = claim_runs.Runner(name, {}, None, Path("runs"))
    seen: dict[str, set[float | None]] = {}
    for row in runner.group["rows"]:
        settings = {"method": "mlm", "steps": 1} | runner.settings(row)
        settings.pop("checkpoint_every", None)
        settings.pop("sentences", None)
        plan = Plan.resolve(METHODS[settings.pop("method")], "bundled-raw", **settings)
        assert not plan.ignored
        read = (plan.settings.batch_size * plan.settings.steps) if plan.settings.steps else plan.settings.epochs
        seen.setdefault("views" if name == "bsl-views" else runner.text(row), set()).add(read)
        assert runner.text(row) in DECLARED["texts"]
        assert runner.start(row) in {None, *list(runner.group["rows"])[: list(runner.group["rows"]).index(row)]}
    assert {len(each) for each in seen.values()} == {1}
    assert {runner.group["base"]} <= DECLARED["bases"].keys()
    ratios = np.diff(np.log(runner.group["rates"]))
    assert ratios == pytest.approx([ratios[0]] * len(ratios), abs=0.12)


@pytest.fixture
def runner(tmp_path):
    """A group of two rows whose scores are made up: of the first the best rate is 3e-3, outside the first grid."""
    about = {
        "seeds": [0, 1, 2, 3, 4],
        "choosing_seed": 100,
        "bases": {"base": {"fingerprint": "f"}},
        "texts": {"text": {"fingerprint": "t"}},
        "dev": {},
    }
    group = {
        "base": "base",
        "text": "text",
        "all": {"method": "mlm"},
        "rates": [1e-5, 1e-4, 1e-3],
        "dev": "d",
        "test": ["t"],
    }
    about["groups"] = {"group": {**group, "rows": {"good": {}, "bad": {}}}}
    made = claim_runs.Runner("group", {}, None, tmp_path, lambda line: None, about)
    made.calls = []

    def run(row, rate, seed, development):
        made.calls.append((row, rate, seed, development))
        dev = {"untrained": 50.0, "good": 60 - abs(np.log10(rate or 1) + 2), "bad": 40 - abs(np.log10(rate or 1) + 4)}
        score = {"untrained": 50.0, "good": 60.0, "bad": 30.0}[row] + 0.1 * seed * (row != "untrained")
        tests = {"t": {"score": score, "samples": list(score + np.linspace(-1, 1, 100)), "n": 7}}
        return {"dev": dev[row], "tests": tests, "commit": "c", "versions": {}, "seconds": 1.0}

    made.run = run
    return made


def test_a_grid_is_extended_until_its_best_is_inside(runner):
    best, grid = runner.chosen("good")
    assert best == pytest.approx(1e-2)
    assert list(grid) == ["1e-05", "0.0001", "0.001", "0.01", "0.1"]
    assert {(seed, development) for _, _, seed, development in runner.calls} == {(100, True)}


def test_a_best_rate_that_stays_at_the_end_is_none(runner):
    runner.run = lambda row, rate, seed, development: {"dev": rate or 0.5}
    with pytest.raises(TrainingError, match="still at the end"):
        runner.chosen("good")
    runner.run = lambda row, rate, seed, development: {"dev": rate or 11.0}  # the base is the better one
    best, grid = runner.chosen("good")
    assert (best, len(grid)) == (10.0, 7)


def test_a_row_below_the_base_stands_for_the_base(runner):
    found = runner.whole([{"rows": ["good", "bad"], "test": "t"}, {"rows": ["bad", "untrained"], "test": "t"}])
    good, bad = found["comparisons"]
    assert good["stands_for"] == ["good", "untrained"]
    assert good["difference"] == pytest.approx(60.2 - 50)
    assert good["trained"]["difference"] == pytest.approx(30)
    assert good["pairs"]["low"] == pytest.approx(10.2)  # the same pairs are drawn for both
    assert bad["stands_for"] == ["untrained", "untrained"]
    assert (bad["difference"], bad["trained"]["difference"]) == pytest.approx((0, -19.8))
    assert {seed for _, rate, seed, development in runner.calls if rate and not development} == {0, 1, 2, 3, 4}
    assert (found["rows"]["good"]["trained"], found["rows"]["bad"]["trained"]) == (True, False)


def test_four_rows_are_a_difference_of_differences():
    runs = {
        name: [{"tests": {"t": {"score": value + noise, "samples": [value, value], "n": 3}}} for noise in (-1, 0, 1)]
        for name, value in {"a": 10, "b": 4, "c": 7, "d": 5}.items()
    }
    assert claim_runs.compared(["a", "b", "c", "d"], "t", runs)["difference"] == pytest.approx(4)


def test_another_base_and_another_text_are_refused(tmp_path):
    runner = claim_runs.Runner("bsl-momentum", {}, None, tmp_path)
    runner.about["bases"]["bundled-raw"]["fingerprint"] = "0"
    with pytest.raises(SettingsError, match="is not the bundled-raw of the protocol: its fingerprint is"):
        _ = runner.base
    (tmp_path / "text.txt").write_text("a cat\na dog\n")
    runner.about["texts"]["entailed"] = {"source": str(tmp_path / "text.txt"), "fingerprint": "0"}
    with pytest.raises(CorpusError, match="is not the text entailed of the protocol"):
        runner.corpus("entailed")


def test_a_run_is_made_once_and_is_another_one_with_another_rate(tmp_path, monkeypatch):
    runner = claim_runs.Runner("bsl-momentum", {}, None, tmp_path, lambda line: None)
    trained = []

    def train(text, base, settings, rate, seed, place):
        trained.append((rate, seed))
        return "m"

    monkeypatch.setattr(runner, "_trained", train)
    monkeypatch.setattr(runner, "scored", lambda model, pooling, development: {"dev": 1.0} if development else {})
    for rate, seed in [(1e-4, 0), (1e-4, 0), (3e-4, 0), (1e-4, 1)]:
        assert runner.run("momentum 1", rate, seed, development=True)["dev"] == 1.0
    assert trained == [(1e-4, 0), (3e-4, 0), (1e-4, 1)]
    runner.run("momentum 0.999", 1e-4, 0, development=True)
    assert len(trained) == 4


def test_a_rate_at_which_training_breaks_loses(tmp_path, monkeypatch):
    runner = claim_runs.Runner("bsl-momentum", {}, None, tmp_path, lambda line: None)

    def breaks(*arguments):
        raise TrainingError("the loss is not a number")

    monkeypatch.setattr(runner, "_trained", breaks)
    assert runner.run("momentum 1", 1.0, 100, development=True)["dev"] == float("-inf")
    assert runner.run("momentum 1", 1.0, 100, development=True)["failed"] == "the loss is not a number"


def test_a_row_after_another_starts_from_its_model_at_its_rate_with_the_same_seed(runner, monkeypatch):
    rows = runner.group["rows"]
    rows["then"] = {"after": "good", "text": "other"}
    runner.about["texts"]["other"] = {"fingerprint": "o"}
    trained = []

    def train(text, base, settings, rate, seed, place):
        trained.append((text, base, rate, seed))
        return f"{text}, {rate:g}, {seed}"

    monkeypatch.setattr(runner, "_trained", train)
    runner.__dict__["base"] = "base"
    assert runner.model("then", 0.5, 3) == "other, 0.5, 3"
    assert trained == [("text", "base", pytest.approx(1e-2), 3), ("other", "text, 0.01, 3", 0.5, 3)]
    before = runner.decides("then", 0.5, 3)
    assert before["after"] == runner.decides("good", pytest.approx(1e-2), 3)
    rows["good"]["steps"] = 7
    assert runner.decides("then", 0.5, 3) != before  # what a start is decides what comes of it


def test_the_models_that_others_start_from_are_kept_until_the_group_is_finished(runner, tmp_path):
    runner.group["rows"]["then"] = {"after": "good"}
    assert runner.starts == {"good"}
    made = runner.run
    runner.run = lambda row, rate, seed, development: made("good" if row == "then" else row, rate, seed, development)
    kept = runner.work("good", 1e-3, 100)
    kept.mkdir(parents=True)
    runner.whole([{"rows": ["then", "good"], "test": "mean"}])
    assert not kept.exists()


def test_the_mean_of_tests_is_one(runner):
    tests = [{"score": 10.0, "samples": [9.0, 11.0], "n": 3}, {"score": 20.0, "samples": [20.0, 24.0], "n": 4}]
    assert claim_runs.mean_of(tests) == {"score": 15.0, "samples": [14.5, 17.5], "n": 7}


def test_views_of_a_text_are_made_once_and_texts_may_be_joined(tmp_path, monkeypatch):
    said, made = [], []
    runner = claim_runs.Runner("bsl-views", {}, None, tmp_path, said.append)
    (tmp_path / "pairs.csv").write_text("a,b\nthe big dog,a small cat\nthe cat sat here,one more dog\n")
    pairs = {"source": str(tmp_path / "pairs.csv"), "text_columns": ["a", "b"]}
    views = {"of": "pairs", "views": ["synonym:sense=random"]}
    runner.about["texts"] = {"pairs": pairs, "views": views, "both": {"parts": ["pairs", "views"]}}
    for each in runner.about["texts"].values():
        each["fingerprint"] = "0"

    def augment(sentences, pairings, path):
        made.append(sorted(sentences.texts()))
        pq.write_table(pa.table({"view1": ["the large dog", "a kitten"], "view2": ["dogs", "cats"]}), path)

    monkeypatch.setattr(claim_runs, "augment", augment)
    for name in ("views", "both"):
        with pytest.raises(CorpusError, match="its fingerprint is") as raised:
            runner.corpus(name)
        runner.about["texts"][name]["fingerprint"] = str(raised.value).split(" is ")[2].split(",")[0]
    assert made == [["a small cat", "one more dog", "the big dog", "the cat sat here"]]
    assert said == ["making views of pairs by synonym:sense=random"]
    assert (len(runner.corpus("views")), len(runner.corpus("both"))) == (2, 4)
