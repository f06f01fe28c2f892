"""Sentence-transformers directories that may hold a module of selfsent's own."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

CNN_POOL_MODULE = "selfsent.heads.cnn_pool.CnnPool"
OWN = ("selfsent.heads.flow.Flow", CNN_POOL_MODULE)
"""The modules that sentence-transformers has nothing like."""


def _modules(directory: Path) -> set[str]:
    """What the modules of a saved model are, as far as that can be read."""
    try:
        modules = json.loads((directory / "modules.json").read_text(encoding="utf-8"))
        return {module["type"] for module in modules}
    except (OSError, ValueError, TypeError, KeyError):
        return set()


def needs_selfsent(directory: Path) -> bool:
    """Whether a model loads only where selfsent is installed."""
    return not _modules(directory).isdisjoint(OWN)


def has_cnn_pool(directory: Path) -> bool:
    """Whether a model pools by a CNN of its own, which is to be kept."""
    return CNN_POOL_MODULE in _modules(directory)


def load_sentence_transformer(directory: str | Path, **options: Any) -> Any:
    """The SentenceTransformer in a local directory; of code beside sentence-transformers', only selfsent's own runs.

    Args:
        directory: where it was saved.
        **options: for its constructor.
    """
    from sentence_transformers import SentenceTransformer

    own = {}
    for name in _modules(Path(directory)).intersection(OWN):
        module, _, kind = name.rpartition(".")
        own[name] = getattr(import_module(module), kind)
    if not own:
        return SentenceTransformer(str(directory), **options)
    # The public constructor would want trust_remote_code for them, which would trust much more than these classes.
    return SentenceTransformer._load_with_module_classes(str(directory), own, **options)
