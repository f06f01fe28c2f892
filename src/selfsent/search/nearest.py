"""The sentences nearest to a query, by their vectors and by the words that they share with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus import Corpus
from selfsent.errors import ONE_STRING, SettingsError
from selfsent.evaluation.vectors import VectorsFile
from selfsent.evaluation.words import WEIGHT, WordCounts, check_weight
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.search.encoder import opened
from selfsent.search.rows import sentences
from selfsent.search.sources import corpus_vectors
from selfsent.search.vectors import unit

_COUNTED_TOGETHER = 256


class Hit(NamedTuple):
    """A sentence that was found.

    Args:
        row: of the corpus' distinct sentences, or number of the vector of an index.
        cosine: of its vector and the query's.
        words: how much of the query's words it shares, from 0 to 1: the cosine of both by TF-IDF. 0 where words were
            not looked at.
    """

    row: int
    cosine: float
    words: float


def search(
    model: Encoder | str | os.PathLike[str],
    corpus: Corpus,
    queries: list[str],
    top: int = 10,
    advance: Callable[[int], None] = lambda count: None,
    file: VectorsFile | None = None,
    word_weight: float = WEIGHT,
) -> list[list[Hit]]:
    """The distinct sentences nearest to each query, by cosine + word_weight · words, best first; all are compared.

    Args:
        model: the encoder, or the name of one, such as a run's directory.
        corpus: the sentences to search.
        queries: what to look for.
        top: how many sentences a query.
        advance: called with the number of rows of the input done since the last call.
        file: with the vectors of the corpus, as `encode_to_file` writes it; without it they are computed.
        word_weight: of the words that a sentence shares with a query, beside the cosine; 0: the cosine alone.

    Raises:
        DataError: the file is damaged, or holds other vectors.
        SettingsError: one query that is in no list, no encoder, or a weight that is none.
    """
    if isinstance(queries, str):
        raise SettingsError(ONE_STRING)
    check_weight(word_weight)
    model = opened(model)
    wanted = unit(encode(model, queries, side="query"))
    counts = counted(corpus) if word_weight else None
    asked = counts.weighed(queries) if counts else None
    texts, best = sentences(corpus), Best(len(queries), top)
    start, tell = 0, corpus.origins.in_pieces(advance)
    for vectors in corpus_vectors(model, corpus, file, "document"):
        cosines = wanted @ unit(vectors).T
        words = None
        if counts:
            words = (asked @ counts.weighed(list(islice(texts, len(vectors)))).T).toarray()
        best.take(np.arange(start, start + len(vectors)), cosines, words, word_weight)
        start += len(vectors)
        tell(len(vectors))
    return best.hits()


def counted(corpus: Corpus) -> WordCounts:
    """In how many of the distinct sentences of a corpus each word is."""
    counts, texts = WordCounts(), sentences(corpus)
    while part := list(islice(texts, _COUNTED_TOGETHER)):
        counts.add(part)
    return counts


class Best:
    """The best hits of each query among those that it was shown.

    Args:
        queries: how many there are.
        top: hits to keep of each.
    """

    def __init__(self, queries: int, top: int) -> None:
        self._top = top
        self._rows = np.zeros((queries, 0), np.int64)
        self._found = np.zeros((3, queries, 0), np.float32)
        """Score, cosine and words."""

    def take(
        self,
        rows: NDArray[np.int64],
        cosines: NDArray[np.float32],
        words: NDArray[np.float32] | None,
        word_weight: float,
    ) -> None:
        """Show it some more, which come behind those of before where they are as good.

        Args:
            rows: (n,) or (queries, n), their numbers.
            cosines: (queries, n).
            words: likewise; None for none.
            word_weight: of the words.
        """
        words = np.zeros_like(cosines) if words is None else words
        new = np.stack([cosines + np.float32(word_weight) * words, cosines, words])
        found = np.concatenate([self._found, new], axis=2)
        places = np.hstack([self._rows, np.broadcast_to(rows, cosines.shape)])
        order = np.argsort(-found[0], axis=1, kind="stable")[:, : self._top]
        self._rows = np.take_along_axis(places, order, 1)
        self._found = np.take_along_axis(found, order[None], 2)

    def hits(self) -> list[list[Hit]]:
        """Those of each query, best first."""
        return [
            list(map(Hit, rows, cosines, words))
            for rows, cosines, words in zip(*(part.tolist() for part in (self._rows, *self._found[1:])), strict=True)
        ]
