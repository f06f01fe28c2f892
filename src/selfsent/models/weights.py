"""Whether a model has all of its weights from its files: transformers draws those that it misses at random."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from safetensors import safe_open

from selfsent.errors import BaseEncoderError
from selfsent.foreign.transformers import adapter_weights, drawn_at_random, tell_unmarked

_ADAPTER = "adapter_model.safetensors"
_NAMED = 3
"""Maximum number of names of weights in a message."""


def require_weights(model: Any, directory: str | Path) -> None:
    """Check that every weight that is read was in the files.

    The pooler of an encoder may be missing: next-sentence prediction alone reads it, and a new one is never used.

    Args:
        model: a loaded model of transformers or sentence-transformers.
        directory: where it was loaded from.

    Raises:
        BaseEncoderError: weights are missing, by name; or an adapter has some that the model has no place for.
    """
    folder = Path(directory)
    for part, missing, whole in drawn_at_random(model):
        if not missing:
            continue
        names = _names_in(folder)
        if whole and any(
            f"{prefix}{name}" in names for prefix in ("", f"{part.base_model_prefix}.") for name in missing
        ):
            tell_unmarked()
            continue
        if prefix := prefix_of(names, missing):
            example = f"{prefix}{missing[0]}"
            problem = f"all weights of {folder} have {prefix!r} before their names, as in {example!r}"
            raise BaseEncoderError(f"{problem}, and would not be read: take that off the names, and save it again")
        raise BaseEncoderError(f"{folder} lacks {_list(missing)}: a model with random weights there is of no use")
    unread = sum("lora_" in name for name in _names_in(folder, _ADAPTER)) - len(adapter_weights(model))
    if unread > 0:
        problem = f"the adapter in {folder} has {unread} weights that its base has no place for"
        raise BaseEncoderError(f"{problem}: it is of another base, or of another kind")


def prefix_of(names: Collection[str], missing: Iterable[str]) -> str:
    """Common prefix in a file of all missing names; empty without one."""
    first, *others = missing
    for name in sorted(names):
        prefix = name.removesuffix(first)
        if prefix.endswith(".") and all(f"{prefix}{other}" in names for other in others):
            return prefix
    return ""


def _names_in(folder: Path, pattern: str = "*.safetensors") -> set[str]:
    """The names of the weights in files of a folder and its subfolders."""
    names = set[str]()
    for file in folder.rglob(pattern):
        with safe_open(str(file), framework="pt") as tensors:
            names |= set(tensors.keys())
    return names


def _list(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    more = f" and {len(names) - _NAMED:,} others" if len(names) > _NAMED else ""
    return f"{'the weight' if len(names) == 1 else f'{len(names):,} weights'} {shown}{more}"
