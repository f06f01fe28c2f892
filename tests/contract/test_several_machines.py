"""Two machines, played by two agents of torchrun on this one: nothing is shared between their folders."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import several_machines
import torch
from safetensors.torch import load_file

import tiny

STEPS = 12
SENTENCES = tiny.make_sentences(48, seed=3)


@pytest.fixture(scope="module")
def port():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


class Machine:
    """A folder with a copy of the base and the text, where an agent of torchrun can be started."""

    def __init__(self, folder, base, sentences=SENTENCES):
        self.folder = folder
        shutil.copytree(base, folder / "base")
        (folder / "text.txt").write_text("\n".join(sentences) + "\n")
        self.process = None

    def start(self, *torchrun, **environment):
        train = ["--method", "simcse", "--base", "base", "--output", "run", "--batch-size", 8, "--max-length", 32]
        train += ["--steps", STEPS, "--checkpoint-every", 3, "--precision", "float32", "--resume"]
        script = [several_machines.__file__, "train", "text.txt", *map(str, train)]
        known = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        # Else agents that were there before tell a new machine no address: torch keeps the one of the first round.
        known["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", *map(str, torchrun), *script],
                cwd=self.folder,
                env={**known, "SELFSENT_CACHE": str(self.folder / "cache"), **environment},
                stdout=log,
                stderr=log,
            )

    @property
    def log(self):
        return (self.folder / "log").read_text()

    def wait(self):
        return self.process.wait(1200)

    def weights(self):
        return load_file(self.folder / "run" / "model" / "model.safetensors")


@pytest.fixture
def machines(base_of, tmp_path):
    made = []

    def make(name, *texts):
        (tmp_path / name).mkdir()
        made.append(Machine(tmp_path / name, base_of("bert"), *texts))
        return made[-1]

    yield make
    for machine in made:
        if machine.process is not None and machine.process.poll() is None:
            machine.process.terminate()
            machine.process.wait(60)


def nodes(port, restarts=0):
    meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}", "--rdzv-id", "7"]
    return ["--nnodes", 2, "--nproc-per-node", 1, "--max-restarts", restarts, *meet]


def killed_at(place, machine):
    """Kill a machine's process and agent, as when its power goes, once it waits at a step."""
    until = time.monotonic() + 1200
    while not (place.exists() and place.read_text()):
        assert machine.process.poll() is None, machine.log
        assert time.monotonic() < until, machine.log
        time.sleep(0.1)
    for number in (machine.process.pid, int(place.read_text())):
        os.kill(number, signal.SIGKILL)
    machine.process.wait(60)


@pytest.mark.full
def test_a_run_goes_on_when_a_machine_was_killed(machines, port, tmp_path):
    whole = machines("whole")
    whole.start("--standalone", "--nproc-per-node", 2)
    assert whole.wait() == 0, whole.log

    first, second = machines("first"), machines("second")
    place = tmp_path / "waits"
    first.start(*nodes(port, restarts=3))
    time.sleep(1)
    second.start(*nodes(port, restarts=3), STOP_AT=f"8:{place}")
    killed_at(place, second)
    third = machines("third")  # another machine in its place, which has nothing of the run
    third.start(*nodes(port, restarts=3))
    assert first.wait() == 0, first.log
    assert third.wait() == 0, third.log

    # The first process is that of either machine, and keeps the run.
    holders = [machine for machine in (first, third) if (machine.folder / "run" / "model").exists()]
    assert len(holders) == 1
    assert "resumed at step 6 of 12" in holders[0].log
    expected, found = whole.weights(), holders[0].weights()
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        assert torch.equal(tensor, found[name]), name


@pytest.mark.full
def test_machines_with_other_text_are_refused_before_the_first_step(machines, port):
    first, second = machines("first"), machines("second", SENTENCES[:-1])
    for machine in (first, second):
        machine.start(*nodes(port))
    assert first.wait() != 0
    assert second.wait() != 0
    lines = [line for machine in (first, second) for line in machine.log.splitlines() if "selfsent: " in line]
    assert lines, first.log + second.log
    assert len(set(lines)) == 1
    assert "has another corpus fingerprint" in lines[0]
    assert "give all machines the same files" in lines[0]
    for machine in (first, second):
        assert not list(Path(machine.folder).glob("run/checkpoints/*"))
