"""Files of vectors, exact hybrid search, the most similar pairs, and clusters."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from selfsent.lazily import imported_from

if TYPE_CHECKING:
    from selfsent.search.clusters import Clusters as Clusters, find_clusters as find_clusters
    from selfsent.search.exact import Hit as Hit, search as search
    from selfsent.search.pairs import Pair as Pair, most_similar_pairs as most_similar_pairs
    from selfsent.search.vectors import encode_corpus as encode_corpus, encode_to_file as encode_to_file

_HOMES = {
    "clusters": ("Clusters", "find_clusters"),
    "exact": ("Hit", "search"),
    "pairs": ("Pair", "most_similar_pairs"),
    "vectors": ("encode_corpus", "encode_to_file"),
}


_found = imported_from(__name__, _HOMES)


class _Callable(ModuleType):
    """Makes `selfsent.search(...)` callable: importing this package rebinds the name from function to module."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return _found("search")(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        """Import the names when they are first used: a search of an index reads no corpus."""
        return inspect.signature(_found("search")) if name == "__signature__" else _found(name)


sys.modules[__name__].__class__ = _Callable
