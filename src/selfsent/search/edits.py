"""Copies made of a corpus' own texts, and how many of them a threshold finds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from selfsent.data.corpus.clean import UNSPACED
from selfsent.data.random import make_key, uniforms
from selfsent.errors import SettingsError
from selfsent.search.differences import Guard, is_guarded, names_in

if TYPE_CHECKING:
    from selfsent.search.similarity import Similarity

SAMPLE = 400
"""Texts that are edited."""
_CUT, _TYPED = 0.8, 15
"""Share of a text that is left of it when cut, and words for each typing error."""
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+")


def edits(texts: list[str], rows: np.ndarray) -> dict[str, list[str]]:
    """Copies of texts by kind of edit; empty where a text cannot be edited so.

    `cut`: without the last fifth of the words, of the signs in scripts without spaces. `mistyped`: two letters
    exchanged in one word of fifteen, in one at least. `with another number`: one changed. `with another name`: the
    first one replaced by a name of another text. `reworded`: three words of ten replaced through WordNet, if it is
    there.

    Args:
        texts: (n,) of the corpus.
        rows: (n,) their rows, on which what is drawn depends.

    Examples:
        >>> made = edits(["room 42 is closed for the whole day"], np.array([0]))
        >>> made["cut"], made["with another number"]
        (['room 42 is closed for the'], ['room 43 is closed for the whole day'])
    """
    key = make_key(79)
    made: dict[str, list[str]] = {"cut": [], "mistyped": [], "with another number": [], "with another name": []}
    names = names_in(texts)
    known = sorted(
        {word for text in texts for word in _WORD.findall(text) if word[0].isupper() and word.casefold() in names}
    )
    for text, row in zip(texts, rows.tolist(), strict=True):
        words = text.split()
        part, sign = (text, "") if UNSPACED.search(text) else (words, " ")
        made["cut"].append(sign.join(part[: int(_CUT * len(part))]).strip())
        order = uniforms(key, np.full(len(words), row), np.arange(len(words))).argsort()
        places = [place for place in order.tolist() if len(words[place]) > 2][: max(1, len(words) // _TYPED)]
        for place in places:
            word = words[place]
            words[place] = word[0] + word[2] + word[1] + word[3:]
        made["mistyped"].append(" ".join(words) if places else "")
        changed = _NUMBER.sub(lambda number: str(int(number[0][:18]) + 1), text, count=1)
        made["with another number"].append(changed if changed != text else "")
        made["with another name"].append(_renamed(text, names, known, row))
    try:
        from selfsent.augment.augmenter import Sentences
        from selfsent.augment.synonym import Synonym

        made["reworded"] = Synonym().start()(Sentences(texts, rows), key)
    except SettingsError:  # WordNet is not installed
        pass
    return made


def _renamed(text: str, names: set[str], known: list[str], row: int) -> str:
    """A text with another name in place of its first one; empty if it has none, or there is no other."""
    place = next((word for word in _WORD.finditer(text) if word[0].casefold() in names), None)
    others = [name for name in known if name.casefold() not in text.casefold()]
    if place is None or not others:
        return ""
    return text[: place.start()] + others[row % len(others)] + text[place.end() :]


def found_of_edits(similarity: Similarity, threshold: float, guard: Sequence[Guard] = ()) -> dict[str, float]:
    """The share of edited texts that are taken for copies of their texts at a threshold, by kind of edit."""
    corpus = similarity.corpus
    rows = np.sort(np.random.default_rng(1).permutation(len(corpus))[:SAMPLE])
    texts, found = corpus.texts(rows), dict[str, float]()
    made_of = edits(texts, rows)
    names = names_in([*texts, *made_of["with another name"]]) if "names" in guard else set[str]()
    for kind, made in made_of.items():
        chosen = [place for place, text in enumerate(made) if text and text != texts[place]]
        if chosen:
            near = similarity.to_edits(rows[chosen], [made[place] for place in chosen]) >= threshold
            allowed = (not is_guarded(texts[place], made[place], guard, names) for place in chosen)
            found[kind] = float((near & np.fromiter(allowed, bool, len(chosen))).mean())
    return found
