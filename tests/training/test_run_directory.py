import json

import pytest

from forks import told_by
from selfsent import locks
from selfsent.errors import RunError, SelfsentError
from selfsent.training import agreement
from selfsent.training.agreement import check_agreement, first_difference
from selfsent.training.run_directory import RunDirectory


def config(source="x", fingerprint="f", base="a", options=None, **settings):
    return {
        "method": "mlm",
        "settings": {"seed": 0, "steps": 5, **settings},
        "base": base,
        "corpus": {"source": source, "fingerprint": fingerprint},
        **({"options": options} if options else {}),
    }


def begun(path, chosen=None, resume=False, overwrite=False):
    directory = RunDirectory(path)
    directory.check(resume, overwrite)
    directory.match(chosen or config())
    directory.begin()
    return directory


def record_of(path):
    return json.loads((path / "run.json").read_text())


def test_nothing_is_written_before_it_begins(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    directory.check(False, False)
    directory.match(config())
    assert list(tmp_path.iterdir()) == []
    directory.begin()
    record = record_of(tmp_path / "run")
    assert (record["status"], record["config"]) == ("running", config())
    assert {"selfsent", "torch", "python"} <= record["versions"].keys()
    assert not RunDirectory(tmp_path / "run").resumed


def test_after_a_stop_the_rate_may_change_and_both_are_kept(tmp_path):
    high, low = config(learning_rate=1e-3), config(learning_rate=1e-4)
    begun(tmp_path, high)
    with pytest.raises(RunError, match=r"settings learning rate was 0\.001, now 0\.0001"):
        begun(tmp_path, low, resume=True)
    begun(tmp_path, high, resume=True).update(stopped="the loss is not finite at step 7")
    with pytest.raises(RunError, match="settings seed was 0, now 1"):
        begun(tmp_path, config(learning_rate=1e-4, seed=1), resume=True)
    begun(tmp_path, low, resume=True)
    record = record_of(tmp_path)
    assert record["config"] == low
    change = "settings learning rate was 0.001, now 0.0001"
    assert record["changes"] == [{"change": change, "because": "the loss is not finite at step 7"}]
    with pytest.raises(RunError, match=r"settings learning rate was 0\.0001, now 0\.001"):
        begun(tmp_path, high, resume=True)


def test_a_run_from_before_an_option_was_there_is_resumed_with_its_default(tmp_path):
    defaults = {"settings": {"tie": True, "seed": 7}}
    begun(tmp_path)
    directory = RunDirectory(tmp_path)
    directory.check(True, False)
    for wrong in ({"tie": False}, {"tie": True, "seed": 7}):
        with pytest.raises(RunError, match=r"settings (tie|seed) was (True|0), now (False|7)"):
            directory.match(config(**wrong), defaults)
    directory.match(config(tie=True), defaults)
    with pytest.raises(RunError, match="settings tie was not given, now True"):
        begun(tmp_path, config(tie=True), resume=True)


def test_an_empty_directory_may_be_used(tmp_path):
    (tmp_path / ".run.json.selfsent-0a1b2c3d").touch()  # left behind by a kill
    begun(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "run.json"]


@pytest.mark.parametrize(
    ("file", "content", "run", "said"),
    [
        *(("run.json", content, "", "is not a run of selfsent") for content in ("{}", "[]", '{"epochs": 3}')),
        ("letter.txt", "dear", "", "is not a run of selfsent"),
        ("run.json", "{", "", r"run\.json cannot be read"),
        ("file", "", "file", "is a file, or inside one"),
        ("file", "", "file/run", "is a file, or inside one"),
    ],
)
def test_directories_of_others_and_files_are_refused(tmp_path, file, content, run, said):
    (tmp_path / file).write_text(content)
    for resume, overwrite in [(False, False), (True, False), (False, True)]:
        with pytest.raises(RunError, match=said):
            RunDirectory(tmp_path / run).check(resume, overwrite)


def test_a_directory_without_permission(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(RunError, match=f"{tmp_path} cannot be written to"):
        RunDirectory(tmp_path / "a" / "b").check(False, False)


def test_names_may_differ_if_contents_do_not(tmp_path):
    begun(tmp_path)
    assert begun(tmp_path, config(source="./x", base="./a"), resume=True).resumed
    with pytest.raises(RunError, match="settings seed was 0, now 1"):
        begun(tmp_path, config(seed=1), resume=True)
    with pytest.raises(RunError, match="corpus fingerprint was f, now g"):
        begun(tmp_path, config(fingerprint="g"), resume=True)
    assert first_difference({"a": 1}, {"b_c": 2}, exclude=("a",)) == "b c was not given, now 2"
    assert first_difference({"a": {"b": 1, "bc": 2}}, {"a": {"b": 2, "bc": 3}}, exclude=("a b",)) == "a bc was 2, now 3"


def test_a_run_killed_while_it_was_thrown_away_is_no_run(tmp_path, monkeypatch):
    begun(tmp_path).log({"step": 1})

    def killed(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("selfsent.training.run_directory.remove", killed)
        with pytest.raises(KeyboardInterrupt):
            begun(tmp_path, config(seed=1), overwrite=True)
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
    def other():
        locks._LOCKS.clear()  # those of the process it was forked from
        try:
            RunDirectory(tmp_path).check(True, False)
        except SelfsentError as error:
            return str(error)
        return "free"

    directory = begun(tmp_path)
    assert told_by(other) == f"another selfsent works in {tmp_path}: wait for it, or choose another `output`"
    directory.update(status="finished")
    assert told_by(other) == "free"


def test_whoever_comes_second_does_not_write_over_the_first(tmp_path):
    late = RunDirectory(tmp_path / "run")
    late.check(False, False)
    late.match(config())
    begun(tmp_path / "run").update(status="finished")
    before = (tmp_path / "run" / "run.json").read_bytes()
    with pytest.raises(RunError, match=r"another selfsent has written to .* meanwhile: give the command again"):
        late.begin()
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_a_record_that_was_changed_is_believed_without_its_checksum(tmp_path):
    begun(tmp_path)
    record = {**record_of(tmp_path), "started": "another day"}
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match=r"run\.json is not as it was written: it is damaged, or was changed by hand"):
        begun(tmp_path, resume=True)
    del record["checksum"]
    (tmp_path / "run.json").write_text(json.dumps(record))
    begun(tmp_path, resume=True).update(status="trained")
    assert begun(tmp_path, resume=True).record["started"] == "another day"


def test_damaged_lines_of_the_log_are_left_out(tmp_path):
    directory = begun(tmp_path)
    for step in (1, 2, 3, 4):
        directory.log({"step": step, "loss": 0.5})
    lines = (tmp_path / "metrics.jsonl").read_bytes().splitlines()
    lines[1], lines[2] = lines[1].replace(b"step", b"stop"), lines[2].replace(b"loss", b"l\xffss")
    (tmp_path / "metrics.jsonl").write_bytes(b"\n".join([*lines, b"3", b"null", b'{"step": 5, "lo']))
    assert [entry["step"] for entry in directory.metrics()] == [1, 3, 4]
    directory.forget_after(3)
    assert [entry["step"] for entry in directory.metrics()] == [1, 3]


def test_processes_with_another_config_are_named(monkeypatch):
    def ask(*configs):
        monkeypatch.setattr(agreement, "gathered", lambda mine: list(zip("abc", configs, strict=False)))
        check_agreement(configs[0])

    ask(config())
    ask(config(), config(base="/elsewhere/a"), config())
    with pytest.raises(RunError) as raised:
        ask(config(), config(), config(fingerprint="2e"))
    assert str(raised.value) == (
        "process 2 on c has another corpus fingerprint (2e) than process 0 on a (f): give all machines the same files,"
        " encoders and options"
    )
    with pytest.raises(RunError, match=r"process 1 on b has another settings seed \(2\)"):
        ask(config(), config(seed=2))
