"""The papers' analyses: importance of words for a similarity, and geometry of the vectors."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from selfsent.errors import DataError
from selfsent.evaluation.datasets.declared import Rows
from selfsent.evaluation.encoders import Encoder
from selfsent.papers.words import Tagger, tag

SIMILAR = 0.8
WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


def similar_pairs(rows: Rows, least: float = SIMILAR) -> tuple[list[str], list[str]]:
    """The pairs of a data set that mean the same: left texts, right texts.

    Args:
        rows: sentence1, sentence2, score.
        least: minimum score as a share of the highest; 0.8 is 4 of 5.

    Raises:
        DataError: no pair is as similar as that.
    """
    bar = least * max(rows["score"])
    chosen = [row for row, score in enumerate(rows["score"]) if score >= bar and score > 0]
    if not chosen:
        raise DataError(f"{rows.name} has no pair with a score of {bar:g} or more")
    return [rows["sentence1"][row] for row in chosen], [rows["sentence2"][row] for row in chosen]


@dataclass(frozen=True)
class WordImportance:
    """Importance of parts of speech.

    Args:
        decisive: share of sentences in which dropping such a word lowers the similarity most, by part of speech.
        present: share of all words, by part of speech: chance level.
        sentences: number of sentences.
    """

    decisive: dict[str, float]
    present: dict[str, float]
    sentences: int


def word_importance(
    encoder: Encoder, left: Sequence[str], right: Sequence[str], tagger: Tagger = tag
) -> WordImportance:
    """Drop each word of each left sentence, and record the part of speech of the one that lowers the cosine most.

    Wang, Reimers and Gurevych (2021), section 7.2 and Figure 4, on pairs that mean the same.

    Args:
        encoder: the model.
        left: n sentences.
        right: n sentences that mean the same.
        tagger: words -> parts of speech.

    Raises:
        DataError: no left sentence has two words.
    """
    tokens = [WORD.findall(text) for text in left]
    usable = [row for row, words in enumerate(tokens) if len(words) > 1]
    if not usable:
        raise DataError("no sentence has two words or more, so none can be dropped")
    damaged = [" ".join(tokens[row][:k] + tokens[row][k + 1 :]) for row in usable for k in range(len(tokens[row]))]
    others = [right[row] for row in usable for _ in tokens[row]]
    found = np.split(encoder.similarity(damaged, others), np.cumsum([len(tokens[row]) for row in usable])[:-1])
    decisive: Counter[str] = Counter()
    present: Counter[str] = Counter()
    for row, similarity in zip(usable, found, strict=True):
        tags = tagger(tokens[row])
        decisive[tags[int(similarity.argmin())]] += 1
        present.update(tags)
    return WordImportance(_shares(decisive), _shares(present), len(usable))


@dataclass(frozen=True)
class Space:
    """Geometry of vectors on the sphere (Wang and Isola, 2020); smaller is better for both.

    Args:
        model: name of the encoder.
        alignment: mean squared distance of texts that mean the same.
        uniformity: log of the mean Gaussian potential of any two texts.
    """

    model: str
    alignment: float
    uniformity: float


def space(encoder: Encoder, rows: Rows, least: float = SIMILAR) -> Space:
    """Alignment over the similar pairs of a data set, uniformity over all its texts.

    Raises:
        DataError: no similar pair, or fewer than two distinct texts.
    """
    pairs = similar_pairs(rows, least)
    texts = [*rows["sentence1"], *rows["sentence2"]]
    encoder.remember(texts)
    return Space(encoder.name, alignment(encoder, *pairs), uniformity(encoder, texts))


def alignment(encoder: Encoder, left: Sequence[str], right: Sequence[str]) -> float:
    """Mean squared distance of unit vectors of texts that mean the same; smaller is better (Wang and Isola, 2020)."""
    return float(np.mean(2 - 2 * encoder.similarity(left, right)))


def uniformity(encoder: Encoder, texts: Sequence[str]) -> float:
    """Log of the mean Gaussian potential of pairs of unit vectors, t = 2; smaller is better (Wang and Isola, 2020).

    Raises:
        DataError: fewer than two distinct texts.
    """
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < 2:
        raise DataError("uniformity needs two distinct texts or more")
    vectors = encoder(distinct).astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    squares = np.square(vectors).sum(1)  # 1, or 0 for a zero vector
    n, total = len(vectors), 0.0
    for start in range(0, n, 1024):
        block = slice(start, start + 1024)
        distances = squares[block, None] + squares - 2 * vectors[block] @ vectors.T
        total += float(np.exp(-2 * np.maximum(distances, 0)).sum())
    return math.log((total - n) / (n * (n - 1)))  # each vector's potential with itself is 1


def _shares(counts: Counter[str]) -> dict[str, float]:
    return {name: count / counts.total() for name, count in counts.most_common()}
