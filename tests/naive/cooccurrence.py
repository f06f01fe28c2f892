"""Counts of neighbours and their information, one pair after the other."""

from __future__ import annotations

import math

import numpy as np


def count_pairs(sentences: list[list[int]], vocabulary: int, window: int) -> np.ndarray:
    """(vocabulary, vocabulary) sums of 1/distance over all pairs of a sentence that are at most `window` apart."""
    counts = np.zeros((vocabulary, vocabulary))
    for sentence in sentences:
        for i, left in enumerate(sentence):
            for j, right in enumerate(sentence):
                if i != j and abs(i - j) <= window:
                    counts[left, right] += 1 / abs(i - j)
    return counts


def positive_information(counts: np.ndarray) -> np.ndarray:
    """max(0, log p(a, b) / (p(a) p(b))), 0 where a and b never meet."""
    total = counts.sum()
    found = np.zeros_like(counts)
    for a in range(len(counts)):
        for b in range(len(counts)):
            if counts[a, b]:
                share = counts[a, b] / total / (counts[a].sum() / total * counts[:, b].sum() / total)
                found[a, b] = max(0.0, math.log(share))
    return found
