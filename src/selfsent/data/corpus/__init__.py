"""The corpus: text in any common format becomes a clean, memory-mapped table, one row a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selfsent.lazily import imported_from

if TYPE_CHECKING:
    from selfsent.data.corpus.read import check_corpus as check_corpus, read_corpus as read_corpus
    from selfsent.data.corpus.sentences import split_sentences as split_sentences
    from selfsent.data.corpus.table import Corpus as Corpus, CorpusReport as CorpusReport

_HOMES = {
    "read": ("check_corpus", "read_corpus"),
    "sentences": ("split_sentences",),
    "table": ("Corpus", "CorpusReport"),
}

__getattr__ = imported_from(__name__, _HOMES)
