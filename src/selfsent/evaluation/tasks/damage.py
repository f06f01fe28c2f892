"""Single sentences: after damage a sentence finds itself (`robust`), and its halves find each other (`crops`)."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from selfsent.errors import DataError
from selfsent.evaluation.stats.duplicates import near_duplicates
from selfsent.evaluation.tasks.partners import LEAST, PartnerTask, Rows

COMMON = 50
"""The most frequent words of a text count as its function words, in any language."""
TYPOS = 0.8
"""Share of the words long enough for one that get a typo. With half of them, counting words still finds 98 of 100."""
SHORTEST_TYPO = 4
"""Letters of a word that a typo may be in."""
CROP_WORDS = 6
"""Words of a sentence that is cut into halves, at least."""


def robust_task(sentences: Sequence[str], documents: Rows) -> PartnerTask:
    """Each sentence must be found by what damage leaves of it (see `damage`).

    It is looked for among all the sentences that are given, so that its nearest neighbours are among them.

    Args:
        sentences: distinct ones.
        documents: (n,) where each is from.

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
    answers = np.where(changed, np.arange(len(sentences)), -1)
    asked = [(text,) for text in damaged]
    goals = [(text,) for text in sentences]
    return PartnerTask("robust", asked, goals, answers, documents, candidates=None, near=(others.astype(bool), near))


def crops_task(sentences: Sequence[str], documents: Rows) -> PartnerTask:
    """The first half of each sentence's words must find the second half.

    Args:
        sentences: distinct ones.
        documents: (n,) where each is from.

    Raises:
        DataError: too few sentences are long enough.
    """
    long = [row for row, sentence in enumerate(sentences) if len(sentence.split()) >= CROP_WORDS]
    if len(long) < LEAST:
        raise DataError(f"crops needs {LEAST} sentences of {CROP_WORDS} words or more")
    words = [sentences[row].split() for row in long]
    first = [(" ".join(each[: len(each) // 2]),) for each in words]
    second = [(" ".join(each[len(each) // 2 :]),) for each in words]
    return PartnerTask("crops", first, second, np.arange(len(long)), documents[long])


def damage(sentence: str, common: Collection[str]) -> str:
    """A sentence in another case, with typos in most of its longer words and without one of its common words.

    The damage is always the same.

    Args:
        sentence: any.
        common: words that may be lost, in lower case.

    Example:
        >>> damage("the printer on my desk is dead", {"the", "on", "is"}) == "the printer on my desk is dead"
        False
    """
    rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(sentence.encode("utf-8", "replace")).digest()[:8]))
    words = sentence.split()
    losable = [place for place, word in enumerate(words) if word.casefold() in common]
    if losable and len(words) > 2:
        del words[rng.choice(losable)]
    long = [place for place, word in enumerate(words) if len(word) >= SHORTEST_TYPO]
    for place in rng.permutation(long)[: math.ceil(TYPOS * len(long))]:
        words[place] = _typo(words[place], rng)
    changed = " ".join(words)
    return changed.upper() if sentence == sentence.lower() else changed.lower()


def _typo(word: str, rng: np.random.Generator) -> str:
    """Two neighbouring letters change places, or a letter is missing; the first one stays."""
    place = int(rng.integers(1, len(word) - 1))
    if rng.random() < 0.5:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    return word[:place] + word[place + 1 :]
