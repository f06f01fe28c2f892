"""Lexical scores: terms in any language, BM25, and the terms that two texts share."""

from selfsent.lexical.analyzer import (
    LANGUAGES as LANGUAGES,
    Analyzer as Analyzer,
    fold as fold,
    language_of as language_of,
    split_words as split_words,
    words_of as words_of,
)
from selfsent.lexical.scores import BM25 as BM25, WordCounts as WordCounts
