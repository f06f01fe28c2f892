"""selfsent: unlabelled sentences in, a sentence-embedding model out, and a measure of whether it helped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selfsent.lazily import imported_from
from selfsent.version import __version__ as __version__

if TYPE_CHECKING:  # the names twice, so that type checkers take them for ours
    from selfsent.api import (
        cluster as cluster,
        dedup as dedup,
        encode as encode,
        export as export,
        mine as mine,
        pairs as pairs,
        train as train,
    )
    from selfsent.comparison import compare as compare
    from selfsent.data.corpus import Corpus as Corpus, read_corpus as read_corpus
    from selfsent.evaluation import evaluate as evaluate
    from selfsent.exam.calibrate import calibrate as calibrate
    from selfsent.index import Index as Index
    from selfsent.methods import METHODS as METHODS
    from selfsent.pretraining.pretrain import make_table as make_table, pretrain as pretrain
    from selfsent.recipes import read_recipe as read_recipe, train_seeds as train_seeds, train_stages as train_stages
    from selfsent.report.publish import publish as publish
    from selfsent.report.run import Run as Run, load_run as load_run
    from selfsent.search import search as search

_HOMES = {
    "api": ("cluster", "dedup", "encode", "export", "mine", "pairs", "train"),
    "comparison": ("compare",),
    "data.corpus": ("Corpus", "read_corpus"),
    "evaluation": ("evaluate",),
    "exam.calibrate": ("calibrate",),
    "index": ("Index",),
    "methods": ("METHODS",),
    "pretraining.pretrain": ("make_table", "pretrain"),
    "recipes": ("read_recipe", "train_seeds", "train_stages"),
    "report.publish": ("publish",),
    "report.run": ("Run", "load_run"),
    "search": ("search",),
}

__all__ = ["__version__", *(name for names in _HOMES.values() for name in names)]


__getattr__ = imported_from(__name__, _HOMES)


def __dir__() -> list[str]:
    """The public names; hide submodules from tab completion."""
    return sorted(__all__)
