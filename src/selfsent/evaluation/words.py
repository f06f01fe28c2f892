"""Words that texts share, beside the cosine of their vectors: what `search` ranks by, and how it is evaluated."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from selfsent.data.corpus.near import UNSPACED
from selfsent.errors import DataError, SettingsError
from selfsent.evaluation.encoder import Encoder
from selfsent.evaluation.stats.resampling import Floats
from selfsent.evaluation.vectors import Vectors

WEIGHT = 0.5
"""Of the words beside the cosine: of 0.1 to 2 the best for trained encoders on development documents (docs/log)."""
LARGEST = 1000
"""A weight beside which no cosine counts."""
WITH_WORDS = "+words"
"""Behind the name of a model: its cosine and the words together."""
PLACES = 1 << 20
"""Words that are told apart: a word's place is a hash of it."""
_WORD = re.compile(r"[\w\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff]{2,}")
"""Letters and digits, and the vowel signs and accents that `\\w` leaves out: Hebrew, Arabic, and those of India."""
_SIGN = re.compile(rf"{UNSPACED.pattern}+")


def without_words(name: str) -> str:
    """The model that words are added to, by its name; empty where none are."""
    return name.removesuffix(WITH_WORDS) if name.endswith(WITH_WORDS) and not Path(name).exists() else ""


def check_weight(weight: float) -> None:
    """Refuse a weight that is none.

    Raises:
        SettingsError: it is negative, no number, or above 1,000.
    """
    if not 0 <= weight <= LARGEST:
        raise SettingsError(f"the weight of words is {weight:g}; it is 0 to {LARGEST:,}: 0 is the cosine alone")


class WordCounts:
    """In how many texts each word is; and the words of a text, weighed by it (TF-IDF).

    A word that is c times in a text and in d of n texts weighs (1 + ln c)·(1 + ln((1 + n) / (1 + d))). Upper and lower
    case are alike, and single letters are no words. Scripts without spaces count pairs of neighbouring signs. Memory
    does not grow with the texts.

    Args:
        frequencies: (2^20,) texts that each word is in; none yet where it is not given.
        texts: how many there were.

    Example:
        >>> counts = WordCounts()
        >>> counts.add(["a red car", "a blue car"])
        >>> round(float((counts.weighed(["red"]) @ counts.weighed(["a red car"]).T)[0, 0]), 2)
        0.81
    """

    def __init__(self, frequencies: NDArray[np.int32] | None = None, texts: int = 0) -> None:
        self.frequencies = np.zeros(PLACES, np.int32) if frequencies is None else frequencies
        self.texts = texts

    def add(self, texts: Sequence[str]) -> None:
        """Count some more texts."""
        np.add.at(self.frequencies, _counts(texts).indices, 1)
        self.texts += len(texts)

    def weighed(self, texts: Sequence[str]) -> Any:
        """The weights of the words of texts, each row of length 1, or 0 without words: (n, 2^20) sparse."""
        rows = _counts(texts)
        rarity = 1 + np.log((1 + self.texts) / (1 + self.frequencies[rows.indices]))
        weights = (1 + np.log(rows.data)) * rarity
        rows.data = (weights**2).astype(np.float32)
        lengths = np.sqrt(np.asarray(rows.sum(axis=1)).ravel())
        rows.data = (weights / np.repeat(lengths, np.diff(rows.indptr))).astype(np.float32)
        return rows


def _counts(texts: Sequence[str]) -> Any:
    """How often each text has each word, (n, 2^20) sparse: scikit-learn's HashingVectorizer takes longer to import."""
    from scipy.sparse import csr_matrix

    places, ends = array("i"), array("q", [0])  # a list would take ten times the memory
    for text in texts:
        places.extend(crc32(word.encode("utf-8", "surrogatepass")) % PLACES for word in words_of(text))
        ends.append(len(places))
    rows = csr_matrix((np.ones(len(places), np.float32), np.array(places), np.array(ends)), (len(texts), PLACES))
    rows.sum_duplicates()
    return rows


def words_of(text: str) -> list[str]:
    """The words of a text; in scripts without spaces pairs of neighbouring signs, or one that stands alone."""
    text = text.lower()
    if text.isascii() or not UNSPACED.search(text):
        return _WORD.findall(text)
    runs = _SIGN.findall(text)
    pairs = [run[place : place + 2] for run in runs for place in range(max(1, len(run) - 1))]
    return _WORD.findall(_SIGN.sub(" ", text)) + pairs


class WithWords(Encoder):
    """An encoder as `search` uses it: the cosine of two vectors, plus the weighed words that their texts share.

    Words are counted over the texts searched, or over both sides of the pairs.

    Args:
        encoder: it needs vectors.
        weight: of the words.

    Raises:
        DataError: the encoder has no vectors.
    """

    def __init__(self, encoder: Encoder, weight: float = WEIGHT) -> None:
        if not encoder.has_vectors:
            raise DataError(f"{encoder.name}{WITH_WORDS}: {encoder.name} has no vectors to add words to")
        super().__init__(
            self._no_vectors,
            encoder.name + WITH_WORDS,
            f"{encoder.pooling}{WITH_WORDS}",
            encoder.trained_on,
            encoder.trained_by,
        )
        self.encoder, self.weight, self.has_vectors = encoder, weight, False

    def sides(self, queries: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:
        """Rows for queries and for texts, whose inner products are what `search` ranks by."""
        return self.beside(self.encoder.sides(queries, texts), queries, texts)

    def beside(self, vectors: tuple[Vectors, Vectors], queries: Sequence[str], texts: Sequence[str]) -> tuple[Any, Any]:
        """The same, of vectors that are there: (q, d) and (n, d), each of length 1."""
        self.broken = self.encoder.broken
        counts = WordCounts()
        counts.add(texts)
        asked, goals = (counts.weighed(some) * math.sqrt(self.weight) for some in (queries, texts))
        return VectorsAndWords(vectors[0], asked), VectorsAndWords(vectors[1], goals)

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Floats:
        """The cosine of each pair of texts and the words that they share, (n,)."""
        counts = WordCounts()
        counts.add(list(dict.fromkeys([*left, *right])))
        shared = counts.weighed(left).multiply(counts.weighed(right)).sum(axis=1)
        cosines = self.encoder.similarity(left, right)
        self.broken = self.encoder.broken
        return cosines + self.weight * np.asarray(shared, np.float64).ravel()

    @property
    def measure(self) -> str:
        """What `similarity` is, for the signature."""
        return f"cos+{self.weight:g}words"

    def _no_vectors(self, texts: Sequence[str]) -> Vectors:
        raise DataError(f"{self.name} says how near two texts are and has no vectors, so this task cannot use it")


class VectorsAndWords:
    """Vectors, and beside them words: rows of both, whose inner product is the sum of both inner products.

    Args:
        vectors: (n, d).
        words: (n, words) sparse.
    """

    def __init__(self, vectors: Vectors, words: Any) -> None:
        self.vectors, self.words = vectors, words

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the vectors."""
        return self.vectors.shape

    def __getitem__(self, rows: Any) -> VectorsAndWords:
        return VectorsAndWords(self.vectors[rows], self.words[rows])

    @property
    def T(self) -> VectorsAndWords:  # noqa: N802 - as arrays call it
        """Itself: the other side of a product says which way."""
        return self

    def __matmul__(self, other: VectorsAndWords) -> Vectors:
        """(n, m) inner products with the rows of another one's, transposed."""
        product: Vectors = self.vectors @ other.vectors.T + (self.words @ other.words.T).toarray()
        return product
