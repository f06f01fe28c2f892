import hashlib
import json
import os
import shutil
import signal
import time
from pathlib import Path

import processes
import pytest

import tiny
from selfsent.training.checkpoint import progress_in

METHODS = (
    *("tsdae", "bootstrap"),
    *(
        pytest.param(name, marks=pytest.mark.full)
        for name in ("simcse", "mlm", "ntxent", "ct-inbatch", "infomax", "ct")
    ),
)
STEPS = 12


def arguments(method, base, corpus, output, *more):
    common = ["--base", base, "--output", output, "--batch-size", 8, "--max-length", 32, "--steps", STEPS, "--keep", 2]
    return ["train", corpus, "--method", method, *common, "--checkpoint-every", 3, *more]


def weights(run):
    """Digests of all that a run has learned: the model, and learner and optimiser two steps before the end."""
    files = sorted(file for file in Path(run).rglob("*.safetensors"))
    assert {"model.safetensors", "learner.safetensors", "optimizer.safetensors"} <= {file.name for file in files}
    return {str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def no_leftovers(run):
    return not list(Path(run).rglob(".*"))


@pytest.fixture(scope="module")
def whole_run(base, sentences, tmp_path_factory, cache):
    """Runs that nothing interrupts, one a method."""
    folder, made = tmp_path_factory.mktemp("whole"), {}

    def of(method):
        if method not in made:
            log = folder / f"{method}.log"
            process = processes.start(arguments(method, base, sentences, folder / method), log)
            assert processes.finish(process) == 0, log.read_text()
            made[method] = folder / method
        return made[method]

    return of


@pytest.fixture(scope="module")
def killed_run(base, sentences, tmp_path_factory, cache):
    """Runs that were killed with `kill -9` after eight steps, when the checkpoints of steps 3 and 6 were there."""
    folder, made = tmp_path_factory.mktemp("killed"), {}

    def of(method):
        if method not in made:
            run, halted = folder / method, folder / f"{method}.halted"
            given = arguments(method, base, sentences, run)
            processes.kill_when(processes.start(given, folder / "log", halt_at=8, halted=halted), halted)
            assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["step-00000003", "step-00000006"]
            assert json.loads((run / "run.json").read_text())["status"] == "running"
            assert not (run / "model").exists()
            made[method] = run
        return made[method]

    return of


@pytest.fixture
def killed(killed_run, base, sentences, tmp_path):
    """A copy of a killed run, and the arguments to go on with."""

    def of(method):
        run = shutil.copytree(killed_run(method), tmp_path / "run")
        return run, arguments(method, base, sentences, run)

    return of


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_run_resumes_to_the_same_weights(method, whole_run, killed, selfsent):
    run, given = killed(method)
    resumed = selfsent(*given, "--resume").ok()
    assert "resumed at step 6 of 12" in resumed.err
    assert weights(run) == weights(whole_run(method))
    steps = [entry["step"] for entry in tiny.rows_of(run / "metrics.jsonl")]
    assert steps == list(range(1, STEPS + 1))
    assert no_leftovers(run)


def test_a_checkpoint_cut_short_is_passed_over(whole_run, killed, selfsent):
    run, given = killed("tsdae")
    newest = run / "checkpoints" / "step-00000006" / "learner.safetensors"
    newest.write_bytes(newest.read_bytes()[:-7])
    resumed = selfsent(*given, "--resume").ok()
    assert "checkpoint step-00000006 is damaged or cut short" in resumed.err
    assert "resumed at step 3 of 12" in resumed.err
    assert weights(run) == weights(whole_run("tsdae"))


def test_another_corpus_does_not_resume(whole_run, base, sentences, selfsent, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text(sentences.read_text() + "one more\n")
    complaint = selfsent(*arguments("tsdae", base, other, whole_run("tsdae"), "--resume")).late_complaint
    assert "corpus fingerprint was" in complaint
    same = tmp_path / "same.txt"
    same.write_text(sentences.read_text())
    assert selfsent(*arguments("tsdae", base, same, whole_run("tsdae"), "--resume")).status == 0


def test_overwrite_starts_again_and_spares_other_files(killed, whole_run, selfsent):
    run, given = killed("tsdae")
    (run / "notes.txt").write_text("mine")
    (run / "best").mkdir()
    done = selfsent(*given, "--overwrite").ok()
    assert "resumed" not in done.err
    assert weights(run) == weights(whole_run("tsdae"))
    assert (run / "notes.txt").read_text() == "mine"
    assert not (run / "best").exists()


def test_interrupt_saves_and_says_how_to_go_on(base, sentences, tmp_path, selfsent):
    run, log = tmp_path / "a run", tmp_path / "log"
    given = [str(each) for each in arguments("simcse", base, sentences, run)]
    given[given.index(str(STEPS))] = "100000"
    process = processes.start(given, log)
    try:
        while not list((run / "checkpoints").glob("step-*")) if run.exists() else True:
            assert process.is_alive(), log.read_text()
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        assert processes.finish(process) == 130, log.read_text()
    finally:
        process.kill()
    last = log.read_text().splitlines()[-1]
    assert last.startswith("selfsent: stopped and saved; go on with: selfsent train ")
    assert last.endswith(
        f"--output '{run}' --batch-size 8 --max-length 32 --steps 100000 --keep 2 --checkpoint-every 3 --resume"
    )
    assert "Traceback" not in log.read_text()
    assert progress_in(max((run / "checkpoints").glob("step-*")))
    assert no_leftovers(run)
