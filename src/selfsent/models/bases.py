"""A base encoder by name: one that ships, a new recurrent network, a local directory, or an id on the hub."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from functools import cache
from importlib import resources
from pathlib import Path

from selfsent.errors import BaseEncoderError, FromHub
from selfsent.files import read_json
from selfsent.models.new_bases import NewBase, made
from selfsent.models.trust import refuse_unsafe
from selfsent.naming import name_of

BUNDLED, ENCODER, RAW, RAW_STATIC = "bundled", "bundled-encoder", "bundled-raw", "bundled-raw-static"
SHIPPED = {BUNDLED: "static", ENCODER: "encoder", RAW: "raw", RAW_STATIC: "raw_static"}
"""The encoders that ship with selfsent, and their directories: after a teacher, a table of token vectors and a
transformer; and from raw text alone, without teacher or label, a transformer and a table."""
_NAMES = "'bundled' or another that ships with selfsent"
_WANTED = ["README.md", "*.json", "*.txt", "*.jinja", "*.model", "*.safetensors", "*/*.json", "*/*.safetensors"]
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def resolve(base: str | os.PathLike[str]) -> Path:
    """The local directory of a base encoder, fetched from the hub when it is an id that is not in the hub's cache yet.

    Args:
        base: the name of an encoder that ships with selfsent, an untrained one (`gru`, `lstm`, `bilstm`, `bert`,
            `albert` or `random-table`, with `:SIZE` and `:SOURCE` as in `NewBase`), a directory in transformers or
            sentence-transformers layout, the directory of a finished run, or a hub id.

    Raises:
        BaseEncoderError: there is no such directory, it holds no encoder, or the hub does not have it or cannot be
            reached.
    """
    name = str(name_of(base))
    if name in SHIPPED:
        return Path(str(resources.files("selfsent"))) / "models" / "bundled" / SHIPPED[name]
    if network := NewBase.named(name):
        return made(network, resolve)
    directory = Path(name).expanduser()
    if directory.is_dir():
        return _checked(directory)
    if directory.exists():
        raise BaseEncoderError(f"{name} is a file; a base encoder is a directory, a hub id, or {_NAMES}")
    if directory.name == "model" and (directory.parent / "run.json").is_file():
        return _checked(directory.parent)
    if name.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(name):
        raise BaseEncoderError(f"there is no directory {name}; a base encoder is a directory, a hub id, or {_NAMES}")
    found = _from_hub(name)
    refuse_unsafe(found)
    _tell_from_hub(name)
    return found


@cache
def _tell_from_hub(name: str) -> None:
    """Say once that a name, perhaps a mistyped directory, is taken for an id."""
    warnings.warn(f"there is no directory {name} here: it is taken from the hub", FromHub, stacklevel=3)


def files_of(directory: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of change of each file of a model: what tells that it is another one by now."""
    states = ((str(path), path.stat()) for path in sorted(directory.rglob("*")) if path.is_file())
    return tuple((name, state.st_size, state.st_mtime_ns) for name, state in states)


def _checked(directory: Path) -> Path:
    is_run = (directory / "run.json").is_file()
    if is_run and (directory / "model").is_dir():
        refuse_unsafe(directory / "model")
        return directory / "model"
    if not any((directory / name).is_file() for name in ("modules.json", "config.json")):
        if is_run:
            raise BaseEncoderError(f"{directory} is a run without a model: {_why_none(directory)}")
        if any((directory / "seeds").glob("*/run.json")):
            raise BaseEncoderError(f"{directory} holds a run of each seed: give one or all of {directory}/seeds/*")
        raise BaseEncoderError(
            f"{directory} holds no encoder: neither config.json (transformers)"
            " nor modules.json (sentence-transformers) is there"
        )
    refuse_unsafe(directory)
    return directory


def _why_none(run: Path) -> str:
    """Why a run has no model yet, or never will."""
    record = read_json(run / "run.json")
    if stopped := record.get("stopped"):
        return f"{stopped}; leave it out"
    if record.get("status") == "finished":  # a comparison in which the untrained base is best, or models of folds
        return "it ended without one"
    return "go on with it by --resume"


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        kept = Path(snapshot_download(name, allow_patterns=_WANTED, local_files_only=True))
        if any(kept.rglob("*.safetensors")):  # more than a tokenizer that another program has fetched
            return kept
    except Exception:  # not in the cache: whatever the reason, the hub is asked next
        pass
    try:
        return Path(snapshot_download(name, allow_patterns=_WANTED, etag_timeout=5))
    # The hub client raises its own and its HTTP library's errors, which change between versions.
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise BaseEncoderError(
            f"there is no directory {name}, and as a hub id it is not in the hub's cache and could not be fetched"
            f" ({type(error).__name__}{': ' + reason[0][:120] if reason else ''}): check the name and the network,"
            " or copy the model here and give its directory"
        ) from None


def weights_digest(directory: Path) -> str:
    """A short digest of a base's weights."""
    total = hashlib.sha256()
    for file in sorted(directory.rglob("*.safetensors")):
        with file.open("rb") as opened:
            total.update(hashlib.file_digest(opened, "sha256").digest())
    return total.hexdigest()[:16]
