"""What is refused of an encoder's directory before anything is loaded from it: damage, pickles, ways out of it."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from selfsent.errors import BaseEncoderError
from selfsent.integrity import broken_seal

_PICKLES, _STEMS = (".bin", ".pt", ".pth", ".ckpt", ".pkl"), ("pytorch_model", "model")

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


def refuse_unsafe(directory: Path) -> None:
    """Refuse a directory that a download or a copy damaged, or whose author may mean harm.

    Code in it is never run. Weights are read from safetensors alone: a pickle may run code when it is opened.

    Raises:
        BaseEncoderError: weights are not as they were written, or lie in a pickle, or a module lies elsewhere.
    """
    places = [""]
    for place in _module_places(directory):
        if _leads_out(place):
            raise BaseEncoderError(
                f"{directory / 'modules.json'} names {place!r}, which lies elsewhere: a model is one directory"
            )
        places.append(place)
    below = {path for place in places[1:] if place for path in (directory / place).rglob("*") if path.is_dir()}
    for folder in (*(directory / place for place in places), *sorted(below)):
        pickles = sorted(path for path in folder.glob("*") if path.suffix in _PICKLES and path.stem.startswith(_STEMS))
        if pickles and not any((folder / name).is_file() for name in _WEIGHTS):
            raise BaseEncoderError(
                f"{pickles[0]} is a pickle, which may run code when it is opened: only safetensors are read; ask"
                " for a safetensors version, or convert it if you trust it: SentenceTransformer(MODEL).save(DIRECTORY)"
            )
    if damaged := broken_seal(directory):
        raise BaseEncoderError(f"{damaged} is damaged: it is not as it was written: copy the model again, or train it")


def _module_places(directory: Path) -> list[str]:
    try:
        modules: Any = json.loads((directory / "modules.json").read_text(encoding="utf-8"))
        return [str(module["path"]) for module in modules]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):  # which is said where it is loaded
        return []


def _leads_out(place: str) -> bool:
    both = PurePosixPath(place), PureWindowsPath(place)
    return any(path.is_absolute() or path.anchor or ".." in path.parts for path in both)
