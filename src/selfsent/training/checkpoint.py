"""Checkpoints: the whole learner and its optimiser in safetensors and JSON, checked when they are read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from selfsent.distributed import by_first
from selfsent.files import atomic_directory
from selfsent.methods import Learner

_MANIFEST = "manifest.json"


def _distinct(learner: Learner) -> dict[str, Tensor]:
    """Every tensor of the learner's state once; tied weights appear under the first of their names."""
    seen: set[tuple[int, int]] = set()
    tensors = {}
    for name, tensor in learner.state_dict().items():
        place = (tensor.data_ptr(), tensor.numel())
        if place not in seen or tensor.numel() == 0:
            seen.add(place)
            tensors[name] = tensor.detach()
    return tensors


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": torch.as_tensor(value).contiguous()
        for number, values in state.items()
        for name, value in values.items()
    }


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def save_checkpoint(
    directory: Path, learner: Learner, optimizer: torch.optim.Optimizer, progress: dict[str, Any]
) -> None:
    """Write a checkpoint that appears whole or not at all.

    Args:
        directory: its place; what is there already is replaced.
        learner: saved with all its submodules and buffers.
        optimizer: its moments are saved.
        progress: how far the run is, as JSON; must hold `step`.
    """
    with atomic_directory(directory) as temporary:
        weights = {name: tensor.contiguous() for name, tensor in _distinct(learner).items()}
        save_file(weights, str(temporary / "learner.safetensors"))
        save_file(_optimizer_tensors(optimizer), str(temporary / "optimizer.safetensors"))
        (temporary / "progress.json").write_text(json.dumps(progress))
        digests = {file.name: _digest(file) for file in sorted(temporary.iterdir())}
        (temporary / _MANIFEST).write_text(json.dumps(digests))


def is_whole(directory: Path) -> bool:
    """Whether every file of a checkpoint is there and as it was written."""
    try:
        digests = json.loads((directory / _MANIFEST).read_text())
        return bool(digests) and all(_digest(directory / name) == digest for name, digest in digests.items())
    except (OSError, ValueError, AttributeError):
        return False


def load_checkpoint(directory: Path, learner: Learner, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Put a learner and its optimiser back to where a checkpoint was written; returns its `progress`.

    The first process reads it, and the others get it from there: their machines may not have it.

    Args:
        directory: the checkpoint.
        learner: gets its weights and buffers.
        optimizer: gets its moments.
    """
    weights, moments, progress = by_first(lambda: _read(directory))
    restore(learner, weights)
    state = optimizer.state_dict()
    state["state"] = {}
    for name, tensor in moments.items():
        number, _, moment = name.partition(".")
        state["state"].setdefault(int(number), {})[moment] = tensor
    optimizer.load_state_dict(state)
    found: dict[str, Any] = progress
    return found


def _read(directory: Path) -> Any:
    """The tensors of learner and optimiser by name, and the `progress`."""
    learner, optimizer = (load_file(str(directory / f"{name}.safetensors")) for name in ("learner", "optimizer"))
    return learner, optimizer, json.loads((directory / "progress.json").read_text())


def snapshot(learner: Learner) -> dict[str, Tensor]:
    """A copy of the learner's state in memory, to go back to with `restore`."""
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
