"""A short name for an encoder, which another encoder does not have."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from selfsent.models.bases import resolve
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import prompt_of


def fingerprint(model: Encoder) -> str:
    """The same for every copy of an encoder, wherever it lies; another one after any training.

    It depends on weights, vocabulary, modules, pooling, longest input and prompts. Take it before the encoder is told
    to compute in fewer bits, which changes weights.
    """
    found = hashlib.sha256()
    kinds = [type(module).__name__ for module in model.sentence_transformer]
    documents = [prompt] if (prompt := prompt_of(model, "document")) != prompt_of(model) else []
    about = [kinds, model.pooling, model.tokenizer.model_max_length, prompt_of(model), *documents]
    found.update(repr(about).encode())
    found.update(repr(sorted(model.tokenizer.get_vocab().items())).encode())
    hash_weights(found, model)
    return found.hexdigest()[:16]


def hash_weights(found: Any, model: Encoder) -> None:
    """Feed an encoder's weights to a hash."""
    for name, tensor in model.sentence_transformer.state_dict().items():
        if ".pooler." in name:  # nothing reads it, and where a checkpoint has none it is random in every process
            continue
        found.update(str(tensor.dtype).encode())
        found.update(np.ascontiguousarray(tensor.detach().cpu().float().numpy()).data)


def files_fingerprint(model: str) -> str:
    """A short digest of a model's files, the same on every machine that has the same model."""
    directory, found = resolve(model), hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.suffix in (".json", ".safetensors", ".txt", ".model", ".bin") and path.is_file():
            found.update(path.relative_to(directory).as_posix().encode())
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]
