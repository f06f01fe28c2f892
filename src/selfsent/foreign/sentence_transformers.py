"""What of sentence-transformers is not part of its API."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Any

from selfsent.errors import BaseEncoderError


def load_with(directory: str, classes: Mapping[str, type[Any]], **options: Any) -> Any:
    """A SentenceTransformer whose modules are of these classes where it names them, and of no others from elsewhere.

    The public constructor would want `trust_remote_code` for them, which would run any code that a model brings.

    Args:
        directory: where it was saved.
        classes: by the names that it has for them.
        **options: for its constructor.

    Raises:
        BaseEncoderError: the private constructor is gone.
    """
    from sentence_transformers import SentenceTransformer

    load = getattr(SentenceTransformer, "_load_with_module_classes", None)
    if load is None:
        version = metadata.version("sentence-transformers")
        raise BaseEncoderError(
            f"{directory} has modules of selfsent's own, and sentence-transformers {version} has no"
            " _load_with_module_classes to load them with: install another version of it"
        )
    return load(directory, dict(classes), **options)
