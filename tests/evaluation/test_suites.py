import os

import numpy as np
import pytest

import tiny
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.suites import SUITES, TASKS, evaluate
from selfsent.scorers.load_scorer import load_scorer

PAIRS = {"sentence1": ["a b", "c d", "e"], "sentence2": ["a", "d", "f"], "score": [4.0, 3.0, 0.0]}


def test_every_suite_names_tasks_that_exist():
    for suite in SUITES.values():
        assert set(suite.averaged) <= set(suite.tasks) <= set(TASKS)
    assert SUITES["sts"].averaged == ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr-test")
    assert SUITES["transfer"].tasks == ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
    assert SUITES["tatoeba"].tasks == tuple(f"tatoeba-{other}" for other in ("ar", "de", "es", "fr", "tr"))
    assert SUITES["stsb-cross"].tasks == ("stsb-en-de", "stsb-en-es", "stsb-en-fr")
    pairs = ["ar-ar", "en-ar", "en-de", "en-en", "en-tr", "es-en", "es-es", "fr-en", "it-en", "ko-ko", "nl-en"]
    assert sorted(SUITES["sts17"].tasks) == [f"sts17-{pair}" for pair in pairs]
    assert "stsb-en-de-dev" in TASKS


def test_a_suite_runs_what_is_there_and_names_the_rest(write, model):
    write("mteb/sts12-sts/test.parquet", **PAIRS)
    mirror, heard = write("mteb/sts13-sts/test.parquet", **PAIRS), []
    result = evaluate(model, suite="sts", data=mirror, progress=tiny.heard(notice=heard.append))
    assert list(result.scores) == ["sts12", "sts13"]
    assert set(result.absent) == set(SUITES["sts"].tasks) - {"sts12", "sts13"}
    assert heard == list(SUITES["sts"].tasks)
    assert "does not hold mteb/sts16-sts" in result.absent["sts16"]
    assert result.warnings[0] == "sts12 has 3 rows here, 3108 as published"
    assert result.average_label == "average of 2 of 7"
    assert len(model.seen) == len(set(model.seen)) == 6  # sentences that tasks share are encoded once


def test_where_nothing_is_there_is_an_error(tmp_path, model):
    with pytest.raises(DataError, match="nothing of sts could be scored"):
        evaluate(model, suite="sts", data=tmp_path)
    with pytest.raises(DataError, match="stsb is absent"):
        evaluate(model, task="stsb", data=tmp_path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"suite": "stss"}, "there is no suite 'stss'; did you mean 'sts'"),
        ({"task": ["stsb", "sts1"]}, "there is no task 'sts1'"),
        ({"suite": "sts", "task": "stsb"}, "give one of them"),
        ({"suite": "context"}, "text of your own"),
        ({}, "nothing to score"),
    ],
)
def test_wrong_requests_are_one_line(wrong, message, model):
    with pytest.raises(SettingsError, match=message):
        evaluate(model, **wrong)


def test_own_files_go_by_their_names_which_no_other_score_has(tmp_path, model):
    lines = "a b\ta\t1\nc\td\t0\ne\te f\t2\n"
    for name in ("mine", "stsb", "average", os.fsdecode(b"\xff")):
        (tmp_path / f"{name}.tsv").write_text(lines)
    (tmp_path / "faq.tsv").write_text("a b\ta\nc\td\n")
    result = evaluate(model, pairs=tmp_path / "mine.tsv", relevance=tmp_path / "faq.tsv")
    assert list(result.scores) == ["mine", "faq"]
    assert len(evaluate(model, pairs=tmp_path / os.fsdecode(b"\xff.tsv")).scores) == 1
    for name in ("stsb", "average"):
        with pytest.raises(SettingsError, match=f"would go by the name {name}, which another score has"):
            evaluate(model, task="stsb", pairs=tmp_path / f"{name}.tsv")


def test_damaged_files_are_found_before_the_model_is_loaded(tmp_path):
    (tmp_path / "mine.tsv").write_text("a b\ta\n")
    with pytest.raises(DataError, match=r"mine\.tsv, line 1"):
        evaluate(tmp_path / "no-such-model", pairs=tmp_path / "mine.tsv")


def test_vectors_that_are_not_finite_are_told_and_harm_no_other(tmp_path):
    texts = [f"text {n}" for n in range(40)]
    (tmp_path / "mine.tsv").write_text("".join(f"{text}\t{n % 2}\n" for n, text in enumerate(texts)))

    def apart(broken):
        return lambda given: np.array([[np.nan if t == broken else 5.0 - 10 * (int(t[5:]) % 2)] for t in given])

    whole, damaged = (evaluate(apart(broken), labels=tmp_path / "mine.tsv") for broken in (None, "text 7"))
    assert (whole.scores["mine"].score, whole.warnings) == (100, ())
    assert damaged.scores["mine"].score >= 95
    assert damaged.warnings == ("<lambda>: 1 output not finite, taken for zeros",)


def test_documents_are_read_and_the_label_free_score_is_a_suite_and_a_task(tmp_path, monkeypatch, model):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    lines = (f"word{n} of the text\nword{n} of another text\n\n" for n in range(200))
    (tmp_path / "docs.txt").write_text("".join(lines))
    for request in ({"suite": "context"}, {"task": "context"}, {}):
        found = evaluate(load_scorer(model, name="old"), documents=tmp_path / "docs.txt", name="new", **request)
        assert (found.model, list(found.scores)) == ("new", ["context"])
