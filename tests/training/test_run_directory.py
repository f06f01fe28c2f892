import json

import pytest

from selfsent.errors import RunError
from selfsent.training import run_directory
from selfsent.training.run_directory import RunDirectory, check_agreement, first_difference

ASKED = {
    "method": "mlm",
    "settings": {"seed": 0, "steps": 5},
    "base": "a",
    "corpus": {"source": "x", "fingerprint": "f"},
}


def begun(path, asked=ASKED, resume=False, overwrite=False):
    directory = RunDirectory(path)
    directory.check(resume, overwrite)
    directory.match(asked)
    directory.begin()
    return directory


def test_nothing_is_written_before_it_begins(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    directory.check(False, False)
    directory.match(ASKED)
    assert list(tmp_path.iterdir()) == []
    directory.begin()
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["status"] == "running"
    assert record["asked"] == ASKED
    assert {"selfsent", "torch", "python"} <= record["versions"].keys()
    assert not RunDirectory(tmp_path / "run").resumed


def test_behind_a_stop_the_rate_may_be_another_one_and_both_are_kept(tmp_path):
    asked = {**ASKED, "settings": {**ASKED["settings"], "learning_rate": 1e-3}}
    lower = {**asked, "settings": {**asked["settings"], "learning_rate": 1e-4}}
    begun(tmp_path, asked)
    with pytest.raises(RunError, match=r"settings learning rate was 0\.001, now 0\.0001"):
        begun(tmp_path, lower, resume=True)
    stopped = begun(tmp_path, asked, resume=True)
    stopped.update(stopped="the loss is not finite at step 7")
    with pytest.raises(RunError, match="settings seed was 0, now 1"):
        begun(tmp_path, {**lower, "settings": {**lower["settings"], "seed": 1}}, resume=True)
    begun(tmp_path, lower, resume=True)
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["asked"] == lower
    assert record["changes"] == [
        {"change": "settings learning rate was 0.001, now 0.0001", "because": "the loss is not finite at step 7"}
    ]
    with pytest.raises(RunError, match=r"settings learning rate was 0\.0001, now 0\.001"):
        begun(tmp_path, asked, resume=True)


def test_a_run_from_before_an_option_was_there_is_resumed_with_its_default(tmp_path):
    asked, defaults = {**ASKED, "settings": {**ASKED["settings"], "tie": True}}, {"settings": {"tie": True, "seed": 7}}
    begun(tmp_path)
    directory = RunDirectory(tmp_path)
    directory.check(True, False)
    for wrong in ({"tie": False}, {"seed": 7}):
        with pytest.raises(RunError, match=f"settings {next(iter(wrong))} was (True|0), now (False|7)"):
            directory.match({**asked, "settings": {**asked["settings"], **wrong}}, defaults)
    directory.match(asked, defaults)
    with pytest.raises(RunError, match="settings tie was not given, now True"):
        begun(tmp_path, asked, resume=True)


def test_settings_of_older_versions_are_resumed_under_their_names_now(tmp_path):
    begun(tmp_path, {**ASKED, "settings": {"smoothing": 0.9, "schedule": "stairs"}})
    assert begun(tmp_path, {**ASKED, "settings": {"alpha": 0.9, "schedule": "step"}}, resume=True).resumed


def test_a_run_with_an_option_that_is_no_more_is_resumed_where_its_value_is_built_in(tmp_path):
    for estimator in ("jsd", "dv"):
        begun(tmp_path / estimator, {**ASKED, "options": {"average": "token", "estimator": estimator}})
    now = {**ASKED, "options": {"average": "token"}}
    begun(tmp_path / "jsd", now, resume=True)
    with pytest.raises(RunError, match="options estimator was dv"):
        begun(tmp_path / "dv", now, resume=True)


def test_an_empty_directory_may_be_used(tmp_path):
    (tmp_path / ".run.json.selfsent-0a1b2c3d").touch()  # left behind by a kill
    begun(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "run.json"]


@pytest.mark.parametrize("content", ["{}", "[]", '{"epochs": 3}', None])
def test_a_directory_of_others_is_refused(tmp_path, content):
    (tmp_path / ("run.json" if content else "letter.txt")).write_text(content or "dear")
    for resume, overwrite in [(False, False), (True, False), (False, True)]:
        with pytest.raises(RunError, match="is not a run of selfsent"):
            RunDirectory(tmp_path).check(resume, overwrite)


def test_a_record_that_cannot_be_read(tmp_path):
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunError, match=r"run\.json cannot be read"):
        RunDirectory(tmp_path).check(True, False)


@pytest.mark.parametrize("name", ["file", "file/run"])
def test_a_file_is_no_place(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="is, or lies in, a file"):
        RunDirectory(tmp_path / name).check(False, False)


def test_a_place_without_permission(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(RunError, match=f"{tmp_path} cannot be written to"):
        RunDirectory(tmp_path / "a" / "b").check(False, False)


def test_names_may_differ_if_contents_do_not(tmp_path):
    begun(tmp_path)
    same = {**ASKED, "base": "./a", "corpus": {"source": "./x", "fingerprint": "f"}}
    assert begun(tmp_path, same, resume=True).resumed
    with pytest.raises(RunError, match="settings seed was 0, now 1"):
        begun(tmp_path, {**ASKED, "settings": {"seed": 1, "steps": 5}}, resume=True)
    with pytest.raises(RunError, match="corpus fingerprint was f, now g"):
        begun(tmp_path, {**ASKED, "corpus": {"source": "x", "fingerprint": "g"}}, resume=True)


def test_a_run_killed_while_it_was_thrown_away_is_no_run(tmp_path, monkeypatch):
    begun(tmp_path).log({"step": 1})

    def killed(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("selfsent.training.run_directory.remove", killed)
        with pytest.raises(KeyboardInterrupt):
            begun(tmp_path, {**ASKED, "method": "simcse"}, overwrite=True)
    again = begun(tmp_path, resume=True)
    assert not again.resumed
    assert again.metrics() == []


def test_old_later_and_half_written_checkpoints_go(tmp_path):
    directory = begun(tmp_path)
    for step in (8, 9, 10, 11, 100):
        directory.checkpoint_at(step).mkdir()
    (directory.checkpoints / ".step-00000011.selfsent-0a1b2c3d").mkdir()
    (directory.checkpoints / ".mine").mkdir()
    directory.sweep()
    directory.drop_old_checkpoints(3, sound=9)
    assert [int(path.name[5:]) for path in sorted(directory.checkpoints.glob("step-*"))] == [9, 10, 11, 100]
    directory.drop_old_checkpoints(3, sound=99)
    assert [int(path.name[5:] or 0) for path in sorted(directory.checkpoints.iterdir())] == [0, 10, 11, 100]
    directory.drop_checkpoints_after(10)
    assert sorted(path.name for path in directory.checkpoints.iterdir()) == [".mine", "step-00000010"]


def test_a_run_is_for_one_process_at_a_time(tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from selfsent.errors import SelfsentError\n"
        "from selfsent.training.run_directory import RunDirectory\n"
        "try: RunDirectory(Path(sys.argv[1])).check(True, False)\n"
        "except SelfsentError as error: print(error)\n"
        "else: print('free')"
    )

    def other():
        return subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True
        ).stdout.strip()

    directory = begun(tmp_path)
    assert other() == f"another selfsent works in {tmp_path}: wait for it, or choose another --output"
    directory.update(status="finished")
    assert other() == "free"


def test_whoever_comes_second_does_not_write_over_the_first(tmp_path):
    late = RunDirectory(tmp_path / "run")
    late.check(False, False)
    late.match(ASKED)
    begun(tmp_path / "run").update(status="finished")
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(RunError, match=r"another selfsent has written to .* meanwhile: give the command again"):
        late.begin()
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_a_record_that_was_changed_is_believed_where_its_checksum_is_taken_out(tmp_path):
    begun(tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**record, "started": "another day"}))
    with pytest.raises(RunError, match=r"run\.json is not as it was written: it is damaged, or was changed by hand"):
        begun(tmp_path, resume=True)
    del record["checksum"]
    (tmp_path / "run.json").write_text(json.dumps({**record, "started": "another day"}))
    begun(tmp_path, resume=True).update(status="trained")
    assert begun(tmp_path, resume=True).record["started"] == "another day"


def test_damaged_lines_of_the_log_are_left_out(tmp_path):
    directory = begun(tmp_path)
    for step in (1, 2, 3, 4):
        directory.log({"step": step, "loss": 0.5})
    lines = (tmp_path / "metrics.jsonl").read_bytes().splitlines()
    lines[1], lines[2] = lines[1].replace(b"step", b"stop"), lines[2].replace(b"loss", b"l\xffss")
    (tmp_path / "metrics.jsonl").write_bytes(b"\n".join([*lines, b"3", b"null", b""]))
    assert [entry["step"] for entry in directory.metrics()] == [1, 3, 4]
    directory.forget_after(3)
    assert [entry["step"] for entry in directory.metrics()] == [1, 3]
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')
    assert [entry["step"] for entry in directory.metrics()] == [1, 3]


@pytest.fixture
def together(monkeypatch):
    """Pretend that processes on machines a, b, ... ask for these things."""

    def ask(*asked):
        monkeypatch.setattr(run_directory, "gathered", lambda mine: list(zip("abc", asked, strict=False)))
        check_agreement(asked[0])

    return ask


def wanted(fingerprint="1f", base="bundled", rate=0.1):
    return {"base": base, "settings": {"rate": rate}, "corpus": {"source": base, "fingerprint": fingerprint}}


def test_the_same_things_by_other_names_agree(together):
    together(wanted())
    together(wanted(), wanted(base="/elsewhere/bundled"), wanted())


def test_the_first_that_differs_is_named(together):
    with pytest.raises(RunError) as raised:
        together(wanted(), wanted(), wanted(fingerprint="2e"))
    assert str(raised.value) == (
        "process 2 on c has another corpus fingerprint (2e) than process 0 on a (1f): give all machines the same files,"
        " encoders and options"
    )
    with pytest.raises(RunError, match=r"process 1 on b has another settings rate \(0\.2\)"):
        together(wanted(), wanted(rate=0.2))


def test_a_difference_in_words():
    assert first_difference(wanted(), wanted()) is None
    assert first_difference(wanted(), wanted("2e")) == "corpus fingerprint was 1f, now 2e"
    assert first_difference({"a": 1}, {"b_c": 2}, exclude=("a",)) == "b c was not given, now 2"
