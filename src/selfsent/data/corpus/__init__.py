"""The corpus: text in any common format becomes a clean, memory-mapped table, one row a sentence."""

from selfsent.data.corpus.read import check_corpus, read_corpus
from selfsent.data.corpus.sentences import split_sentences
from selfsent.data.corpus.table import Corpus, CorpusReport

__all__ = ["Corpus", "CorpusReport", "check_corpus", "read_corpus", "split_sentences"]
