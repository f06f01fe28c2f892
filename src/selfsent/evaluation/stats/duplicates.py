"""Near-duplicate sentences, by their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

JACCARD = 0.8
"""Sentences that share more than this part of their distinct words are near-duplicates."""
BLOCK = 256


def near_duplicates(texts: Sequence[str], threshold: float = JACCARD) -> Any:
    """Which sentences are near-duplicates of each other: the same letters and digits, or nearly the same set of words.

    Args:
        texts: n sentences.
        threshold: of the Jaccard index of their word sets.

    Returns:
        (n, n) symmetric boolean scipy CSR matrix, the diagonal included.
    """
    from scipy.sparse import coo_array

    n = len(texts)
    keys = np.unique(["".join(filter(str.isalnum, text.casefold())) for text in texts], return_inverse=True)[1]
    words = _word_matrix(texts)
    left, right = [], []
    for start in range(0, n, BLOCK):
        same = (keys[start : start + BLOCK, None] == keys[None, :]) | _alike(words, start, threshold)
        line, column = np.nonzero(same)
        left.append(line + start)
        right.append(column)
    ones = np.ones(sum(map(len, left)), bool)
    return coo_array((ones, (np.concatenate(left), np.concatenate(right))), shape=(n, n)).tocsr()


def _word_matrix(texts: Sequence[str]) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        return CountVectorizer(binary=True, token_pattern=r"\w+", dtype=np.float32).fit_transform(texts)
    except ValueError:  # no words at all
        return None


def _alike(words: Any, start: int, threshold: float) -> Any:
    if words is None:
        return False
    size = np.asarray(words.sum(1)).ravel()
    shared = (words[start : start + BLOCK] @ words.T).toarray()
    union = size[start : start + BLOCK, None] + size[None, :] - shared
    return shared > threshold * np.maximum(union, 1)
