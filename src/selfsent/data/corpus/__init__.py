"""The corpus: text in any common format becomes a clean, memory-mapped table, one row a sentence."""

from selfsent.data.corpus.read import check_corpus as check_corpus, read_corpus as read_corpus
from selfsent.data.corpus.sentences import split_sentences as split_sentences
from selfsent.data.corpus.table import Corpus as Corpus, CorpusReport as CorpusReport
