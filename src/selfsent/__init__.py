"""selfsent: unlabelled sentences in, a sentence-embedding model out, and proof of whether it helped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from selfsent.version import __version__

if TYPE_CHECKING:
    from selfsent.api import Run, evaluate, load_run, train
    from selfsent.corpus import Corpus, read_corpus

__all__ = ["Corpus", "Run", "__version__", "evaluate", "load_run", "read_corpus", "train"]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used, so that the command line answers at once."""
    if name in {"Corpus", "read_corpus"}:
        from selfsent import corpus

        return getattr(corpus, name)
    if name in __all__:
        from selfsent import api

        return getattr(api, name)
    raise AttributeError(f"module 'selfsent' has no attribute {name!r}")
