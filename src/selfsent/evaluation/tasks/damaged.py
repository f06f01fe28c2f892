"""Label-free metrics of damaged sentences: `robust` and `crops`."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from selfsent.errors import DataError
from selfsent.evaluation.hold_out import Numbers
from selfsent.evaluation.stats.duplicates import near_duplicates
from selfsent.evaluation.tasks.label_free import LEAST, NONE, PartnerTask

COMMON = 50  # the most frequent words of a text serve as its function words, in any language
TYPOS = 0.8
"""Share of long enough words that get a typo. With half of them, word counts still find 98 of 100."""
SHORTEST_TYPO = 4  # minimum letters of a word with a typo
CROP_WORDS = 6  # minimum words of a sentence to halve


def robust_task(sentences: Sequence[str], documents: Numbers) -> PartnerTask:
    """Each damaged sentence must find its original (see `damage`).

    All given sentences are candidates, so that its nearest neighbours are among them.

    Args:
        sentences: distinct ones.
        documents: (n,) source of each.

    Raises:
        DataError: too few sentences can be damaged.
    """
    counts = Counter(word.casefold() for sentence in sentences for word in set(sentence.split()))
    common = {word for word, _ in counts.most_common(COMMON)}
    damaged = [damage(sentence, common) for sentence in sentences]
    changed = np.array([one != other for one, other in zip(damaged, sentences, strict=True)])
    if changed.sum() < LEAST:
        raise DataError(f"robust needs {LEAST} sentences with words long enough for a typo")
    near = near_duplicates(sentences)
    others = near.astype(np.int8)
    others.setdiag(0)
    others.eliminate_zeros()
    sources, targets = [(text,) for text in damaged], [(text,) for text in sentences]
    answers = np.where(changed, np.arange(len(sentences)), NONE)
    return PartnerTask(
        "robust", sources, targets, answers, documents, candidates=None, near=(others.astype(bool), near)
    )


def crops_task(sentences: Sequence[str], documents: Numbers) -> PartnerTask:
    """The first half of each sentence's words must find the second half.

    Args:
        sentences: distinct ones.
        documents: (n,) source of each.

    Raises:
        DataError: too few sentences are long enough.
    """
    words = {row: each for row, sentence in enumerate(sentences) if len(each := sentence.split()) >= CROP_WORDS}
    if len(words) < LEAST:
        raise DataError(f"crops needs {LEAST} sentences of {CROP_WORDS} words or more")
    first = [(" ".join(each[: len(each) // 2]),) for each in words.values()]
    second = [(" ".join(each[len(each) // 2 :]),) for each in words.values()]
    return PartnerTask("crops", first, second, np.arange(len(words)), documents[list(words)])


def damage(sentence: str, common: Collection[str]) -> str:
    """A sentence in another case, with typos in most of its longer words and without one of its common words.

    Deterministic.

    Args:
        sentence: any.
        common: words to drop one of, in lower case.

    Example:
        >>> damage("the printer on my desk is dead", {"the", "on", "is"}) == "the printer on my desk is dead"
        False
    """
    rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(sentence.encode("utf-8", "replace")).digest()[:8]))
    words = sentence.split()
    losable = [index for index, word in enumerate(words) if word.casefold() in common]
    if losable and len(words) > 2:
        del words[rng.choice(losable)]
    long = [index for index, word in enumerate(words) if len(word) >= SHORTEST_TYPO]
    for index in rng.permutation(long)[: math.ceil(TYPOS * len(long))]:
        words[index] = _typo(words[index], rng)
    changed = " ".join(words)
    return changed.upper() if sentence == sentence.lower() else changed.lower()


def _typo(word: str, rng: np.random.Generator) -> str:
    """A word with two neighbouring letters swapped, or a letter missing, but not the first."""
    cut = int(rng.integers(1, len(word) - 1))
    if rng.random() < 0.5:
        return word[:cut] + word[cut + 1] + word[cut] + word[cut + 2 :]
    return word[:cut] + word[cut + 1 :]
