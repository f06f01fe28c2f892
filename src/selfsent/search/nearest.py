"""The sentences nearest to a query."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from selfsent.data.corpus import Corpus
from selfsent.errors import ONE_STRING, SettingsError
from selfsent.evaluation.vectors import VectorsFile
from selfsent.models.encoder import Encoder
from selfsent.models.encoding import encode
from selfsent.search.encoder import opened
from selfsent.search.sources import corpus_vectors
from selfsent.search.vectors import unit


def search(
    model: Encoder | str | os.PathLike[str],
    corpus: Corpus,
    queries: list[str],
    top: int = 10,
    advance: Callable[[int], None] = lambda count: None,
    file: VectorsFile | None = None,
) -> list[list[tuple[int, float]]]:
    """The rows of the distinct sentences nearest to each query by cosine, best first, with the cosine; exact.

    Args:
        model: the encoder, or the name of one, such as a run's directory.
        corpus: the sentences to search.
        queries: what to look for.
        top: how many sentences a query.
        advance: called with the number of rows of the input done since the last call.
        file: with the vectors of the corpus, as `encode_to_file` writes it; without it they are computed.

    Raises:
        DataError: the file is damaged, or holds other vectors.
        SettingsError: one query that is in no list, or no encoder.
    """
    if isinstance(queries, str):
        raise SettingsError(ONE_STRING)
    model = opened(model)
    wanted = unit(encode(model, queries, side="query"))
    best_rows = np.zeros((len(queries), 0), dtype=np.int64)
    best = np.zeros((len(queries), 0), dtype=np.float32)
    start, tell = 0, corpus.origins.in_pieces(advance)
    for vectors in corpus_vectors(model, corpus, file, "document"):
        cosines = wanted @ unit(vectors).T
        rows = np.broadcast_to(np.arange(start, start + len(vectors)), cosines.shape)
        best, best_rows = np.hstack([best, cosines]), np.hstack([best_rows, rows])
        order = np.argsort(-best, axis=1, kind="stable")[:, :top]
        best, best_rows = np.take_along_axis(best, order, 1), np.take_along_axis(best_rows, order, 1)
        start += len(vectors)
        tell(len(vectors))
    return [list(zip(r.tolist(), c.tolist(), strict=True)) for r, c in zip(best_rows, best, strict=True)]
