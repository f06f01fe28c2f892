import multiprocessing
import os
import re
import shutil
import socket
import subprocess
import sys

import pytest
import torch
import two_processes
from safetensors.torch import load_file
from torch.testing import assert_close

import tiny
from selfsent import train_stages


@pytest.fixture(scope="module")
def place(base_of, tmp_path_factory):
    """A folder with the bases, a recipe and a cache."""
    folder = tmp_path_factory.mktemp("place")
    for name in two_processes.ARCHITECTURES:
        shutil.copytree(base_of(name), folder / name)
    two_processes.write_recipe(folder, folder / "bert")
    return folder


@pytest.fixture(scope="module")
def places(request):
    """Those that are not `full`, unless all tests run."""
    return two_processes.SOON if "not full" in request.config.option.markexpr else two_processes.PLACES


@pytest.fixture(scope="module")
def of_two(place, places):
    """The weights of either of two processes, each having seen one half of every batch."""
    known = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "SELFSENT_CACHE": str(place / "cache")}
    if places == two_processes.SOON and not torch.cuda.is_available():
        fork_two(place, known)
    else:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command += [two_processes.__file__, str(place)]
        done = subprocess.run(command, env={**os.environ, **known}, capture_output=True, text=True, timeout=3600)
        assert done.returncode == 0, done.stderr[-3000:]
    return [load_file(place / f"rank{rank}.safetensors") for rank in range(2)]


def fork_two(place, known):
    """What torchrun does, without its three processes that import everything anew."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        known |= {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}

    def work(rank):
        from accelerate.state import AcceleratorState

        os.environ.update(known, RANK=str(rank), LOCAL_RANK=str(rank))
        AcceleratorState._reset_state(reset_partial_state=True)  # that of the process it was forked from
        two_processes.main(place, two_processes.SOON)

    running = [multiprocessing.get_context("fork").Process(target=work, args=(rank,)) for rank in range(2)]
    for process in running:
        process.start()
    for process in running:
        process.join(300)
        assert process.exitcode == 0


@pytest.fixture(scope="module")
def of_one(place, places):
    return two_processes.train(place, places)


def test_both_processes_have_the_same_weights(of_two):
    first, second = of_two
    assert set(first) == set(second)
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


@pytest.mark.parametrize(
    ("architecture", "run"),
    [pytest.param(*at, marks=() if at in two_processes.SOON else pytest.mark.full) for at in two_processes.PLACES],
)
def test_two_processes_equal_one(architecture, run, of_one, of_two):
    mine = {name: tensor for name, tensor in of_one.items() if name.startswith(f"{architecture}/{run}/")}
    assert len(mine) > (1 if architecture == tiny.STATIC else 10)
    for name, tensor in mine.items():
        # AdamW divides by the root of a gradient's square: where that is near zero, rounding is felt.
        torch.testing.assert_close(
            of_two[0][name], tensor, atol=2e-5, rtol=1e-5, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_stages_by_two_processes_equal_those_by_one(place, of_two, tmp_path, monkeypatch):
    monkeypatch.setenv("SELFSENT_CACHE", str(place / "cache"))
    train_stages(place / "recipe.yaml", tmp_path)
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("model/**/*.safetensors")]
    assert len(files) > 4
    for file in files:
        mine, theirs = load_file(tmp_path / file), load_file(place / "stages" / file)
        assert mine.keys() == theirs.keys()
        for name in mine:
            assert_close(
                theirs[name], mine[name], atol=1e-5, rtol=1e-5, msg=lambda text, at=f"{file} {name}": at + text
            )


def test_accumulation_and_caching_change_nothing(of_one, of_two, places):
    pairs = [(name, re.sub(", (accumulated|cached)", "", name)) for name in of_one if "lora" not in name]
    pairs = [(parts, whole) for parts, whole in pairs if parts != whole and whole in of_one]
    assert {parts.split("/")[1] for parts, _ in pairs} >= {
        run for _, run in places if ("cached" in run or "tsdae, acc" in run) and "lora" not in run
    }
    for parts, whole in pairs:
        for weights in (of_one, *of_two):
            torch.testing.assert_close(weights[parts], of_one[whole], atol=2e-5, rtol=1e-5, msg=parts)


def test_the_steps_do_something(of_one, place, places):
    for architecture, run in places:
        before = load_file(str(place / architecture / "model.safetensors"))
        mine = {name: tensor for name, tensor in of_one.items() if name.startswith(f"{architecture}/{run}/")}
        words = next(tensor for name, tensor in mine.items() if "embedding" in name and name.endswith("weight"))
        same = next(tensor for tensor in before.values() if tensor.shape == words.shape)
        if adapters := [tensor for name, tensor in mine.items() if "lora_B" in name]:  # zero at first
            assert all(tensor.abs().max() > 1e-3 for tensor in adapters)
            assert torch.equal(words, same)
        else:
            assert (words - same).abs().max() > 1e-3
