import os

import numpy as np
import pytest

from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.encoders import as_encoder
from selfsent.evaluation.suites import SUITES, TASKS, evaluate

PAIRS = {"sentence1": ["a b", "c d", "e"], "sentence2": ["a", "d", "f"], "score": [4.0, 3.0, 0.0]}


def test_every_suite_names_tasks_that_exist():
    for suite in SUITES.values():
        assert set(suite.tasks) <= set(TASKS)
        assert set(suite.averaged or ()) <= set(suite.tasks)


def test_papers_average_has_their_seven_sets():
    assert SUITES["sts"].averaged == ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr-test")


def test_a_suite_runs_what_is_there_and_names_the_rest(write, model):
    mirror = write("mteb/sts12-sts/test.parquet", **PAIRS)
    result = evaluate(model, suite="sts", data=mirror)
    assert list(result.scores) == ["sts12"]
    assert set(result.absent) == set(SUITES["sts"].tasks) - {"sts12"}
    assert "does not hold mteb/sts16-sts" in result.absent["sts16"]
    assert result.warnings == ("sts12 has 3 rows here, 3108 as published",)
    assert result.average_label == "average of 1 of 7"


def test_a_suite_of_which_nothing_is_there_is_an_error(tmp_path, model):
    with pytest.raises(DataError, match="nothing of sts could be scored"):
        evaluate(model, suite="sts", data=tmp_path)


def test_a_single_absent_task_is_an_error(tmp_path, model):
    with pytest.raises(DataError, match="stsb is absent"):
        evaluate(model, task="stsb", data=tmp_path)


def test_sentences_shared_by_tasks_are_encoded_once(write, model):
    write("mteb/sts12-sts/test.parquet", **PAIRS)
    mirror = write("mteb/sts13-sts/test.parquet", **PAIRS)
    evaluate(model, task=["sts12", "sts13"], data=mirror)
    assert len(model.seen) == len(set(model.seen)) == 6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"suite": "stss"}, "there is no suite 'stss'; did you mean 'sts'"),
        ({"task": "sts1"}, "there is no task 'sts1'"),
        ({"task": ["stsb", "sts1"]}, "there is no task 'sts1'"),
        ({"suite": "sts", "task": "stsb"}, "give one of them"),
        ({}, "nothing to score"),
    ],
)
def test_wrong_requests_are_one_line(wrong, message, model):
    with pytest.raises(SettingsError, match=message):
        evaluate(model, **wrong)


def test_progress_hears_of_every_task(write, model):
    heard = []
    evaluate(model, task="sts12", data=write("mteb/sts12-sts/test.parquet", **PAIRS), progress=heard.append)
    assert heard == ["sts12"]


def test_own_files_go_by_their_names(tmp_path, model):
    (tmp_path / "mine.tsv").write_text("a b\ta\t1\nc\td\t0\ne\te f\t2\n")
    (tmp_path / "faq.tsv").write_text("a b\ta\nc\td\n")
    result = evaluate(model, pairs=tmp_path / "mine.tsv", relevance=tmp_path / "faq.tsv")
    assert list(result.scores) == ["mine", "faq"]


def test_an_absent_task_among_several_is_named_and_the_rest_runs(write, model):
    result = evaluate(model, task=["sts12", "stsb"], data=write("mteb/sts12-sts/test.parquet", **PAIRS))
    assert list(result.scores) == ["sts12"]
    assert "does not hold" in result.absent["stsb"]


def test_damaged_files_are_found_before_the_model_is_loaded(tmp_path):
    (tmp_path / "mine.tsv").write_text("a b\ta\n")
    with pytest.raises(DataError, match=r"mine\.tsv, line 1"):
        evaluate(tmp_path / "no-such-model", pairs=tmp_path / "mine.tsv")


def test_two_scores_never_share_a_name(tmp_path, model):
    (tmp_path / "stsb.tsv").write_text("a b\ta\t1\nc\td\t0\ne\te f\t2\n")
    with pytest.raises(SettingsError, match="would go by the name stsb"):
        evaluate(model, task="stsb", pairs=tmp_path / "stsb.tsv")


def test_the_label_free_score_is_a_suite_and_a_task_that_needs_text(corpus_of, model):
    documents = corpus_of([(f"w{n} w{n + 1} w{n + 2}", f"w{n} w{n + 1} w{n + 3}") for n in range(1100)])
    with pytest.raises(SettingsError, match="text of your own"):
        evaluate(model, suite="context")
    assert list(evaluate(model, suite="context", documents=documents).scores) == ["context"]
    assert list(evaluate(model, task="context", documents=documents).scores) == ["context"]


def test_the_papers_sick_is_read_as_its_authors_ship_it(tmp_path, model):
    (tmp_path / "SentEval" / "SICK").mkdir(parents=True)
    lines = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"]
    lines += [f"{n}\t{a}\t{b}\t{s}\tNEUTRAL" for n, (a, b, s) in enumerate(zip(*PAIRS.values(), strict=True))]
    (tmp_path / "SentEval" / "SICK" / "SICK_test_annotated.txt").write_text("\n".join(lines) + "\n")
    assert evaluate(model, task="sickr-test", data=tmp_path).scores["sickr-test"].n == 3


def test_vectors_that_are_not_finite_are_told_and_harm_no_other(tmp_path):
    texts = [f"text {n}" for n in range(40)]
    (tmp_path / "mine.tsv").write_text("".join(f"{text}\t{n % 2}\n" for n, text in enumerate(texts)))

    def apart(broken):
        return lambda asked: np.array(
            [[np.nan if text == broken else 5.0 - 10 * (int(text[5:]) % 2)] for text in asked]
        )

    whole, damaged = (evaluate(apart(broken), labels=tmp_path / "mine.tsv") for broken in (None, "text 7"))
    assert (whole.scores["mine"].score, whole.warnings) == (100, ())
    assert damaged.scores["mine"].score >= 95
    assert damaged.warnings == ("<lambda>: 1 output not finite, taken for zeros",)


def test_documents_are_read_and_names_are_those_given(tmp_path, monkeypatch, model):
    monkeypatch.setenv("SELFSENT_CACHE", str(tmp_path / "cache"))
    lines = (f"word{n} of the text\nword{n} of another text\n\n" for n in range(1200))
    (tmp_path / "docs.txt").write_text("".join(lines))
    found = evaluate(as_encoder(model, name="old"), documents=tmp_path / "docs.txt", name="new")
    assert (found.model, list(found.scores)) == ("new", ["context"])


def test_a_files_name_may_be_that_of_no_other_score_and_no_utf8(tmp_path, model):
    lines = "a b\ta\t1\nc d\td\t2\ne\tf\t3\n"
    (tmp_path / "average.tsv").write_text(lines)
    with pytest.raises(SettingsError, match="go by the name average, which another score has"):
        evaluate(model, pairs=tmp_path / "average.tsv")
    odd = tmp_path / os.fsdecode(b"\xff.tsv")
    odd.write_text(lines)
    assert len(evaluate(model, pairs=odd).scores) == 1
