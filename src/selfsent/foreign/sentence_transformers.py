"""Private names of sentence-transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from selfsent.errors import BaseEncoderError


def load_with(directory: str, classes: Mapping[str, type[Any]], **options: Any) -> Any:
    """Load a SentenceTransformer with custom module classes, keyed by saved name, and no other foreign code.

    The public constructor needs `trust_remote_code` for them, which would run any code in the model.

    Raises:
        BaseEncoderError: the private constructor is missing.
    """
    from sentence_transformers import SentenceTransformer

    if load := getattr(SentenceTransformer, "_load_with_module_classes", None):
        return load(directory, dict(classes), **options)
    from importlib import metadata

    peer = f"sentence-transformers {metadata.version('sentence-transformers')}"
    lacking = f"{peer} has no _load_with_module_classes to load them with: install another version of it"
    raise BaseEncoderError(f"{directory} has modules of selfsent's own, and {lacking}")
