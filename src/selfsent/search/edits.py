"""Copies made of a corpus' own texts, and how many of them a threshold finds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from selfsent.data.random import make_key, uniforms
from selfsent.errors import SettingsError

if TYPE_CHECKING:
    from selfsent.search.similarity import Similarity

SAMPLE = 400
"""Texts that are edited."""
_CUT, _TYPED = 0.8, 15
"""Share of a text that is left of it when cut, and words for each typing error."""
_NUMBER = re.compile(r"\d+")


def edits(texts: list[str], rows: np.ndarray) -> dict[str, list[str]]:
    """Copies of texts by kind of edit; empty where a text cannot be edited so.

    `cut`: without the last fifth of the words. `mistyped`: two letters exchanged in one word of fifteen, in one at
    least. `with another number`: one changed. `reworded`: three words of ten replaced through WordNet, if it is there.

    Args:
        texts: (n,) of the corpus.
        rows: (n,) their rows, on which what is drawn depends.

    Example:
        >>> made = edits(["room 42 is closed for the whole day"], np.array([0]))
        >>> made["cut"], made["with another number"]
        (['room 42 is closed for the'], ['room 43 is closed for the whole day'])
    """
    key = make_key(79)
    made: dict[str, list[str]] = {"cut": [], "mistyped": [], "with another number": []}
    for text, row in zip(texts, rows.tolist(), strict=True):
        words = text.split()
        made["cut"].append(" ".join(words[: int(_CUT * len(words))]))
        order = uniforms(key, np.full(len(words), row), np.arange(len(words))).argsort()
        places = [place for place in order.tolist() if len(words[place]) > 2][: max(1, len(words) // _TYPED)]
        for place in places:
            word = words[place]
            words[place] = word[0] + word[2] + word[1] + word[3:]
        made["mistyped"].append(" ".join(words) if places else "")
        changed = _NUMBER.sub(lambda number: str(int(number[0][:18]) + 1), text, count=1)
        made["with another number"].append(changed if changed != text else "")
    try:
        from selfsent.augment.augmenter import Sentences
        from selfsent.augment.synonym import Synonym

        made["reworded"] = Synonym().start()(Sentences(texts, rows), key)
    except SettingsError:  # WordNet is not installed
        pass
    return made


def found_of_edits(similarity: Similarity, threshold: float) -> dict[str, float]:
    """The share of edited texts that are taken for copies of their texts at a threshold, by kind of edit."""
    corpus = similarity.corpus
    rows = np.sort(np.random.default_rng(1).permutation(len(corpus))[:SAMPLE])
    texts, found = corpus.texts(rows), dict[str, float]()
    for kind, made in edits(texts, rows).items():
        chosen = [place for place, text in enumerate(made) if text and text != texts[place]]
        if chosen:
            scores = similarity.to_edits(rows[chosen], [made[place] for place in chosen])
            found[kind] = float((scores >= threshold).mean())
    return found
