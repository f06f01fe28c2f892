"""Lexical scores: terms in any language, BM25, the terms that two texts share, and hybrid ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selfsent.lazily import imported_from

if TYPE_CHECKING:
    from selfsent.lexical.analyzer import (
        LANGUAGES as LANGUAGES,
        Analyzer as Analyzer,
        fold as fold,
        language_code as language_code,
        language_of as language_of,
        lower as lower,
        split_words as split_words,
        words_of as words_of,
    )
    from selfsent.lexical.bm25 import BM25 as BM25, BM25Stats as BM25Stats
    from selfsent.lexical.tfidf import WordCounts as WordCounts, WordWeights as WordWeights

_HOMES = {
    "analyzer": ("LANGUAGES", "Analyzer", "fold", "language_code", "language_of", "lower", "split_words", "words_of"),
    "bm25": ("BM25", "BM25Stats"),
    "tfidf": ("WordCounts", "WordWeights"),
}

__getattr__ = imported_from(__name__, _HOMES)
