"""selfsent: unlabelled sentences in, a sentence-embedding model out, and a measure of whether it helped."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from selfsent.version import __version__

if TYPE_CHECKING:
    from selfsent.api import cluster, encode, export, mine, pairs, train
    from selfsent.comparison import compare
    from selfsent.data.corpus import Corpus, read_corpus
    from selfsent.evaluation import evaluate
    from selfsent.methods import METHODS
    from selfsent.pretraining.pretrain import make_table, pretrain
    from selfsent.recipes import read_recipe, train_stages
    from selfsent.report.publish import publish
    from selfsent.report.run import Run, load_run
    from selfsent.report.seeds import over_seeds
    from selfsent.search import Index, search

__all__ = [
    "METHODS",
    "Corpus",
    "Index",
    "Run",
    "__version__",
    "cluster",
    "compare",
    "encode",
    "evaluate",
    "export",
    "load_run",
    "make_table",
    "mine",
    "over_seeds",
    "pairs",
    "pretrain",
    "publish",
    "read_corpus",
    "read_recipe",
    "search",
    "train",
    "train_stages",
]
_HOMES = {
    "api": ("cluster", "encode", "export", "mine", "pairs", "train"),
    "comparison": ("compare",),
    "data.corpus": ("Corpus", "read_corpus"),
    "evaluation": ("evaluate",),
    "methods": ("METHODS",),
    "pretraining.pretrain": ("make_table", "pretrain"),
    "recipes": ("read_recipe", "train_stages"),
    "report.publish": ("publish",),
    "report.run": ("Run", "load_run"),
    "report.seeds": ("over_seeds",),
    "search": ("Index", "search"),
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used, so that the command line answers at once."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"selfsent.{home}"), name)
    raise AttributeError(f"module 'selfsent' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names alone: modules are not offered to who presses tab."""
    return sorted(__all__)
