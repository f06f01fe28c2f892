"""Sentence-transformers directories that may hold a module of selfsent's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FLOW = "selfsent.heads.flow.Flow"
"""The only module that sentence-transformers has nothing like."""


def needs_selfsent(directory: Path) -> bool:
    """Whether a model loads only where selfsent is installed."""
    try:
        modules = json.loads((directory / "modules.json").read_text(encoding="utf-8"))
        return any(module["type"] == FLOW for module in modules)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def load_sentence_transformer(directory: str | Path, **options: Any) -> Any:
    """The SentenceTransformer in a local directory; of code beside sentence-transformers', only selfsent's own runs.

    Args:
        directory: where it was saved.
        **options: for its constructor.
    """
    from sentence_transformers import SentenceTransformer

    if not needs_selfsent(Path(directory)):
        return SentenceTransformer(str(directory), **options)
    from selfsent.heads.flow import Flow

    # The public constructor would want trust_remote_code for it, which would trust much more than this one class.
    return SentenceTransformer._load_with_module_classes(str(directory), {FLOW: Flow}, **options)
