"""Near-duplicate sentences, by their words."""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

JACCARD = 0.8  # Jaccard index of word sets above which sentences are near-duplicates
BLOCK = 256
_WORD = re.compile(r"\w+")


def near_duplicates(texts: Sequence[str], threshold: float = JACCARD) -> Any:
    """Near-duplicates among sentences: the same letters and digits, or nearly the same set of words.

    Args:
        texts: n sentences.
        threshold: of the Jaccard index of their word sets.

    Returns:
        (n, n) symmetric boolean scipy CSR array, the diagonal included.
    """
    from scipy.sparse import csr_array

    keys = np.unique(["".join(filter(str.isalnum, text.casefold())) for text in texts], return_inverse=True)[1]
    key = csr_array((np.ones(len(texts), bool), keys, np.arange(len(texts) + 1)))
    same, numbers, columns, ends = key @ key.T, dict[str, int](), array("i"), array("q", [0])
    for text in texts:
        columns.extend(numbers.setdefault(word, len(numbers)) for word in dict.fromkeys(_WORD.findall(text.lower())))
        ends.append(len(columns))
    if not numbers:
        return same
    shape = len(texts), len(numbers)
    words = csr_array((np.ones(len(columns), np.float32), np.array(columns), np.array(ends)), shape=shape)
    # Prefix filtering (Chaudhuri et al. 2006): near-duplicates share a word among their rarest, all n but the last
    # `threshold * n`. Only sentences that do are compared.
    size = np.diff(words.indptr)
    rarest = words[:, np.argsort(words.sum(0), kind="stable")]
    rarest.sort_indices()
    rank = np.arange(rarest.nnz) - np.repeat(rarest.indptr[:-1], size)
    rarest.data[rank > np.repeat((1 - threshold) * size + 1e-6, size)] = 0  # the first is always kept
    rarest.eliminate_zeros()
    lines, others = [], []
    for start in range(0, len(size), BLOCK):
        line, column = (rarest[start : start + BLOCK] @ rarest.T).nonzero()
        shared = words[line + start].multiply(words[column]).sum(1)
        near = shared > threshold * (size[line + start] + size[column] - shared)
        lines.append(line[near] + start)
        others.append(column[near])
    found = np.concatenate(lines), np.concatenate(others)
    return same + csr_array((np.ones(len(found[0]), bool), found), shape=same.shape)


def connected(one: Any, other: Any, count: int) -> NDArray[np.int64]:
    """The connected component of each of `count` nodes; links are given by their two ends, (links,) each."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    links = csr_array((np.ones(len(one), bool), (one, other)), shape=(count, count))
    return np.asarray(connected_components(links, directed=False)[1], np.int64)
