"""Near-duplicates by MinHash and locality-sensitive hashing of its bands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.dedupe import KeySet
from selfsent.errors import SettingsError

BANDS, IN_BAND = 8, 14
"""Two texts whose words and pairs of words have Jaccard similarity s are taken for near-duplicates with probability
1 - (1 - s^14)^8: 1 at 1, 0.99 at 0.95, 0.86 at 0.9, 0.30 at 0.8, 0.05 at 0.7, 0.006 at 0.6."""
_VERSION = 1
"""Version of the definition of a near-duplicate; raise it when that changes."""
_WORD = re.compile(r"\w+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")
"""Letters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""


class NearDuplicates:
    """Finds texts that are nearly the same as one it was shown before, in 100 to 150 bytes a text.

    Texts are sets of words and of pairs of neighbouring words, upper and lower case alike and without punctuation;
    in scripts without spaces single letters stand for words. A text that is like a near-duplicate of an earlier one
    counts as well, so what is left are the first texts of groups that have nothing to do with each other.

    Raises:
        SettingsError: rensa is not installed.

    Example:
        >>> seen = NearDuplicates()
        >>> seen.new(["The printer is dead.", "It rains.", "the printer is DEAD!"]).tolist()
        [True, True, False]
    """

    def __init__(self) -> None:
        try:
            from rensa import RMinHash
        except ImportError:
            raise SettingsError(
                "near-duplicates are found with rensa: pip install 'selfsent[near-duplicates]'"
            ) from None
        self._minhash: Any = RMinHash
        self._bands = [KeySet() for _ in range(BANDS)]
        draw = np.random.default_rng(0)
        self._factors = draw.integers(1 << 63, size=IN_BAND, dtype=np.uint64) * np.uint64(2) + np.uint64(1)

    def options(self) -> list[object]:
        """What a table depends on, as JSON."""
        return ["near-duplicates", _VERSION]

    def new(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Which texts (n,) are like none before them, here or in an earlier call."""
        fresh = np.ones(len(texts), dtype=bool)
        if not len(texts):
            return fresh
        hashes = self._minhash.digest_matrix_from_token_sets(list(map(_features, texts)), BANDS * IN_BAND, 0)
        parts = np.array(hashes.to_rows(), dtype=np.uint64).reshape(len(texts), BANDS, IN_BAND)
        keys = _mixed(parts @ self._factors)
        for band, seen in enumerate(self._bands):
            fresh &= seen.add(np.ascontiguousarray(keys[:, band]))
        return fresh


def _features(text: str) -> list[str]:
    folded = text.casefold()
    words = _WORD.findall(UNSPACED.sub(r" \g<0> ", folded))
    return [*words, *map(" ".join, pairwise(words))] or [folded]


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Keys whose lower bits depend on all bits; none is zero."""
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    keys ^= keys >> np.uint64(33)
    keys[keys == 0] = 1
    return keys
