"""Runs with adapters: what their checkpoints hold, and going on from them."""

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import tiny
from selfsent import train
from selfsent.errors import Interrupted, RunError
from selfsent.progress import Progress

SENTENCES = tiny.make_sentences(60)


class Stopping(Progress):
    """Stops a run after a step, as Ctrl-C does."""

    def __init__(self, after):
        super().__init__()
        self.after, self.told = after, []

    def step(self, step, steps, figures):
        if step == self.after:
            raise Interrupted

    def notice(self, line):
        self.told.append(line)


def run(base, output, **options):
    usual = {"steps": 4, "batch_size": 8, "learning_rate": 0.01, "checkpoint_every": 1, "keep": 4}
    return train(SENTENCES, base=str(base), output=output, **{"lora": 4, **usual, **options})


METHODS = [
    ("bootstrap", {"delete_words": 0.3, "momentum": 0.5}, "float32"),
    ("tsdae", {}, "float32"),
    ("simcse", {"delete_words": 0.3}, "bfloat16"),
]


@pytest.mark.parametrize(("method", "options", "precision"), METHODS)
def test_a_run_that_was_stopped_goes_on_exactly(method, options, precision, base_of, tmp_path):
    given = {"method": method, "precision": precision, **options}
    run(base_of("bert"), tmp_path / "whole", **given, quiet=True)
    with pytest.raises(Interrupted):
        run(base_of("bert"), tmp_path / "stopped", **given, progress=Stopping(2))
    run(base_of("bert"), tmp_path / "stopped", **given, resume=True, quiet=True)
    whole, stopped = (load_file(tmp_path / name / "model/model.safetensors") for name in ("whole", "stopped"))
    assert whole.keys() == stopped.keys()
    assert all(torch.equal(whole[name], stopped[name]) for name in whole)


def test_a_checkpoint_holds_the_adapter_alone(base_of, tmp_path):
    run(base_of("bert"), tmp_path, method="simcse", delete_words=0.3, mlp=False, quiet=True)
    for file in tmp_path.glob("checkpoints/*/learner.safetensors"):
        with safe_open(str(file), framework="pt") as tensors:
            names = list(tensors.keys())
        assert names
        assert all("lora_" in name or "language_model_head" in name for name in names)


def test_a_damaged_checkpoint_is_passed_over(base_of, tmp_path):
    given = {"method": "simcse", "delete_words": 0.3}
    with pytest.raises(Interrupted):
        run(base_of("bert"), tmp_path, **given, progress=Stopping(3))
    newest = max(tmp_path.glob("checkpoints/step-*")) / "learner.safetensors"
    content = bytearray(newest.read_bytes())
    content[-3] ^= 1
    newest.write_bytes(content)
    heard = Stopping(None)
    run(base_of("bert"), tmp_path, **given, resume=True, progress=heard)
    assert any("is damaged or cut short" in line for line in heard.told)


def test_a_run_goes_on_with_the_same_rank_alone(base_of, tmp_path):
    with pytest.raises(Interrupted):
        run(base_of("bert"), tmp_path, method="simcse", delete_words=0.3, progress=Stopping(1))
    with pytest.raises(RunError, match="lora"):
        run(base_of("bert"), tmp_path, method="simcse", delete_words=0.3, lora=8, resume=True)
