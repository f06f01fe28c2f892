"""The analysis of TSDAE's section 7.2: importance of words for a similarity."""

from __future__ import annotations

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


def _shares(counts: Counter[str]) -> dict[str, float]:
    return {name: count / counts.total() for name, count in counts.most_common()}
