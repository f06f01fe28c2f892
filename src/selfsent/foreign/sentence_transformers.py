"""Private names of sentence-transformers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Any

from selfsent.errors import BaseEncoderError


def load_with(directory: str, classes: Mapping[str, type[Any]], **options: Any) -> Any:
    """A SentenceTransformer whose modules may be of these classes, keyed by saved name, and no others from elsewhere.

    The public constructor would want `trust_remote_code` for them, which would run any code that a model brings.

    Raises:
        BaseEncoderError: the private constructor is gone.
    """
    from sentence_transformers import SentenceTransformer

    if load := getattr(SentenceTransformer, "_load_with_module_classes", None):
        return load(directory, dict(classes), **options)
    raise BaseEncoderError(
        f"{directory} has modules of selfsent's own, and sentence-transformers"
        f" {metadata.version('sentence-transformers')} has no _load_with_module_classes to load them with: install"
        " another version of it"
    )
