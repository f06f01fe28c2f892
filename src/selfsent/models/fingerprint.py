"""A short digest of an encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from selfsent.models.bases import resolve
from selfsent.models.encoding import longest_of, prompt_of
from selfsent.models.table import Table

if TYPE_CHECKING:
    from selfsent.models.encoding import Model

_FLOAT = "torch.float32"
"""The type of a table's numbers, once they are read."""


def fingerprint(model: Model) -> str:
    """A digest of an encoder that is the same for every copy and changes with any training.

    It depends on weights, vocabulary, modules, pooling, longest input and prompts. Compute it before `quicken`, which
    changes weights.
    """
    prompts = dict.fromkeys((prompt_of(model), prompt_of(model, "document")))
    about: list[Any] = [_kinds(model), model.pooling, longest_of(model), *prompts]
    if not isinstance(model, Table):
        about += ["prompts left out"] * any(map(model.left_out, prompts))
    elif model.known_fingerprint[0] == repr(about):  # nothing changes its numbers
        return model.known_fingerprint[1]
    found = hashlib.sha256(repr(about).encode())
    found.update(repr(sorted(model.tokenizer.get_vocab().items(), key=itemgetter(0))).encode())
    for kind, parts in _weights(model):
        found.update(kind.encode())
        for part in parts:
            found.update(np.ascontiguousarray(part).data)
    digest = found.hexdigest()[:16]
    if isinstance(model, Table):
        model.known_fingerprint = repr(about), digest
    return digest


def _kinds(model: Model) -> list[str]:
    """The names of the modules of an encoder, as sentence-transformers has them."""
    if isinstance(model, Table):
        return ["StaticEmbedding", *(module.kind for module in model.after)]
    return [type(module).__name__ for module in model.sentence_transformer]


def _weights(model: Model) -> Iterator[tuple[str, Iterable[Any]]]:
    """The type of each weight, and its numbers as float32, in parts."""
    if isinstance(model, Table):
        yield _FLOAT, model.rows.parts()
        yield from ((_FLOAT, [array]) for module in model.after for array in module.arrays.values())
        return
    for name, tensor in model.sentence_transformer.state_dict().items():
        if ".pooler." not in name:  # nothing reads it, and where a checkpoint has none it is random in every process
            yield str(tensor.dtype), [tensor.detach().cpu().float().numpy()]


def share_space(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether vectors of two encoders can be compared: one learned the space of the other, or both that of a third.

    Args:
        one: its fingerprint, and the fingerprint of the encoder whose space it learned, or an empty string.
        other: likewise.
    """
    return not {*one}.isdisjoint({*other} - {""})


def files_fingerprint(model: str) -> str:
    """A short digest of a model's files, the same on every machine that has the same model."""
    directory, found = resolve(model), hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.suffix in (".json", ".safetensors", ".txt", ".model", ".bin") and path.is_file():
            found.update(path.relative_to(directory).as_posix().encode())
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]
