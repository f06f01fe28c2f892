"""Checkpoints in safetensors and JSON, checked when they are read, and the model of the best score."""

from __future__ import annotations

import hashlib
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

_MANIFEST, _LEARNER, _BEST = "manifest.json", "learner.safetensors", "best.json"


def _distinct(learner: Learner) -> dict[str, Tensor]:
    """Every tensor of the learner's state once, tied ones under the first of their names; without frozen ones."""
    seen = {(tensor.data_ptr(), tensor.numel()) for tensor in getattr(learner, "frozen", ())}
    tensors = {}
    for name, tensor in learner.state_dict().items():
        memory = (tensor.data_ptr(), tensor.numel())
        if memory not in seen or tensor.numel() == 0:
            seen.add(memory)
            tensors[name] = tensor.detach()
    return tensors


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def save_checkpoint(
    directory: Path, learner: Learner, optimizer: torch.optim.Optimizer, progress: dict[str, Any]
) -> None:
    """Write a checkpoint, whole or not at all.

    Args:
        directory: its path; an existing one is replaced.
        learner: saved with all its submodules and buffers.
        optimizer: its moments are saved.
        progress: progress of the run, as JSON; must hold `step`.
    """
    moments = {
        f"{number}.{name}": torch.as_tensor(value).contiguous()
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }
    with atomic_directory(directory) as temporary:
        weights = {name: tensor.contiguous() for name, tensor in _distinct(learner).items()}
        save_file(weights, str(temporary / _LEARNER))
        save_file(moments, str(temporary / "optimizer.safetensors"))
        (temporary / "progress.json").write_text(json.dumps(progress))
        digests = {file.name: _digest(file) for file in sorted(temporary.iterdir())}
        (temporary / _MANIFEST).write_text(json.dumps(digests))


def is_whole(directory: Path) -> bool:
    """Whether every file of a checkpoint is there and undamaged."""
    digests = read_json(directory / _MANIFEST)
    try:
        return bool(digests) and all(_digest(directory / name) == digest for name, digest in digests.items())
    except OSError:
        return False


def load_checkpoint(directory: Path, learner: Learner, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Restore a learner and its optimiser from a checkpoint of the first process; returns its `progress`."""

    def read() -> Any:
        tensors = (load_file(str(directory / name)) for name in (_LEARNER, "optimizer.safetensors"))
        return *tensors, json.loads((directory / "progress.json").read_text())

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


def snapshot(learner: Learner) -> dict[str, Tensor]:
    """A copy of the learner's state in memory, for `restore`."""
    return {name: tensor.clone() for name, tensor in _distinct(learner).items()}


@torch.no_grad()
def restore(learner: Learner, tensors: dict[str, Tensor]) -> None:
    """Set the learner's state to tensors from `snapshot` or a checkpoint."""
    own = _distinct(learner)
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
            was: that of the run before.
        """
        kept = by_first(lambda: read_json(self.directory / _BEST).get("score")) if self.keep else score
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
            with atomic_directory(self.directory) as temporary:
                save_file(snapshot(learner), str(temporary / _LEARNER))
                about = {"step": step, "score": score, "sums": checksums(temporary, [_LEARNER])}
                (temporary / _BEST).write_text(json.dumps(signed(about)))

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
        about = read_json(self.directory / _BEST)
        if "step" not in about or not is_signed(about) or damaged(self.directory, about.get("sums", {})):
            raise TrainingError(
                f"{self.directory} is damaged, and the model of the best score is lost",
                "remove it to keep the model of the last step, or train with overwrite=True",
            )
        return load_file(str(self.directory / _LEARNER)), {name: about[name] for name in ("step", "score")}

    def forget(self) -> None:
        """Delete the saved learner."""
        wait()
        if rank() == 0:
            shutil.rmtree(self.directory, ignore_errors=True)
