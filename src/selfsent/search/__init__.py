"""Files of vectors, the sentences nearest to a query, the most similar pairs, and clusters."""

import inspect
import sys
from types import ModuleType
from typing import Any

from selfsent.search.clusters import Clusters, find_clusters
from selfsent.search.index import Index
from selfsent.search.index_writer import write_index
from selfsent.search.nearest import Hit, search
from selfsent.search.pairs import Pair, most_similar_pairs
from selfsent.search.vectors import encode_corpus, encode_to_file

__all__ = [
    "Clusters",
    "Hit",
    "Index",
    "Pair",
    "encode_corpus",
    "encode_to_file",
    "find_clusters",
    "most_similar_pairs",
    "search",
    "write_index",
]


class _Callable(ModuleType):
    """Makes `selfsent.search(...)` callable: importing this package rebinds the name from function to module."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return search(*arguments, **named)


__signature__ = inspect.signature(search)
sys.modules[__name__].__class__ = _Callable
