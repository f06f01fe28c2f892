"""Lexical scores: terms in any language, BM25, and the terms that two texts share."""

from selfsent.lexical.analyzer import LANGUAGES, Analyzer, language_of
from selfsent.lexical.scores import BM25, WordCounts

__all__ = ["BM25", "LANGUAGES", "Analyzer", "WordCounts", "language_of"]
