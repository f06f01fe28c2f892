"""The most similar pairs, from the matrix of all cosines."""

import numpy as np


def most_similar(vectors, top, threshold=-1):
    """(cosine, row, row) by falling cosine, then rising rows."""
    vectors = np.asarray(vectors, dtype=np.float64)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    count = len(vectors)
    pairs = [(cosines[i, j], i, j) for i in range(count) for j in range(i + 1, count) if cosines[i, j] >= threshold]
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2]))[:top]
