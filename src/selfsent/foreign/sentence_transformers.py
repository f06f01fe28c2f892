"""What of sentence-transformers is not part of its API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from selfsent.foreign.said import found


def load_with(directory: str, classes: Mapping[str, type[Any]], **options: Any) -> Any:
    """A SentenceTransformer whose modules are of these classes where it names them, and of no others from elsewhere.

    The public constructor would want `trust_remote_code` for them, which would trust much more. It is asked for only
    where the private one is gone.

    Args:
        directory: where it was saved.
        classes: by the names that it has for them.
        **options: for its constructor.
    """
    from sentence_transformers import SentenceTransformer

    load = found(
        "sentence-transformers",
        SentenceTransformer,
        "_load_with_module_classes",
        "this model's own modules are loaded with trust_remote_code",
    )
    if load is None:
        return SentenceTransformer(directory, trust_remote_code=True, **options)
    return load(directory, dict(classes), **options)
