"""A short digest of an encoder."""

from __future__ import annotations

import hashlib

import numpy as np

from selfsent.models.bases import resolve
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import prompt_of


def fingerprint(model: Encoder) -> str:
    """A digest of an encoder that is the same for every copy and changes with any training.

    It depends on weights, vocabulary, modules, pooling, longest input and prompts. Compute it before `quicken`, which
    changes weights.
    """
    kinds = [type(module).__name__ for module in model.sentence_transformer]
    prompts = dict.fromkeys((prompt_of(model), prompt_of(model, "document")))
    about = [kinds, model.pooling, model.tokenizer.model_max_length, *prompts]
    about += ["prompts left out"] * any(map(model.left_out, prompts))
    found = hashlib.sha256(repr(about).encode())
    found.update(repr(sorted(model.tokenizer.get_vocab().items())).encode())
    for name, tensor in model.sentence_transformer.state_dict().items():
        if ".pooler." not in name:  # nothing reads it, and where a checkpoint has none it is random in every process
            found.update(str(tensor.dtype).encode())
            found.update(np.ascontiguousarray(tensor.detach().cpu().float().numpy()).data)
    return found.hexdigest()[:16]


def share_space(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether vectors of two encoders can be compared: one learned the space of the other, or both that of a third.

    Args:
        one: its fingerprint, and that of the encoder whose space it learned, or an empty string.
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
