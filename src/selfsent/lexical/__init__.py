"""Lexical scores: terms in any language, BM25, and the terms that two texts share."""

from selfsent.lexical.analyzer import LANGUAGES as LANGUAGES, Analyzer as Analyzer, language_of as language_of
from selfsent.lexical.scores import BM25 as BM25, WordCounts as WordCounts
