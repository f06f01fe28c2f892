"""Several runs in one directory: begun, gone on with, read, failed."""

import json

import pytest

import tiny
from selfsent.errors import DataError, SettingsError, TrainingError
from selfsent.training.run_set import RunSet


def make(path, lines=None, resume=False, config="a"):
    progress = tiny.heard(notice=(lines if lines is not None else []).append)
    runs = RunSet(path, resume, False, (), progress, TrainingError)
    runs.match({"config": config})
    runs.begin(steps=False)
    return runs


def trainer(status, asked):
    def train(output, resume, progress):
        asked.append((output.name, resume))
        progress.notice(f"training {output.name}")
        output.mkdir(parents=True, exist_ok=True)
        (output / "run.json").write_text(json.dumps({"status": status}))
        return output.name

    return train


def test_runs_are_begun_gone_on_with_and_read(tmp_path):
    path, asked, lines = tmp_path / "set", [], []
    runs = make(path)
    assert runs.run("one", path / "methods" / "1", trainer("finished", asked)) == "1"
    assert runs.run("two", path / "methods" / "2", trainer("running", asked)) == "2"
    runs = make(path, lines, resume=True)
    read = runs.run("one", path / "methods" / "1", trainer("finished", asked), lambda folder: f"read {folder.name}")
    assert read == "read 1"
    assert runs.run("two", path / "methods" / "2", trainer("finished", asked), title="1 of 1: two") == "2"
    assert asked == [("1", False), ("2", False), ("2", True)]
    assert lines == ["one is finished already", "1 of 1: two", "training 2"]
    assert runs.run("two", path / "methods" / "2", trainer("finished", asked)) == "2"
    assert (asked[-1], len(lines)) == (("2", True), 3)  # a finished one is silent


def test_a_failure_is_recorded_and_does_not_end_the_set(tmp_path):
    def fail(**how):
        raise TrainingError("the loss is not finite", "give a lower rate")

    lines = []
    runs = make(tmp_path / "set", lines)
    assert runs.run("hot", tmp_path / "set" / "methods" / "hot", fail) is None
    assert runs.failures == {"hot": "the loss is not finite"}
    assert lines == ["hot", "hot failed: the loss is not finite"]
    assert (tmp_path / "set" / "run.json").exists()


@pytest.mark.parametrize("before", [False, True])
def test_a_fault_before_anything_was_begun_leaves_no_set_behind(tmp_path, before):
    def wrong(**how):
        raise SettingsError("no such option")

    runs = make(tmp_path / "set")
    if before:
        runs.run("one", tmp_path / "set" / "methods" / "1", trainer("running", []))
    with pytest.raises(SettingsError):
        runs.run("two", tmp_path / "set" / "methods" / "2", wrong)
    assert (tmp_path / "set").exists() is before
    if before:
        runs = make(tmp_path / "set", resume=True)
        with pytest.raises(DataError):
            runs.run("two", tmp_path / "set" / "methods" / "2", lambda **how: (_ for _ in ()).throw(DataError("no")))
        assert (tmp_path / "set" / "methods" / "1" / "run.json").exists()
