"""Which words stand near which: counts, positive pointwise mutual information, and word vectors of its factors.

Levy, Goldberg and Dagan, 2015, "Improving distributional similarity with lessons learned from word embeddings":
counts weighted by distance, and singular vectors without their values. Halko, Martinsson and Tropp, 2011,
"Finding structure with randomness": the factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from selfsent.data.token_table import TokenTable

_DENSE = 20_000
"""Vocabulary up to which the counts are one dense matrix: 1.6 GB. Beyond, it is sparse, and the factors are slower."""
_CHUNK, _TOKENS = 4_000_000, 100_000_000
"""Tokens counted at a time, and at most."""
_ROWS = 512


def count_pairs(table: TokenTable, sentences: np.ndarray, vocabulary: int, window: int = 5) -> Any:
    """(vocabulary, vocabulary) how often two tokens stand in one sentence at most `window` apart, weighted 1/distance.

    Args:
        table: the tokens.
        sentences: (sentences,) rows of the table, rising; of a huge corpus an even sample is counted.
        vocabulary: number of token ids.
        window: the largest distance.

    Returns:
        A symmetric float32 matrix, dense or (for a large vocabulary) in scipy's compressed rows.
    """
    from scipy.sparse import coo_array, csr_array

    dense = vocabulary <= _DENSE
    shape = (vocabulary, vocabulary)
    counts: Any = np.zeros(vocabulary**2, np.float32) if dense else csr_array(shape, dtype=np.float32)
    lengths = table.lengths(sentences)
    every = max(1, -(-int(lengths.sum()) // _TOKENS))
    sentences, lengths = sentences[::every], lengths[::every]
    cuts = np.searchsorted(np.cumsum(lengths), np.arange(_CHUNK, int(lengths.sum()), _CHUNK))
    for chunk in np.split(sentences, cuts):
        tokens = table[chunk]
        for distance in range(1, window + 1):
            same = tokens.sentence[distance:] == tokens.sentence[:-distance]
            left, right = tokens.ids[:-distance][same], tokens.ids[distance:][same]
            if dense:
                keys, times = np.unique(left * vocabulary + right, return_counts=True)
                counts[keys] += times.astype(np.float32) / np.float32(distance)
            else:
                weights = np.full(len(left), 1 / distance, dtype=np.float32)
                counts = counts + coo_array((weights, (left, right)), shape=shape).tocsr()
    if not dense:
        return (counts + counts.T).tocsr()
    counts = counts.reshape(shape)
    for begin in range(0, vocabulary, _ROWS):  # in place: a second matrix would be another gigabyte
        rows = slice(begin, begin + _ROWS)
        both = counts[rows, begin:] + counts[begin:, rows].T
        counts[rows, begin:], counts[begin:, rows] = both, both.T
    return counts


def positive_information(counts: Any) -> Any:
    """max(0, log p(w, c) / (p(w) p(c))), in place where the counts are dense."""
    total = np.maximum(np.asarray(counts.sum(1), dtype=np.float64), 1e-12)
    log_words, log_contexts = np.log(total), np.log(total / total.sum())
    if not isinstance(counts, np.ndarray):
        coordinates = counts.tocoo()
        row, column = coordinates.coords
        values = np.log(coordinates.data) - log_words[row] - log_contexts[column]
        counts.data = np.maximum(values, 0).astype(np.float32)
        counts.eliminate_zeros()
        return counts
    expected = log_contexts.astype(np.float32)
    for begin in range(0, len(counts), _ROWS):
        rows = counts[begin : begin + _ROWS]
        seen = rows > 0
        np.log(rows, out=rows, where=seen)
        rows -= log_words[begin : begin + _ROWS, None].astype(np.float32) + expected
        rows[~seen | (rows < 0)] = 0
    return counts


def factors(matrix: Any, rank: int, seed: int = 0, iterations: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """The first left singular vectors and values of a square matrix, by a randomised subspace iteration.

    Args:
        matrix: (n, n), dense or sparse.
        rank: how many.
        seed: of the first guess.
        iterations: passes that sharpen it.

    Returns:
        (n, rank) vectors, each with its largest entry positive, and (rank,) values; fewer where the matrix has fewer.
    """
    n = matrix.shape[0]
    rank = min(rank, n)
    guess = np.random.default_rng(seed).standard_normal((n, min(n, rank + 40)), dtype=np.float32)
    basis = np.linalg.qr(matrix @ guess)[0]
    for _ in range(iterations):
        basis = np.linalg.qr(matrix @ np.linalg.qr(matrix.T @ basis)[0])[0]
    left, values, _ = np.linalg.svd((matrix.T @ basis).T, full_matrices=False)
    vectors = (basis @ left)[:, :rank]
    signs = np.sign(vectors[np.abs(vectors).argmax(0), np.arange(rank)])
    return vectors * np.where(signs == 0, 1, signs), values[:rank]
