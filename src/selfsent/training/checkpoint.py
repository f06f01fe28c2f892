"""Checkpoints in safetensors and JSON, checked when they are read, and the model of the best score."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from selfsent.distributed import by_first, rank, wait
from selfsent.errors import TrainingError
from selfsent.files import atomic_directory, read_json
from selfsent.integrity import checksums, damaged, is_signed, signed
from selfsent.methods import Learner

_LEARNER, _OPTIMIZER, _PROGRESS = "learner.safetensors", "optimizer.safetensors", "progress.json"


def distinct(learner: Learner) -> dict[str, Tensor]:
    """Every tensor of the learner's state once, tied ones under the first of their names; without frozen ones."""
    seen = {(tensor.data_ptr(), tensor.numel()) for tensor in getattr(learner, "frozen", ())}
    tensors = {}
    for name, tensor in learner.state_dict().items():
        memory = (tensor.data_ptr(), tensor.numel())
        if memory not in seen or tensor.numel() == 0:
            seen.add(memory)
            tensors[name] = tensor.detach()
    return tensors


def save_checkpoint(
    directory: Path, learner: Learner, optimizer: torch.optim.Optimizer | None, progress: dict[str, Any]
) -> None:
    """Write a checkpoint, whole or not at all.

    Args:
        directory: its path; an existing one is replaced.
        learner: saved with all its submodules and buffers.
        optimizer: its moments are saved, if there is one.
        progress: progress of the run, as JSON; must hold `step`.
    """
    files = {_LEARNER: {name: tensor.contiguous() for name, tensor in distinct(learner).items()}}
    if optimizer is not None:
        files[_OPTIMIZER] = {
            f"{number}.{name}": torch.as_tensor(value).contiguous()
            for number, values in optimizer.state_dict()["state"].items()
            for name, value in values.items()
        }
    with atomic_directory(directory) as temporary:
        for name, tensors in files.items():
            save_file(tensors, str(temporary / name))
        about = {**progress, "sums": checksums(temporary, files)}
        (temporary / _PROGRESS).write_text(json.dumps(signed(about)))


def progress_in(directory: Path) -> dict[str, Any]:
    """The progress of a checkpoint; empty where a file of it is missing or damaged."""
    about = read_json(directory / _PROGRESS)
    whole = "sums" in about and is_signed(about) and damaged(directory, about["sums"]) is None
    return about if whole else {}


def load_checkpoint(directory: Path, learner: Learner, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Restore a learner and its optimiser from a checkpoint of the first process; returns its `progress`."""

    def read() -> Any:
        return *(load_file(str(directory / name)) for name in (_LEARNER, _OPTIMIZER)), progress_in(directory)

    weights, moments, progress = by_first(read)
    restore(learner, weights)
    state = optimizer.state_dict()
    state["state"] = {}
    for name, tensor in moments.items():
        number, _, moment = name.partition(".")
        state["state"].setdefault(int(number), {})[moment] = tensor
    optimizer.load_state_dict(state)
    found: dict[str, Any] = progress
    return found


@torch.no_grad()
def restore(learner: Learner, tensors: dict[str, Tensor]) -> None:
    """Set the learner's state to tensors from a checkpoint."""
    own = distinct(learner)
    if set(own) != set(tensors):
        odd = sorted(set(own) ^ set(tensors))[0]
        raise ValueError(f"the checkpoint does not fit the learner: {odd}")
    for name, tensor in own.items():
        tensor.copy_(tensors[name])


class BestCheckpoint:
    """The best development score of a run, and the learner that had it, saved until the run is over.

    Args:
        run: the run directory.
        keep: whether the learner is saved, or only the score remembered.
    """

    def __init__(self, run: Path, keep: bool) -> None:
        self.directory, self.keep = run / "best", keep
        self.score = -math.inf

    def resume(self, score: float | None, dev: str | None, was: str | None) -> None:
        """Start from the best score of a resumed run; an earlier best that was not kept, or of another score, is void.

        Args:
            score: the best one so far; None without any.
            dev: the development score from here on.
            was: development score of the run before.
        """
        kept = by_first(lambda: read_json(self.directory / _PROGRESS).get("score")) if self.keep else score
        if score is not None and dev == was and isinstance(kept, int | float) and kept >= score:
            self.score = score
        else:
            self.forget()

    def offer(self, score: float, step: int, learner: Learner) -> None:
        """Keep the score and the learner if there was no better one."""
        if not score > self.score:  # nor if it is not a number
            return
        self.score = score
        if self.keep and rank() == 0:
            save_checkpoint(self.directory, learner, None, {"step": step, "score": score})

    def put_back(self, learner: Learner) -> dict[str, Any]:
        """Give the learner the weights of the best score, if saved; returns `step` and `score`, or nothing.

        Raises:
            TrainingError: the saved weights are damaged.
        """
        wait()
        weights, about = by_first(self._read)  # other machines may not have it
        if weights:
            restore(learner, weights)
        return about

    def _read(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        if not (self.keep and self.directory.is_dir()):
            return {}, {}
        about = progress_in(self.directory)
        if not about:
            advice = "remove it to keep the model of the last step, or train with overwrite=True"
            raise TrainingError(f"{self.directory} is damaged, and the model of the best score is lost", advice)
        return load_file(str(self.directory / _LEARNER)), {name: about[name] for name in ("step", "score")}

    def forget(self) -> None:
        """Delete the saved learner."""
        wait()
        if rank() == 0:
            shutil.rmtree(self.directory, ignore_errors=True)
