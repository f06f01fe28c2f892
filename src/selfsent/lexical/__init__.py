"""What words alone say of texts: terms in any language, BM25, and the terms that two texts share."""

from selfsent.lexical.analyzer import LANGUAGES, Analyzer, language_of
from selfsent.lexical.bm25 import BM25
from selfsent.lexical.tfidf import WordCounts

__all__ = ["BM25", "LANGUAGES", "Analyzer", "WordCounts", "language_of"]
