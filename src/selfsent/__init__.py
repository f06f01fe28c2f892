"""selfsent: unlabelled sentences in, a sentence-embedding model out, and a measure of whether it helped."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from selfsent.version import __version__

if TYPE_CHECKING:
    from selfsent.api import train
    from selfsent.comparison import compare
    from selfsent.data.corpus import Corpus, read_corpus
    from selfsent.evaluation import evaluate
    from selfsent.pretraining.pretrain import make_table
    from selfsent.recipes import over_seeds, read_recipe, train_stages
    from selfsent.report.run import Run, load_run

__all__ = [
    "Corpus",
    "Run",
    "__version__",
    "compare",
    "evaluate",
    "load_run",
    "make_table",
    "over_seeds",
    "read_corpus",
    "read_recipe",
    "train",
    "train_stages",
]


_HOMES = {
    "Corpus": "data.corpus",
    "Run": "report.run",
    "compare": "comparison",
    "evaluate": "evaluation",
    "load_run": "report.run",
    "make_table": "pretraining.pretrain",
    "over_seeds": "recipes",
    "read_corpus": "data.corpus",
    "read_recipe": "recipes",
    "train": "api",
    "train_stages": "recipes",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used, so that the command line answers at once."""
    if name in _HOMES:
        return getattr(import_module(f"selfsent.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'selfsent' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names alone: modules are not offered to who presses tab."""
    return sorted(__all__)
