"""What vectors are good for: files of them, the sentences nearest to a query, and the most similar pairs."""

from selfsent.search.nearest import search
from selfsent.search.pairs import Pair, most_similar_pairs
from selfsent.search.vectors import FORMATS, check_output, encode_corpus, encode_to_file

__all__ = ["FORMATS", "Pair", "check_output", "encode_corpus", "encode_to_file", "most_similar_pairs", "search"]
